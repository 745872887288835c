// Attributes whose values are as good as a password, so that people get to see a digest instead.
#pragma once

#include <string>
#include <string_view>

#include "base/key_digest.h"
#include "base/same_text.h"

namespace weir::rules {

[[nodiscard]] inline bool IsSecret(std::string_view attribute) noexcept {
  constexpr std::string_view kHeader = "header:";
  if (attribute.starts_with(kHeader)) {
    attribute.remove_prefix(kHeader.size());
  }
  for (const std::string_view secret :
       {"api_key", "api-key", "apikey", "x-api-key", "authorization", "proxy-authorization",
        "cookie", "token", "access_token", "x-auth-token", "session", "session_id", "password",
        "secret"}) {
    if (base::SameLetters(attribute, secret)) {
      return true;
    }
  }
  return false;
}

// Told from a key by its first character.
[[nodiscard]] inline std::string Hidden(std::string_view key) {
  return "#" + base::KeyDigest(key);
}

}  // namespace weir::rules
