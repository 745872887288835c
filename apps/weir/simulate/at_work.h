// What is at work, by when it ends.
#pragma once

#include <queue>
#include <utility>
#include <vector>

#include "weir/time.h"

namespace weir::simulate {

template <class Item>
class AtWork {
 public:
  void Add(Duration end, Item item) { entries_.push({end, std::move(item)}); }

  // Hands all that has ended by `now` to done(end, item), in order.
  template <class Done>
  void EndUntil(Duration now, Done done) {
    while (!entries_.empty() && entries_.top().end <= now) {
      done(entries_.top().end, entries_.top().item);
      entries_.pop();
    }
  }

 private:
  struct Entry {
    Duration end;
    Item item;

    friend bool operator<(const Entry& a, const Entry& b) noexcept { return a.end > b.end; }
  };

  std::priority_queue<Entry> entries_;  // the earliest end on top
};

}  // namespace weir::simulate
