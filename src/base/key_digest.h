// Stands for a key where people see it: tells the same key from others until the process ends, and
// tells nobody what it was.
#pragma once

#include <string>
#include <string_view>

#include "base/key_hash.h"

namespace weir::base {

[[nodiscard]] inline std::string KeyDigest(std::string_view key) {
  constexpr char kHex[] = "0123456789abcdef";
  constexpr uint64_t kShown = 0x64696765;  // another hash than the table's
  uint64_t hash = MixHash(HashKey(key, ProcessSecret()), SaltFor(kShown));
  std::string digest;
  for (int i = 0; i < 12; ++i) {
    digest += kHex[hash & 15];
    hash >>= 4;
  }
  return digest;
}

}  // namespace weir::base
