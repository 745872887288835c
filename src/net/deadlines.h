// When connections have waited long enough: one list a second, one timer for all.
//
// Moving a deadline further on is a store, because most deadlines move many times before they are
// met: an entry is looked at when the second comes that it was filed under, and filed anew if its
// deadline has moved on meanwhile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::net {

class Deadlines {
 public:
  using Seconds = uint32_t;  // of the loop's own coarse clock

  // One who waits. Base of what is filed here.
  class Entry {
   public:
    Entry() = default;
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    friend class Deadlines;

    Entry* next_ = nullptr;
    Entry* previous_ = nullptr;
    Seconds deadline_ = 0;
    Seconds filed_at_ = 0;
    uint32_t slot_ = kNoSlot;
  };

  static constexpr Seconds kNever = ~Seconds{0};

  // Adds it, or moves it.
  void Set(Entry& entry, Seconds at, Seconds now) noexcept {
    entry.deadline_ = at;
    if (entry.slot_ == kNoSlot || at < entry.filed_at_) {
      Remove(entry);
      File(entry, now);
    }
  }

  void Remove(Entry& entry) noexcept {
    if (entry.slot_ == kNoSlot) {
      return;
    }
    (entry.previous_ != nullptr ? entry.previous_->next_ : slots_[entry.slot_]) = entry.next_;
    if (entry.next_ != nullptr) {
      entry.next_->previous_ = entry.previous_;
    }
    entry.slot_ = kNoSlot;
  }

  // Calls `met(entry)` for all whose deadline has come; it may remove that entry, and no other, and
  // may give it a new deadline.
  template <class Met>
  void Advance(Seconds now, Met&& met) {
    // After a long pause one round is enough to see every slot.
    if (now - last_ > kSlots) {
      last_ = now - kSlots;
    }
    while (last_ != now) {
      ++last_;
      Entry* entry = slots_[last_ % kSlots];
      slots_[last_ % kSlots] = nullptr;
      while (entry != nullptr) {
        Entry* const next = entry->next_;
        entry->slot_ = kNoSlot;
        File(*entry, last_);
        if (entry->deadline_ <= now) {
          met(*entry);
        }
        entry = next;
      }
    }
  }

 private:
  static constexpr uint32_t kSlots = 64;
  static constexpr uint32_t kNoSlot = ~uint32_t{0};

  // Under its deadline, or the last second that there is a slot for; never under this one.
  void File(Entry& entry, Seconds now) noexcept {
    const Seconds at = entry.deadline_ <= now           ? now + 1
                       : entry.deadline_ - now < kSlots ? entry.deadline_
                                                        : now + kSlots - 1;
    entry.filed_at_ = at;
    entry.slot_ = at % kSlots;
    entry.previous_ = nullptr;
    entry.next_ = slots_[entry.slot_];
    if (entry.next_ != nullptr) {
      entry.next_->previous_ = &entry;
    }
    slots_[entry.slot_] = &entry;
  }

  std::array<Entry*, kSlots> slots_{};
  Seconds last_ = 0;
};

}  // namespace weir::net
