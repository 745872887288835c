// Looks into a store from outside, for tests: where a key lives, and what its lines carry.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/key_hash.h"
#include "store/memory/shared_state.h"

namespace weir::store {

class TableProbe {
 public:
  // `quota` counts the limiters of the store from 1 in the order of their making.
  explicit TableProbe(MemoryStore& store, uint32_t quota = 1)
      : state_(store.state()), binding_(*state_.BindingOf(quota)) {}

  [[nodiscard]] Table& table() const { return *binding_.table; }
  [[nodiscard]] bool compact() const { return table().kind() == algorithm::SlotKind::kCompact; }

  [[nodiscard]] uint64_t HashOf(std::string_view key) const {
    return base::MixHash(base::HashKey(key, state_.secret), binding_.salt);
  }

  [[nodiscard]] uint64_t HomeOf(std::string_view key) const { return table().HomeOf(HashOf(key)); }

  static constexpr int kNowhere = -1;

  // How far from home the key's nearest slot is, whether or not a search would get there.
  [[nodiscard]] int DistanceOf(std::string_view key) const {
    for (unsigned distance = 0; distance < Table::kProbe; ++distance) {
      if (SlotsOf(key, distance) != 0) {
        return static_cast<int>(distance);
      }
    }
    return kNowhere;
  }

  // Slots on all lines where the key could be. More than one is legal only if the others are stale.
  [[nodiscard]] unsigned SlotsOf(std::string_view key) const {
    unsigned slots = 0;
    for (unsigned distance = 0; distance < Table::kProbe; ++distance) {
      slots += SlotsOf(key, distance);
    }
    return slots;
  }

  [[nodiscard]] bool Overflowed(uint64_t line) const {
    return compact() ? store::Overflowed<CompactLayout>(table().line(line))
                     : store::Overflowed<WideLayout>(table().line(line));
  }

  // Lines that a search for a key with this home would look at, were it not in the table.
  [[nodiscard]] unsigned SearchLength(uint64_t home) const {
    unsigned length = 1;
    while (length < Table::kProbe && Overflowed(home + length - 1)) {
      ++length;
    }
    return length;
  }

  [[nodiscard]] uint64_t OverflowedLines() const {
    uint64_t lines = 0;
    for (uint64_t i = 0; i < table().line_count(); ++i) {
      lines += static_cast<uint64_t>(Overflowed(i));
    }
    return lines;
  }

  // Keys whose home is this line, and which the table can tell from one another and from those
  // whose tags are in `taken`: two keys of one home with one tag are one key to a compact table,
  // which hundreds of keys at one home meet in one run of a hundred.
  [[nodiscard]] std::vector<std::string> KeysAt(uint64_t home, size_t count,
                                                std::string_view prefix = "a usual key: ",
                                                std::set<uint64_t>* taken = nullptr) const {
    std::set<uint64_t> own;
    std::set<uint64_t>& tags = taken != nullptr ? *taken : own;
    std::vector<std::string> keys;
    for (uint64_t i = 0; keys.size() < count; ++i) {
      std::string key = std::string(prefix) + std::to_string(i);
      if (HomeOf(key) == home && tags.insert(IdentityOf(key)).second) {
        keys.push_back(std::move(key));
      }
    }
    return keys;
  }

  [[nodiscard]] std::vector<uint64_t> Words() const {
    std::vector<uint64_t> words;
    words.reserve(table().line_count() * 8);
    for (uint64_t i = 0; i < table().line_count(); ++i) {
      for (const std::atomic<uint64_t>& word : table().line(i).words) {
        words.push_back(word.load());
      }
    }
    return words;
  }

 private:
  [[nodiscard]] uint64_t IdentityOf(std::string_view key) const {
    return compact() ? CompactLayout::IdentityOf(HashOf(key), binding_.id)
                     : WideLayout::IdentityOf(HashOf(key), binding_.id);
  }

  [[nodiscard]] unsigned SlotsOf(std::string_view key, unsigned distance) const {
    const uint64_t hash = HashOf(key);
    Line& line = table().line(table().HomeOf(hash) + distance);
    return compact() ? Matches<CompactLayout>(line, hash) : Matches<WideLayout>(line, hash);
  }

  template <class Layout>
  [[nodiscard]] unsigned Matches(Line& line, uint64_t hash) const {
    const uint64_t identity = Layout::IdentityOf(hash, binding_.id);
    unsigned slots = 0;
    for (unsigned slot = 0; slot < Layout::kSlots; ++slot) {
      const Snapshot snapshot = Layout::Read(line, slot);
      slots += static_cast<unsigned>(Layout::IdentityAt(line, slot, snapshot) == identity);
    }
    return slots;
  }

  SharedState& state_;
  const Binding& binding_;
};

}  // namespace weir::store
