#include "base/key_hash.h"

#include <sys/random.h>

namespace weir::base {

namespace {

HashSecret DrawSecret() noexcept {
  HashSecret secret;
  size_t filled = 0;
  while (filled < HashSecret::kBytes) {
    const ssize_t got = getrandom(secret.bytes + filled, HashSecret::kBytes - filled, 0);
    if (got <= 0) {
      break;
    }
    filled += static_cast<size_t>(got);
  }
  if (filled < HashSecret::kBytes) {
    // A kernel without getrandom: address layout is the only entropy left. Collisions could then be
    // guessed with effort; correctness does not depend on the secret.
    const uint64_t seed = reinterpret_cast<uintptr_t>(&secret) ^
                          reinterpret_cast<uintptr_t>(&DrawSecret) * 0x9e3779b97f4a7c15U;
    XXH3_generateSecret_fromSeed(secret.bytes, seed);
  }
  return secret;
}

}  // namespace

const HashSecret& ProcessSecret() noexcept {
  static const HashSecret secret = DrawSecret();
  return secret;
}

}  // namespace weir::base
