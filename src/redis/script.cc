#include "redis/script.h"

#include <openssl/evp.h>

namespace weir::redis {

Script::Script(std::string_view name, std::string_view text) : name_(name), text_(text), sha1_() {
  std::array<unsigned char, 20> digest{};
  EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha1(), nullptr);
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (size_t i = 0; i < digest.size(); ++i) {
    sha1_[2 * i] = kDigits[digest[i] >> 4];
    sha1_[2 * i + 1] = kDigits[digest[i] & 15];
  }
}

}  // namespace weir::redis
