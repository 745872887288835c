// Deadlines of calls: many, a few milliseconds away, and most never reached. A wheel of
// milliseconds: setting and removing one is a few instructions, and nothing is allocated.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "weir/time.h"

#include "base/assert.h"

namespace weir::redis {

class Wheel {
 public:
  class Entry {
   public:
    Entry() = default;
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    [[nodiscard]] bool set() const noexcept { return next_ != nullptr; }
    [[nodiscard]] Timestamp at() const noexcept { return at_; }

   private:
    friend class Wheel;
    Entry* next_ = nullptr;
    Entry* previous_ = nullptr;
    Timestamp at_{};
  };

  Wheel() {
    for (Entry& head : heads_) {
      head.next_ = head.previous_ = &head;
    }
  }

  // REQUIRES: !entry.set(). It is due at `at`, and found due up to a millisecond later.
  void Set(Entry& entry, Timestamp at) noexcept {
    WEIR_ASSERT(!entry.set());
    entry.at_ = at;
    const size_t slot = SlotOf(std::max(TickOf(at), swept_ + 1));
    Entry& head = heads_[slot];
    entry.next_ = &head;
    entry.previous_ = head.previous_;
    head.previous_->next_ = &entry;
    head.previous_ = &entry;
    used_[slot / 64] |= uint64_t{1} << (slot % 64);
    ++size_;
  }

  void Remove(Entry& entry) noexcept {
    if (entry.set()) {
      entry.previous_->next_ = entry.next_;
      entry.next_->previous_ = entry.previous_;
      entry.next_ = entry.previous_ = nullptr;
      --size_;
    }
  }

  // Takes out every entry that is due and calls due(entry), which may set and remove any.
  template <class Due>
  void Advance(Timestamp now, Due due) {
    // The present millisecond has not passed: what is set in it is found by the next call.
    const int64_t until = TickOf(now) - 1;
    // After a long pause one turn of the wheel meets them all.
    swept_ = std::max(swept_, until - static_cast<int64_t>(kTicks));
    while (swept_ < until && size_ != 0) {
      Sweep(SlotOf(++swept_), now, due);
    }
    swept_ = std::max(swept_, until);
  }

  // The earliest millisecond at whose end something may be due; Timestamp::max() if nothing is.
  [[nodiscard]] Timestamp Next() noexcept {
    if (size_ == 0) {
      return Timestamp::max();
    }
    for (int64_t tick = swept_ + 1; tick <= swept_ + static_cast<int64_t>(kTicks);) {
      const size_t slot = SlotOf(tick);
      uint64_t& word = used_[slot / 64];
      const uint64_t here = word >> (slot % 64);
      if (here == 0) {
        tick += static_cast<int64_t>(64 - slot % 64);
        continue;
      }
      tick += std::countr_zero(here);
      const size_t found = SlotOf(tick);
      if (heads_[found].next_ != &heads_[found]) {
        return EndOf(tick);
      }
      word &= ~(uint64_t{1} << (found % 64));  // emptied since
    }
    return EndOf(swept_ + 1);
  }

  [[nodiscard]] size_t size() const noexcept { return size_; }
  // When an entry set for `at` is found due.
  [[nodiscard]] static Timestamp FoundAt(Timestamp at) noexcept { return EndOf(TickOf(at)); }

 private:
  static constexpr size_t kTicks = 1024;
  static constexpr int64_t kTickNs = 1'000'000;

  static int64_t TickOf(Timestamp at) noexcept { return at.time_since_epoch().count() / kTickNs; }
  static Timestamp EndOf(int64_t tick) noexcept {
    return Timestamp(Duration((tick + 1) * kTickNs));
  }
  static size_t SlotOf(int64_t tick) noexcept { return static_cast<size_t>(tick) % kTicks; }

  template <class Due>
  void Sweep(size_t slot, Timestamp now, Due due) {
    Entry& head = heads_[slot];
    // Those of a later turn stay; what `due` adds goes behind the mark.
    Entry mark;
    mark.next_ = &head;
    mark.previous_ = head.previous_;
    head.previous_->next_ = &mark;
    head.previous_ = &mark;
    for (Entry* entry = head.next_; entry != &mark;) {
      if (entry->at_ <= now) {
        Remove(*entry);
        due(*entry);
        entry = head.next_;  // anything may have changed; those that stay are few
      } else {
        entry = entry->next_;
      }
    }
    mark.previous_->next_ = mark.next_;
    mark.next_->previous_ = mark.previous_;
  }

  std::array<Entry, kTicks> heads_;
  std::array<uint64_t, kTicks / 64> used_{};
  size_t size_ = 0;
  int64_t swept_ = 0;  // every tick up to this one has been looked at
};

}  // namespace weir::redis
