#include "rules/matcher.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/key_hash.h"
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

class Search {
 public:
  Search(const CompiledSet& set, const RequestView& request, const MatchContext& context) noexcept
      : set_(set), request_(request), context_(context) {
    std::fill_n(best_.begin(), set.group_names.size(), kNoRank);
  }

  void Consider(uint32_t rank) noexcept {
    const Alternative& alternative = set_.alternatives[rank];
    if (rank >= best_[alternative.group]) {
      return;
    }
    const CompiledRule& rule = set_.rules[alternative.rule];
    for (const CompiledCondition& condition : rule.when) {
      if (!rules::Holds(set_, condition, request_)) {
        return;
      }
    }
    if (context_.wall >= rule.view->expires) {
      return;
    }
    if (rule.model->on_missing == OnMissing::kSkip && !HasKey(rule, request_)) {
      return;
    }
    if (rule.view->canary_permille < 1000 &&
        !InCanary(rule, alternative.pattern, request_, context_)) {
      return;
    }
    best_[alternative.group] = rank;
    found_ |= uint64_t{1} << alternative.group;
  }

  void Run() noexcept {
    const auto consider = [this](uint32_t rank) { Consider(rank); };
    if (!request_.path().empty()) {
      set_.paths.Match(
          request_.segments(),
          [this](uint64_t groups, uint32_t least) { return Hopeless(groups, least); }, consider);
    }
    set_.anchors.Match(request_, consider);
    for (const uint32_t rank : set_.unanchored) {
      Consider(rank);
    }
    const bool only_shadows = (found_ & ~set_.shadow_groups) == 0;
    if (only_shadows && set_.default_rank != kNoRank) {
      Consider(set_.default_rank);
    }
  }

  void Take(Winners& winners) const noexcept {
    winners.size = 0;
    for (uint64_t left = found_; left != 0; left &= left - 1) {
      winners.ranks[winners.size++] = best_[static_cast<size_t>(std::countr_zero(left))];
    }
    std::sort(winners.ranks.begin(), winners.ranks.begin() + winners.size,
              [this](uint32_t a, uint32_t b) {
                return set_.alternatives[a].rule < set_.alternatives[b].rule;
              });
  }

 private:
  // Whether all these groups have found something better than the rank.
  [[nodiscard]] bool Hopeless(uint64_t groups, uint32_t least) const noexcept {
    for (; groups != 0; groups &= groups - 1) {
      if (best_[static_cast<size_t>(std::countr_zero(groups))] > least) {
        return false;
      }
    }
    return true;
  }

  const CompiledSet& set_;
  const RequestView& request_;
  const MatchContext& context_;
  uint64_t found_ = 0;
  std::array<uint32_t, kMaxGroups> best_;
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
  std::array<char, 4096> key;
  const size_t size = BuildKey(rule, pattern, request, context.ipv6_bits, key);
  const uint64_t hash = base::HashKeySeeded(std::string_view(key.data(), size),
                                            context.fleet_secret ^ rule.canary_seed);
  return hash % 1000 < rule.view->canary_permille;
}

void FindWinners(const CompiledSet& set, const RequestView& request, const MatchContext& context,
                 Winners& winners) noexcept {
  Search search(set, request, context);
  search.Run();
  search.Take(winners);
}

}  // namespace weir::rules
