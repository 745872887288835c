// std::mutex with Clang's thread-safety annotations, so that what a mutex guards is checked by the
// compiler (the `clang` preset makes a violation an error).
#pragma once

#include <mutex>

#if defined(__clang__)
#define WEIR_TSA(x) __attribute__((x))
#else
#define WEIR_TSA(x)
#endif

#define WEIR_CAPABILITY(name) WEIR_TSA(capability(name))
#define WEIR_SCOPED_CAPABILITY WEIR_TSA(scoped_lockable)
#define WEIR_GUARDED_BY(x) WEIR_TSA(guarded_by(x))
#define WEIR_REQUIRES(...) WEIR_TSA(requires_capability(__VA_ARGS__))
#define WEIR_ACQUIRE(...) WEIR_TSA(acquire_capability(__VA_ARGS__))
#define WEIR_TRY_ACQUIRE(...) WEIR_TSA(try_acquire_capability(__VA_ARGS__))
#define WEIR_RELEASE(...) WEIR_TSA(release_capability(__VA_ARGS__))
#define WEIR_ASSERT_HELD(...) WEIR_TSA(assert_capability(__VA_ARGS__))

namespace weir::base {

class WEIR_CAPABILITY("mutex") Mutex {
 public:
  void Lock() WEIR_ACQUIRE() { mutex_.lock(); }
  bool TryLock() WEIR_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void Unlock() WEIR_RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class WEIR_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) WEIR_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() WEIR_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace weir::base
