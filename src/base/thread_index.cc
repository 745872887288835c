#include "base/thread_index.h"

#include <vector>

#include "base/mutex.h"

namespace weir::base {

thread_local constinit uint32_t tls_thread_index = kNoThreadIndex;
thread_local constinit uint32_t tls_free_index = kNoThreadIndex;

namespace {

struct Registry {
  Mutex mutex;
  std::vector<uint32_t> free WEIR_GUARDED_BY(mutex);
  uint32_t next WEIR_GUARDED_BY(mutex) = 0;
};

// Never destroyed: a thread may end after the statics of this file are gone.
Registry& TheRegistry() {
  static Registry* const registry = new Registry;
  return *registry;
}

struct Lease {
  uint32_t index;

  Lease() : index(0) {
    Registry& registry = TheRegistry();
    const MutexLock lock(registry.mutex);
    if (registry.free.empty()) {
      index = registry.next++;
      registry.free.reserve(registry.next);  // so that giving an index back never allocates
    } else {
      index = registry.free.back();
      registry.free.pop_back();
    }
  }

  ~Lease() {
    // What is still to be destroyed may ask again, when the number is another thread's.
    tls_thread_index = kPastThreadIndex;
    tls_free_index = kNoThreadIndex;
    Registry& registry = TheRegistry();
    const MutexLock lock(registry.mutex);
    registry.free.push_back(index);
  }

  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
};

}  // namespace

uint32_t AssignThreadIndex() noexcept {
  thread_local const Lease lease;
  tls_thread_index = lease.index;
  tls_free_index = lease.index;
  return lease.index;
}

}  // namespace weir::base
