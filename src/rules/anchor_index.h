// Rules found by one of their conditions: for an exact value, a beginning, an end, an address range
// or presence a rule is looked up by hash and the other rules are never looked at.
//
// Only hashes are compared. What is found is a candidate, whose conditions are all tried again, so
// a collision costs a little time and nothing else.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/key_hash.h"
#include "rules/request_view.h"
#include "rules/rule_model.h"

namespace weir::rules {

class AnchorIndex {
 public:
  // False: a matcher of this kind cannot be looked up.
  [[nodiscard]] static bool Fits(const Matcher& matcher) noexcept;
  // REQUIRES: Fits(matcher).
  void Add(uint16_t attribute, const Matcher& matcher, uint32_t rank);
  // After the last Add.
  void Finish();

  // Calls visit(rank) for each candidate; the order is by probe, then by rank.
  template <class Visit>
  void Match(const RequestView& request, Visit visit) const {
    for (const Probe& probe : probes_) {
      uint64_t hash = 0;
      if (!HashOf(probe, request, hash)) {
        continue;
      }
      for (size_t at = hash & mask_; entries_[at].size != 0; at = (at + 1) & mask_) {
        if (entries_[at].hash == hash) {
          for (uint32_t i = 0; i < entries_[at].size; ++i) {
            visit(ranks_[entries_[at].begin + i]);
          }
          break;
        }
      }
    }
  }

 private:
  // One lookup that is made for every request.
  struct Probe {
    uint16_t attribute = 0;
    MatcherKind kind = MatcherKind::kExact;
    uint16_t length = 0;  // of the beginning or end, or of the address range in bits
    bool is_v4 = false;
    friend bool operator==(const Probe&, const Probe&) = default;
  };
  struct Entry {
    uint64_t hash = 0;
    uint32_t begin = 0;
    uint32_t size = 0;  // 0: free
  };

  // False: the request has nothing to look up.
  [[nodiscard]] static bool HashOf(const Probe& probe, const RequestView& request,
                                   uint64_t& hash) noexcept {
    if (probe.kind == MatcherKind::kAddress) {
      const auto& address = request.address();
      if (!address || address->is_v4 != probe.is_v4) {
        return false;
      }
      hash = HashOf(probe, address->Masked(probe.length));
      return true;
    }
    const std::string_view value = request.Value(probe.attribute);
    if (value.empty() || value.size() < probe.length) {
      return false;
    }
    const std::string_view part = probe.kind == MatcherKind::kExact ? value
                                  : probe.kind == MatcherKind::kSuffix
                                      ? value.substr(value.size() - probe.length)
                                      : value.substr(0, probe.length);
    hash = HashOf(probe, part);
    return true;
  }
  [[nodiscard]] static uint64_t HashOf(const Probe& probe, std::string_view part) noexcept {
    return base::MixHash(
        base::HashKey(part, base::ProcessSecret()),
        base::SaltFor(uint64_t{probe.attribute} << 32 | uint64_t{probe.length} << 8 |
                      static_cast<uint64_t>(probe.kind)));
  }
  [[nodiscard]] static uint64_t HashOf(const Probe& probe,
                                       const base::IpAddress& address) noexcept {
    const auto* const bytes = reinterpret_cast<const char*>(address.bytes.data());
    return HashOf(probe, std::string_view(bytes, address.bytes.size()));
  }
  [[nodiscard]] static Probe ProbeFor(uint16_t attribute, const Matcher& matcher) noexcept;

  std::vector<Probe> probes_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> ranks_;
  uint64_t mask_ = 0;
  std::unordered_map<uint64_t, std::vector<uint32_t>> building_;
};

}  // namespace weir::rules
