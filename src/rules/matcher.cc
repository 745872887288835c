#include "rules/matcher.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/key_hash.h"
#include "base/room.h"
#include "rules/key_builder.h"

namespace weir::rules {

namespace {

bool Holds(const CompiledSet& set, const CompiledMatcher& matcher, std::string_view value,
           const RequestView& request) noexcept {
  const Matcher& source = *matcher.source;
  switch (source.kind) {
    case MatcherKind::kExact:
      return value == source.text;
    case MatcherKind::kPrefix:
      return value.starts_with(source.text);
    case MatcherKind::kSuffix:
      return value.ends_with(source.text);
    case MatcherKind::kContains:
      // Of glibc, whose search is linear whatever the texts are.
      return memmem(value.data(), value.size(), source.text.data(), source.text.size()) != nullptr;
    case MatcherKind::kAffix:
      return value.size() >= source.text.size() + source.tail.size() &&
             value.starts_with(source.text) && value.ends_with(source.tail);
    case MatcherKind::kRegex:
      return set.regexes.Matches(matcher.regex, value, request.regexes());
    case MatcherKind::kAddress:
      return request.address() && source.prefix.Contains(*request.address());
    case MatcherKind::kPresent:
      return true;
    case MatcherKind::kAbsent:
      return false;
  }
  return false;
}

uint64_t CanaryHash(const CompiledRule& rule, const PathPattern* pattern,
                    const RequestView& request, const MatchContext& context) noexcept {
  std::array<char, 4096> key;
  const size_t size = BuildKey(rule, pattern, request, context.ipv6_bits, key);
  return base::HashKeySeeded(std::string_view(key.data(), size), context.fleet_secret);
}

bool IsChosen(uint64_t key_hash, uint64_t salt, uint32_t permille) noexcept {
  return base::MixHash(key_hash, salt) % 1000 < permille;
}

class Search {
 public:
  Search(const CompiledSet& set, const RequestView& request, const MatchContext& context) noexcept
      : set_(set), request_(request), context_(context) {}

  // By rank, so that the first of a group that matches is its winner.
  void Run(Winners& winners) noexcept {
    winners.size = 0;
    RankBits left;
    uint64_t found = 0;
    const bool any = set_.filter.Find(request_, context_.wall, set_.regexes, left);
    const bool canaries = !set_.canaries.empty();
    if (any && canaries) {
      key_is_hashed_.fill(0);
    }
    for (size_t word = 0; any && word < set_.filter.words(); ++word) {
      if (canaries && left[word] != 0) {
        left[word] &= ~NotChosen(word, left[word]);
      }
      while (left[word] != 0) {
        const auto bit = static_cast<size_t>(std::countr_zero(left[word]));
        left[word] &= left[word] - 1;
        const auto rank = static_cast<uint32_t>(word * kWordBits + bit);
        if (Matches(rank)) {
          const uint8_t group = set_.alternatives[rank].group;
          found |= uint64_t{1} << group;
          winners.ranks[winners.size++] = rank;
          set_.filter.DropGroup(group, word, left);
        }
      }
    }
    const bool only_shadows = (found & ~set_.shadow_groups) == 0;
    if (only_shadows && set_.default_rank != kNoRank && Matches(set_.default_rank)) {
      winners.ranks[winners.size++] = set_.default_rank;
    }
    if (winners.size > 1) {
      std::sort(winners.ranks.begin(), winners.ranks.begin() + winners.size,
                [this](uint32_t a, uint32_t b) {
                  return set_.alternatives[a].rule < set_.alternatives[b].rule;
                });
    }
  }

 private:
  // Which canaries among the candidates of a word are not for this request's keys. Asked word by
  // word: most often one of the first is chosen, and the rest of its group need not be asked.
  [[nodiscard]] uint64_t NotChosen(size_t word, uint64_t left) noexcept {
    uint64_t others = 0;
    for (uint32_t i = set_.first_canary[word]; i < set_.first_canary[word + 1]; ++i) {
      const Canary& canary = set_.canaries[i];
      const uint32_t place = canary.rank % kWordBits;
      if ((left >> place & 1) != 0) {
        const bool chosen = IsChosen(KeyHash(canary), canary.salt, canary.permille);
        others |= uint64_t{!chosen} << place;
      }
    }
    return others;
  }

  // One key is made once, however many rules share it.
  [[nodiscard]] uint64_t KeyHash(const Canary& canary) noexcept {
    const bool kept = canary.key < kKeptHashes;
    const uint64_t bit = uint64_t{1} << (canary.key % kWordBits);
    if (kept && (key_is_hashed_[canary.key / kWordBits] & bit) != 0) [[likely]] {
      return key_hashes_[canary.key];
    }
    const CompiledRule& rule = set_.rules[set_.alternatives[canary.rank].rule];
    const uint64_t hash = CanaryHash(rule, nullptr, request_, context_);
    if (kept) {
      key_is_hashed_[canary.key / kWordBits] |= bit;
      key_hashes_[canary.key] = hash;
    }
    return hash;
  }

  [[nodiscard]] bool Matches(uint32_t rank) const noexcept {
    const Alternative& alternative = set_.alternatives[rank];
    const CompiledRule& rule = set_.rules[alternative.rule];
    if (alternative.pattern != nullptr &&
        (request_.path().empty() || !rules::Matches(*alternative.pattern, request_.segments()))) {
      return false;
    }
    for (const CompiledCondition& condition : rule.when) {
      if (!rules::Holds(set_, condition, request_)) {
        return false;
      }
    }
    if (context_.wall >= rule.view->expires) {
      return false;
    }
    if (rule.model->on_missing == OnMissing::kSkip && !HasKey(rule, request_)) {
      return false;
    }
    return rule.view->canary_permille == 1000 ||
           InCanary(rule, alternative.pattern, request_, context_);
  }

  // Ways to make a key whose hashes are kept; hardly any set has more.
  static constexpr size_t kKeptHashes = 1024;

  const CompiledSet& set_;
  const RequestView& request_;
  const MatchContext& context_;
  // Written when there are canaries.
  base::Room<uint64_t, kKeptHashes> key_hashes_;
  std::array<uint64_t, kKeptHashes / kWordBits> key_is_hashed_;
};

}  // namespace

bool Holds(const CompiledSet& set, const CompiledCondition& condition,
           const RequestView& request) noexcept {
  const std::string_view value = request.Value(condition.attribute);
  return std::any_of(condition.any.begin(), condition.any.end(),
                     [&](const CompiledMatcher& matcher) {
                       return value.empty() ? matcher.source->kind == MatcherKind::kAbsent
                                            : Holds(set, matcher, value, request);
                     });
}

bool InCanary(const CompiledRule& rule, const PathPattern* pattern, const RequestView& request,
              const MatchContext& context) noexcept {
  return IsChosen(CanaryHash(rule, pattern, request, context), rule.canary_salt,
                  rule.view->canary_permille);
}

void FindWinners(const CompiledSet& set, const RequestView& request, const MatchContext& context,
                 Winners& winners) noexcept {
  Search(set, request, context).Run(winners);
}

}  // namespace weir::rules
