// Which rules a request may meet, for all rules at once and in a bounded time.
//
// Each alternative has a bit, at the place of its rank. The rules' conditions are sorted by what
// they look at: an attribute, the length of the path, its first segment, its second. For each of
// these the filter knows who does not care, and looks up who is content with the request's value;
// the bits of all others are cleared. So a pass over some words for each thing looked at is the
// most that any mix of rules can cost, and nothing is ever tried twice or in vain, as it would be
// in a tree of patterns.
//
// What is left is a candidate: only hashes are compared here, and canaries are not looked at. Who
// wins is for the matcher to try.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/time.h"

#include "base/ip_address.h"
#include "base/key_hash.h"
#include "rules/rank_sets.h"
#include "rules/regex_bank.h"
#include "rules/request_view.h"
#include "rules/rule_model.h"
#include "rules/text_table.h"

namespace weir::rules {

struct CompiledRule;

// The candidates of one request, as far as the set has words.
using RankBits = std::array<uint64_t, kMaxRankWords>;

class RuleFilter {
 public:
  // By rank; those of null stay out. REQUIRES: at most kMaxRanks.
  struct Entry {
    const CompiledRule* rule = nullptr;
    const PathPattern* pattern = nullptr;
    uint8_t group = 0;
  };
  void Compile(const std::vector<Entry>& entries);

  // Leaves in `left` the ranks that may match. False: there are none.
  bool Find(const RequestView& request, WallTime wall, const RegexBank& regexes,
            RankBits& left) const noexcept;
  // Takes all of a group away, from the word on.
  void DropGroup(uint8_t group, size_t word, RankBits& left) const noexcept;

  [[nodiscard]] size_t words() const noexcept { return sets_.words(); }

 private:
  using Id = RankSets::Id;
  using Ranks = std::vector<uint32_t>;

  // How many bits of an address, and whether it is v4.
  using Range = std::pair<uint8_t, bool>;
  // All conditions on one attribute.
  struct Dimension {
    uint16_t attribute = 0;
    uint64_t salt = 0;               // of its texts in the table
    uint64_t range_salt = 0;         // of its address ranges
    Id careless = RankSets::kEmpty;  // who has no condition on it
    Id present = RankSets::kEmpty;
    Id absent = RankSets::kEmpty;
    bool has_exact = false;
    bool is_quick = false;  // to look takes no longer than to see whether that is of use
    std::vector<Range> ranges;
    PrefixTable beginnings;
    PrefixTable ends;  // texts turned round
    SubstringTable parts;
    std::vector<std::pair<uint16_t, Id>> regexes;
  };
  // The same while it is built.
  struct Draft {
    Ranks caring;
    Ranks present;
    Ranks absent;
    std::map<std::string, Ranks> exact;
    std::map<std::string, Ranks> beginnings;
    std::map<std::string, Ranks> ends;
    std::map<std::string, Ranks> parts;
    std::map<std::pair<Range, std::string>, Ranks> ranges;
    std::map<uint16_t, Ranks> regexes;
  };
  // Kinds of dimensions of one attribute. A text and its end are two: both must hold.
  enum class Kind : uint8_t { kCheap, kTail, kCostly };
  using Drafts = std::map<std::pair<Kind, uint16_t>, Draft>;
  // Who needs one of these attributes to count by.
  struct KeyNeed {
    std::vector<uint16_t> any;
    Id ranks = RankSets::kEmpty;
  };
  struct SegmentPlace {
    uint64_t salt = 0;
    Id careless = RankSets::kEmpty;  // who asks for no text there
  };
  struct Slot {
    uint64_t hash = 0;
    Id set = RankSets::kEmpty;  // kEmpty: free
  };
  class Narrowing;

  void DraftRule(uint32_t rank, const CompiledRule& rule, Drafts& drafts);
  void CompileDeadlines(const Ranks& all);
  void CompilePaths(const std::vector<Entry>& entries, const Ranks& all);
  void CompileKeys(const std::vector<Entry>& entries, const Ranks& all);
  Dimension MakeDimension(uint16_t attribute, Kind kind, Draft& draft, const Ranks& all);
  void Put(uint64_t hash, Id set) { building_.emplace_back(hash, set); }
  void FinishTable();

  [[nodiscard]] Id Look(uint64_t hash) const noexcept;
  // These narrow `left`. False: nobody is left.
  bool DropExpired(WallTime wall, RankBits& left) const noexcept;
  bool NarrowByPath(const RequestView& request, RankBits& left) const noexcept;
  bool NarrowBy(const Dimension& dimension, const RequestView& request, const RegexBank& regexes,
                RankBits& left) const noexcept;
  // Whether any of those left has a condition there, and whether more than a few have.
  [[nodiscard]] bool AnyCare(Id careless, const RankBits& left) const noexcept {
    return !sets_.AreAmong(sets_.Bits(careless), left.data());
  }
  [[nodiscard]] bool ManyCare(Id careless, const RankBits& left) const noexcept;

  [[nodiscard]] static uint64_t HashOf(std::string_view text, uint64_t salt) noexcept {
    return base::MixHash(base::HashKey(text, base::ProcessSecret()), salt);
  }
  [[nodiscard]] static uint64_t HashOf(const base::IpAddress& masked, Range range,
                                       uint64_t salt) noexcept;

  RankSets sets_;
  Id all_ = RankSets::kEmpty;
  bool tells_apart_ = false;  // else there are so few that each of them is tried
  std::vector<Id> groups_;
  std::vector<std::pair<WallTime, uint32_t>> deadlines_;  // in order
  std::vector<Id> alive_;  // every so many deadlines: who is left when all before have passed
  std::vector<Dimension> cheap_;
  std::vector<Dimension> costly_;  // regular expressions: looked at last, and only if many are left
  std::vector<KeyNeed> keys_;
  Id keyless_ = RankSets::kEmpty;  // who is in none of the needs
  bool has_paths_ = false;
  Id no_path_ = RankSets::kEmpty;     // who asks for no pattern
  std::vector<Id> by_length_;         // by segments of a path: and who asks for one of this length
  std::vector<SegmentPlace> places_;  // by place in a path
  std::vector<Slot> table_;           // open addressing; a power of two of them
  std::vector<std::pair<uint64_t, Id>> building_;
};

}  // namespace weir::rules
