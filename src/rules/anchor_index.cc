#include "rules/anchor_index.h"

#include <algorithm>
#include <bit>

namespace weir::rules {

bool AnchorIndex::Fits(const Matcher& matcher) noexcept {
  switch (matcher.kind) {
    case MatcherKind::kExact:
    case MatcherKind::kPrefix:
    case MatcherKind::kSuffix:
    case MatcherKind::kAddress:
    case MatcherKind::kPresent:
      return true;
    case MatcherKind::kAffix:
      return !matcher.text.empty() || !matcher.tail.empty();
    case MatcherKind::kContains:
    case MatcherKind::kRegex:
    case MatcherKind::kAbsent:
      return false;
  }
  return false;
}

AnchorIndex::Probe AnchorIndex::ProbeFor(uint16_t attribute, const Matcher& matcher) noexcept {
  const auto length = static_cast<uint16_t>(matcher.text.size());
  switch (matcher.kind) {
    case MatcherKind::kExact:
      return {attribute, MatcherKind::kExact, 0, false};
    case MatcherKind::kSuffix:
      return {attribute, MatcherKind::kSuffix, length, false};
    case MatcherKind::kAffix:
      if (matcher.text.empty()) {
        return {attribute, MatcherKind::kSuffix, static_cast<uint16_t>(matcher.tail.size()), false};
      }
      return {attribute, MatcherKind::kPrefix, length, false};
    case MatcherKind::kAddress:
      return {attribute, MatcherKind::kAddress, static_cast<uint16_t>(matcher.prefix.bits),
              matcher.prefix.address.is_v4};
    default:
      // Presence is a beginning of no bytes.
      return {attribute, MatcherKind::kPrefix, length, false};
  }
}

void AnchorIndex::Add(uint16_t attribute, const Matcher& matcher, uint32_t rank) {
  const Probe probe = ProbeFor(attribute, matcher);
  if (std::find(probes_.begin(), probes_.end(), probe) == probes_.end()) {
    probes_.push_back(probe);
  }
  const bool by_tail = matcher.kind == MatcherKind::kAffix && matcher.text.empty();
  const uint64_t hash = matcher.kind == MatcherKind::kAddress
                            ? HashOf(probe, matcher.prefix.address)
                            : HashOf(probe, by_tail ? matcher.tail : matcher.text);
  building_[hash].push_back(rank);
}

void AnchorIndex::Finish() {
  entries_.assign(std::bit_ceil(2 * building_.size() + 1), Entry{});
  mask_ = entries_.size() - 1;
  for (auto& [hash, ranks] : building_) {
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    size_t at = hash & mask_;
    while (entries_[at].size != 0) {
      at = (at + 1) & mask_;
    }
    entries_[at] = {hash, static_cast<uint32_t>(ranks_.size()),
                    static_cast<uint32_t>(ranks.size())};
    ranks_.insert(ranks_.end(), ranks.begin(), ranks.end());
  }
  building_ = {};
}

}  // namespace weir::rules
