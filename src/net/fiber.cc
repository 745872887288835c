#include "net/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <boost/asio/post.hpp>
#include <boost/context/detail/fcontext.hpp>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEIR_FIBER_ASAN 1
#elif __has_feature(thread_sanitizer)
#define WEIR_FIBER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WEIR_FIBER_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define WEIR_FIBER_TSAN 1
#endif

#if defined(WEIR_FIBER_ASAN)
#include <sanitizer/common_interface_defs.h>
#elif defined(WEIR_FIBER_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace weir::net {

namespace context = boost::context::detail;

namespace {

// Taken from the system page by page as it is used. The page below is never given: who runs over
// the end is stopped there.
constexpr size_t kStackBytes = size_t{512} << 10;
constexpr size_t kGuardBytes = 4096;
constexpr size_t kIdleMax = 256;

}  // namespace

// A stack, and where its work was left.
class FiberStack {
 public:
  FiberStack();
  ~FiberStack();
  FiberStack(const FiberStack&) = delete;
  FiberStack& operator=(const FiberStack&) = delete;

  void Prepare(Fibers& fibers, const Fibers::Task& task) noexcept {
    fibers_ = &fibers;
    std::memcpy(&task_, &task, sizeof task);  // moved by its bytes: whoever has it now owns it
    ended_ = false;
  }
  // Into it, and back when it ends or waits.
  void Resume() noexcept;
  // Out of it, and back when it is resumed.
  void Leave() noexcept;

  [[nodiscard]] bool ended() const noexcept { return ended_; }
  [[nodiscard]] Fibers& fibers() const noexcept { return *fibers_; }

  static thread_local FiberStack* tls_current;

 private:
  [[noreturn]] static void Main(context::transfer_t from) noexcept;

  // What the sanitizers are told of, so that they follow.
  void BeforeResume() noexcept;
  void AfterResume() noexcept;
  void BeforeLeave() noexcept;
  void AfterLeave() noexcept;

  char* memory_ = nullptr;
  context::fcontext_t self_ = nullptr;
  context::fcontext_t caller_ = nullptr;
  Fibers* fibers_ = nullptr;
  Fibers::Task task_;
  bool ended_ = true;

#if defined(WEIR_FIBER_ASAN)
  void* own_fake_stack_ = nullptr;
  void* caller_fake_stack_ = nullptr;
  const void* caller_bottom_ = nullptr;
  size_t caller_bytes_ = 0;
#elif defined(WEIR_FIBER_TSAN)
  void* own_fiber_ = __tsan_create_fiber(0);
  void* caller_fiber_ = nullptr;
#endif
};

thread_local constinit FiberStack* FiberStack::tls_current = nullptr;

FiberStack::FiberStack() {
  void* const memory = ::mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED || ::mprotect(memory, kGuardBytes, PROT_NONE) != 0) {
    // As when the heap has none left: nothing can be answered any more.
    std::perror("weir: no memory for a fiber's stack");
    std::abort();
  }
  memory_ = static_cast<char*>(memory);
  self_ = context::make_fcontext(memory_ + kGuardBytes + kStackBytes, kStackBytes, &Main);
}

FiberStack::~FiberStack() {
#if defined(WEIR_FIBER_TSAN)
  __tsan_destroy_fiber(own_fiber_);
#endif
  ::munmap(memory_, kStackBytes + kGuardBytes);
}

#if defined(WEIR_FIBER_ASAN)

void FiberStack::BeforeResume() noexcept {
  __sanitizer_start_switch_fiber(&caller_fake_stack_, memory_ + kGuardBytes, kStackBytes);
}
void FiberStack::AfterResume() noexcept {
  __sanitizer_finish_switch_fiber(caller_fake_stack_, nullptr, nullptr);
}
void FiberStack::BeforeLeave() noexcept {
  __sanitizer_start_switch_fiber(&own_fake_stack_, caller_bottom_, caller_bytes_);
}
void FiberStack::AfterLeave() noexcept {
  __sanitizer_finish_switch_fiber(own_fake_stack_, &caller_bottom_, &caller_bytes_);
}

#elif defined(WEIR_FIBER_TSAN)

void FiberStack::BeforeResume() noexcept {
  caller_fiber_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(own_fiber_, 0);
}
void FiberStack::AfterResume() noexcept {}
void FiberStack::BeforeLeave() noexcept {
  __tsan_switch_to_fiber(caller_fiber_, 0);
}
void FiberStack::AfterLeave() noexcept {}

#else

void FiberStack::BeforeResume() noexcept {}
void FiberStack::AfterResume() noexcept {}
void FiberStack::BeforeLeave() noexcept {}
void FiberStack::AfterLeave() noexcept {}

#endif

void FiberStack::Resume() noexcept {
  FiberStack* const outer = tls_current;
  tls_current = this;
  BeforeResume();
  self_ = context::jump_fcontext(self_, this).fctx;
  AfterResume();
  tls_current = outer;
}

void FiberStack::Leave() noexcept {
  BeforeLeave();
  caller_ = context::jump_fcontext(caller_, nullptr).fctx;
  AfterLeave();
}

// One task after the other: a stack that has ended is used again.
void FiberStack::Main(context::transfer_t from) noexcept {
  auto* const self = static_cast<FiberStack*>(from.data);
  self->caller_ = from.fctx;
  self->AfterLeave();
  for (;;) {
    self->task_.run(self->task_.room);
    self->ended_ = true;
    self->Leave();
  }
}

bool InFiber() noexcept {
  return FiberStack::tls_current != nullptr;
}

void Event::Set() noexcept {
  set_ = true;
  if (waiter_ != nullptr) {
    FiberStack& waiter = *std::exchange(waiter_, nullptr);
    waiter.fibers().MakeReady(waiter);
  }
}

void Event::Wait() noexcept {
  if (!set_) {
    waiter_ = FiberStack::tls_current;
    waiter_->Leave();
  }
  set_ = false;
}

Fibers* Fibers::Current() noexcept {
  return FiberStack::tls_current == nullptr ? nullptr : &FiberStack::tls_current->fibers();
}

Fibers::Fibers(boost::asio::io_context& context) noexcept : context_(context) {}
Fibers::~Fibers() = default;

void Fibers::Begin(const Task& task) {
  std::unique_ptr<FiberStack> fiber;
  if (idle_.empty()) {
    fiber = std::make_unique<FiberStack>();
  } else {
    fiber = std::move(idle_.back());
    idle_.pop_back();
  }
  ++open_;
  FiberStack& begun = *fiber.release();  // owned by what it waits for; Recycle takes it back
  begun.Prepare(*this, task);
  begun.Resume();
  if (begun.ended()) {
    Recycle(begun);
  }
}

void Fibers::Recycle(FiberStack& fiber) {
  --open_;
  std::unique_ptr<FiberStack> own(&fiber);
  if (idle_.size() < kIdleMax) {
    idle_.push_back(std::move(own));
  }
}

void Fibers::MakeReady(FiberStack& fiber) {
  if (ready_.empty()) {
    boost::asio::post(context_, [this] { RunReady(); });
  }
  ready_.push_back(&fiber);
}

void Fibers::RunReady() {
  running_.clear();
  std::swap(ready_, running_);
  for (FiberStack* const fiber : running_) {
    fiber->Resume();
    if (fiber->ended()) {
      Recycle(*fiber);
    }
  }
}

}  // namespace weir::net
