#include "base/key_hash.h"

#include <sys/random.h>

namespace weir::base {

namespace {

void Draw(HashSecret& secret) noexcept {
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
    const uint64_t seed = reinterpret_cast<uintptr_t>(&filled) ^
                          reinterpret_cast<uintptr_t>(&Draw) * 0x9e3779b97f4a7c15U;
    XXH3_generateSecret_fromSeed(secret.bytes, seed);
  }
}

}  // namespace

constinit HashSecret drawn_secret{};

const HashSecret& ProcessSecret() noexcept {
  [[maybe_unused]] static const bool drawn = (Draw(drawn_secret), true);
  return drawn_secret;
}

}  // namespace weir::base
