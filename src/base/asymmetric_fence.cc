#include "base/asymmetric_fence.h"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#if defined(__SANITIZE_THREAD__)
#define WEIR_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_THREAD_SANITIZER 1
#endif
#endif

namespace weir::base {

std::atomic<bool> AsymmetricFence::cheap_{false};

namespace {

#if defined(__linux__) && defined(SYS_membarrier) && !defined(WEIR_THREAD_SANITIZER)
// From linux/membarrier.h, which an older system may lack.
constexpr int kPrivateExpedited = 1 << 3;
constexpr int kRegisterPrivateExpedited = 1 << 4;

bool Membarrier(int command) noexcept {
  return syscall(SYS_membarrier, command, 0, 0) == 0;
}

bool Register() noexcept {
  return Membarrier(kRegisterPrivateExpedited);
}

bool FenceEverywhere() noexcept {
  // A process that was forked may have to say again that it wants this.
  return Membarrier(kPrivateExpedited) || (Register() && Membarrier(kPrivateExpedited));
}
#else
bool Register() noexcept {
  return false;
}

bool FenceEverywhere() noexcept {
  return false;
}
#endif

}  // namespace

void AsymmetricFence::Prepare() noexcept {
  static const bool registered = [] {
    const bool works = Register() && FenceEverywhere();
    cheap_.store(works, std::memory_order_relaxed);
    return works;
  }();
  static_cast<void>(registered);
}

bool AsymmetricFence::Heavy() noexcept {
  return !cheap() || FenceEverywhere();
}

}  // namespace weir::base
