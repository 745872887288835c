// Objects that are used again and again, one at a time as a rule and several when their users have
// to wait. Not for several threads.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace weir::base {

template <class T>
class Pool {
 public:
  // One that goes back by itself. The pool must outlive it.
  class Lease {
   public:
    explicit Lease(Pool& pool) : pool_(pool), own_(pool.Take()) {}
    ~Lease() { pool_.free_.push_back(std::move(own_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    [[nodiscard]] T& operator*() const noexcept { return *own_; }
    [[nodiscard]] T* operator->() const noexcept { return own_.get(); }

   private:
    Pool& pool_;
    std::unique_ptr<T> own_;
  };

 private:
  std::unique_ptr<T> Take() {
    if (free_.empty()) {
      free_.reserve(++made_);  // so that giving one back never allocates
      return std::make_unique<T>();
    }
    std::unique_ptr<T> own = std::move(free_.back());
    free_.pop_back();
    return own;
  }

  std::vector<std::unique_ptr<T>> free_;
  size_t made_ = 0;
};

}  // namespace weir::base
