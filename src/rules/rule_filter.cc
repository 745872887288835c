#include "rules/rule_filter.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <set>

#include "rules/compiled_set.h"

namespace weir::rules {

namespace {

using SegmentKind = PatternSegment::Kind;

// What salts are made of: what is looked at, above the numbers of attributes and places.
constexpr uint64_t kTextSpace = uint64_t{1} << 32;
constexpr uint64_t kRangeSpace = uint64_t{2} << 32;
constexpr uint64_t kSegmentSpace = uint64_t{3} << 32;

// For so few it is cheaper to try each than to run all regular expressions.
constexpr size_t kFew = 8;
// For so few it is cheaper to try each than to look at anything.
constexpr size_t kVeryFew = 3;
// Deadlines between two sets of who is left when all before have passed.
constexpr size_t kStride = 256;
// Different needs of keys that are worth a look; any more are left to be tried.
constexpr size_t kMaxKeyNeeds = 256;

bool IsCostly(const Matcher& matcher) {
  return matcher.kind == MatcherKind::kRegex || matcher.kind == MatcherKind::kContains;
}

bool HasTwoEnds(const Matcher& matcher) {
  return matcher.kind == MatcherKind::kAffix && !matcher.text.empty() && !matcher.tail.empty();
}

std::string Reversed(std::string_view text) {
  return {text.rbegin(), text.rend()};
}

std::vector<uint32_t> Without(const std::vector<uint32_t>& all, std::vector<uint32_t> some) {
  std::sort(some.begin(), some.end());
  std::vector<uint32_t> rest;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::back_inserter(rest));
  return rest;
}

}  // namespace

// One pass over the words for one thing looked at.
class RuleFilter::Narrowing {
 public:
  Narrowing(const RankSets& sets, Id careless) noexcept
      : sets_(sets), careless_(sets.Bits(careless)) {}

  // Who is content with what was found.
  void Keep(Id id) noexcept {
    if (id == RankSets::kEmpty) {
      return;
    }
    if (first_ == RankSets::kEmpty && sets_.Bits(id) != nullptr) {
      first_ = id;
      return;
    }
    if (!gathered_) {
      std::copy_n(careless_, sets_.words(), kept_.begin());
      gathered_ = true;
    }
    sets_.Include(id, kept_.data());
  }

  // False: nobody is left.
  bool Apply(RankBits& left) noexcept {
    if (!gathered_) {
      const uint64_t* const kept = first_ == RankSets::kEmpty ? careless_ : sets_.Bits(first_);
      return sets_.Narrow(kept, left.data());
    }
    if (first_ != RankSets::kEmpty) {
      sets_.Include(first_, kept_.data());
    }
    return sets_.Narrow(kept_.data(), left.data());
  }

 private:
  const RankSets& sets_;
  const uint64_t* careless_;
  Id first_ = RankSets::kEmpty;  // large, so with the careless in it, and not gathered
  bool gathered_ = false;
  RankBits kept_;  // written when it is needed
};

uint64_t RuleFilter::HashOf(const base::IpAddress& masked, Range range, uint64_t salt) noexcept {
  const auto* const bytes = reinterpret_cast<const char*>(masked.bytes.data());
  return HashOf(std::string_view(bytes, masked.bytes.size()),
                salt + (uint64_t{range.first} << 2 | (range.second ? 2 : 0)));
}

void RuleFilter::Compile(const std::vector<Entry>& entries) {
  sets_ = RankSets(entries.size());
  Ranks all;
  std::vector<Ranks> groups;
  Drafts drafts;
  for (uint32_t rank = 0; rank < entries.size(); ++rank) {
    const Entry& entry = entries[rank];
    if (entry.rule == nullptr) {
      continue;
    }
    all.push_back(rank);
    groups.resize(std::max<size_t>(groups.size(), entry.group + 1U));
    groups[entry.group].push_back(rank);
    if (entry.rule->view->expires != kNever) {
      deadlines_.emplace_back(entry.rule->view->expires, rank);
    }
    DraftRule(rank, *entry.rule, drafts);
  }
  all_ = sets_.AddBits(all);
  tells_apart_ = all.size() > kVeryFew;
  for (const Ranks& group : groups) {
    groups_.push_back(sets_.AddBits(group));
  }
  CompileDeadlines(all);
  CompilePaths(entries, all);
  CompileKeys(entries, all);
  for (auto& [what, draft] : drafts) {
    auto& dimensions = what.first == Kind::kCostly ? costly_ : cheap_;
    dimensions.push_back(MakeDimension(what.second, what.first, draft, all));
  }
  FinishTable();
}

void RuleFilter::DraftRule(uint32_t rank, const CompiledRule& rule, Drafts& drafts) {
  std::set<uint16_t> needed;  // to count by
  for (const std::vector<KeySource>& part : rule.per) {
    const KeySource& source = part.front();
    const bool is_plain =
        source.kind == KeySource::Kind::kText || source.kind == KeySource::Kind::kAddress;
    if (rule.model->on_missing == OnMissing::kSkip && part.size() == 1 && is_plain) {
      needed.insert(source.attribute);
    }
  }
  for (const CompiledCondition& condition : rule.when) {
    const auto& any = condition.any;
    const bool costly = std::any_of(any.begin(), any.end(), [](const CompiledMatcher& matcher) {
      return IsCostly(*matcher.source);
    });
    const bool two_ends = std::all_of(any.begin(), any.end(), [](const CompiledMatcher& matcher) {
      return HasTwoEnds(*matcher.source);
    });
    Draft& draft = drafts[{costly ? Kind::kCostly : Kind::kCheap, condition.attribute}];
    draft.caring.push_back(rank);
    for (const CompiledMatcher& compiled : any) {
      const Matcher& matcher = *compiled.source;
      switch (matcher.kind) {
        case MatcherKind::kExact:
          draft.exact[matcher.text].push_back(rank);
          break;
        case MatcherKind::kPrefix:
          draft.beginnings[matcher.text].push_back(rank);
          break;
        case MatcherKind::kSuffix:
          draft.ends[Reversed(matcher.text)].push_back(rank);
          break;
        case MatcherKind::kAffix:
          if (matcher.text.empty()) {
            draft.ends[Reversed(matcher.tail)].push_back(rank);
          } else {
            draft.beginnings[matcher.text].push_back(rank);
          }
          break;
        case MatcherKind::kContains:
          draft.parts[matcher.text].push_back(rank);
          break;
        case MatcherKind::kRegex:
          draft.regexes[compiled.regex].push_back(rank);
          break;
        case MatcherKind::kAddress: {
          const Range range(static_cast<uint8_t>(matcher.prefix.bits),
                            matcher.prefix.address.is_v4);
          const auto& bytes = matcher.prefix.address.bytes;
          draft.ranges[{range, std::string(bytes.begin(), bytes.end())}].push_back(rank);
          break;
        }
        case MatcherKind::kPresent:
          draft.present.push_back(rank);
          break;
        case MatcherKind::kAbsent:
          if (!needed.contains(condition.attribute)) {
            draft.absent.push_back(rank);
          }
          break;
      }
    }
    if (two_ends) {
      Draft& tails = drafts[{Kind::kTail, condition.attribute}];
      tails.caring.push_back(rank);
      for (const CompiledMatcher& compiled : any) {
        tails.ends[Reversed(compiled.source->tail)].push_back(rank);
      }
    }
    needed.erase(condition.attribute);
  }
  for (const uint16_t attribute : needed) {
    Draft& draft = drafts[{Kind::kCheap, attribute}];
    draft.caring.push_back(rank);
    draft.present.push_back(rank);
  }
}

RuleFilter::Dimension RuleFilter::MakeDimension(uint16_t attribute, Kind kind, Draft& draft,
                                                const Ranks& all) {
  Dimension made;
  made.attribute = attribute;
  const uint64_t what = uint64_t{attribute} << 2 | static_cast<uint64_t>(kind);
  made.salt = base::SaltFor(kTextSpace | what);
  made.range_salt = base::SaltFor(kRangeSpace | what);
  made.careless = sets_.AddBits(Without(all, std::move(draft.caring)));
  const auto add = [&](Ranks ranks) { return sets_.AddBeside(std::move(ranks), made.careless); };
  // A text of no bytes is contained in all, and begins all.
  const auto take_empty = [&draft](std::map<std::string, Ranks>& texts) {
    if (const auto found = texts.find(""); found != texts.end()) {
      draft.present.insert(draft.present.end(), found->second.begin(), found->second.end());
      texts.erase(found);
    }
  };
  take_empty(draft.beginnings);
  take_empty(draft.ends);
  take_empty(draft.parts);
  for (auto& [text, ranks] : draft.parts) {
    const Id id = add(ranks);
    if (!made.parts.Add(text, id)) {  // left to be tried one by one
      draft.present.insert(draft.present.end(), ranks.begin(), ranks.end());
    }
  }
  made.parts.Finish();
  for (auto& [text, ranks] : draft.beginnings) {
    made.beginnings.Add(text, add(std::move(ranks)));
  }
  made.beginnings.Finish();
  for (auto& [text, ranks] : draft.ends) {
    made.ends.Add(text, add(std::move(ranks)));
  }
  made.ends.Finish();
  made.has_exact = !draft.exact.empty();
  for (auto& [text, ranks] : draft.exact) {
    Put(HashOf(text, made.salt), add(std::move(ranks)));
  }
  for (auto& [place, ranks] : draft.ranges) {
    const auto& [range, bytes] = place;
    base::IpAddress address;
    std::copy(bytes.begin(), bytes.end(), address.bytes.begin());
    if (made.ranges.empty() || made.ranges.back() != range) {
      made.ranges.push_back(range);
    }
    Put(HashOf(address, range, made.range_salt), add(std::move(ranks)));
  }
  for (auto& [regex, ranks] : draft.regexes) {
    made.regexes.emplace_back(regex, add(std::move(ranks)));
  }
  made.present = add(std::move(draft.present));
  made.absent = add(std::move(draft.absent));
  made.is_quick = made.ranges.empty() && made.beginnings.empty() && made.ends.empty() &&
                  made.parts.empty() && made.regexes.empty();
  return made;
}

void RuleFilter::CompileDeadlines(const Ranks& all) {
  std::sort(deadlines_.begin(), deadlines_.end());
  Ranks gone;
  for (size_t i = 0; i < deadlines_.size(); ++i) {
    if (i % kStride == 0) {
      alive_.push_back(sets_.AddBits(Without(all, gone)));
    }
    gone.push_back(deadlines_[i].second);
  }
}

bool RuleFilter::DropExpired(WallTime wall, RankBits& left) const noexcept {
  const auto first = std::partition_point(deadlines_.begin(), deadlines_.end(),
                                          [wall](const auto& one) { return one.first <= wall; });
  const auto expired = static_cast<size_t>(first - deadlines_.begin());
  // What this set does not know of yet follows one by one.
  const size_t known = std::min(expired / kStride, alive_.size() - 1);
  for (size_t i = known * kStride; i < expired; ++i) {
    const uint32_t rank = deadlines_[i].second;
    left[rank / kWordBits] &= ~(uint64_t{1} << (rank % kWordBits));
  }
  return sets_.Narrow(sets_.Bits(alive_[known]), left.data());
}

void RuleFilter::CompilePaths(const std::vector<Entry>& entries, const Ranks& all) {
  constexpr size_t kLengths = PathPattern::kMaxSegments + 2;  // the last is for longer ones
  Ranks without;
  std::vector<Ranks> by_length(kLengths);
  std::vector<Ranks> caring;
  std::vector<std::map<std::string, Ranks>> texts;
  for (const uint32_t rank : all) {
    const PathPattern* const pattern = entries[rank].pattern;
    if (pattern == nullptr) {
      without.push_back(rank);
      continue;
    }
    has_paths_ = true;
    const size_t size = pattern->segments.size();
    for (size_t length = size; length < (pattern->rest ? kLengths : size + 1); ++length) {
      by_length[length].push_back(rank);
    }
    for (size_t i = 0; i < size; ++i) {
      if (pattern->segments[i].kind == SegmentKind::kText) {
        texts.resize(std::max(texts.size(), i + 1));
        caring.resize(texts.size());
        caring[i].push_back(rank);
        texts[i][pattern->segments[i].text].push_back(rank);
      }
    }
  }
  if (!has_paths_) {
    return;
  }
  no_path_ = sets_.AddBits(without);
  for (Ranks& ranks : by_length) {
    ranks.insert(ranks.end(), without.begin(), without.end());
    by_length_.push_back(sets_.AddBits(ranks));
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    const uint64_t salt = base::SaltFor(kSegmentSpace | i);
    const Id careless = sets_.AddBits(Without(all, std::move(caring[i])));
    places_.push_back({salt, careless});
    for (auto& [text, ranks] : texts[i]) {
      Put(HashOf(text, salt), sets_.AddBeside(std::move(ranks), careless));
    }
  }
}

void RuleFilter::CompileKeys(const std::vector<Entry>& entries, const Ranks& all) {
  std::map<std::vector<uint16_t>, Ranks> needs;
  Ranks needy;
  for (const uint32_t rank : all) {
    const CompiledRule& rule = *entries[rank].rule;
    for (const std::vector<KeySource>& part : rule.per) {
      std::vector<uint16_t> any;
      bool plain = part.size() > 1 && rule.model->on_missing == OnMissing::kSkip;
      for (const KeySource& source : part) {
        plain = plain &&
                (source.kind == KeySource::Kind::kText || source.kind == KeySource::Kind::kAddress);
        any.push_back(source.attribute);
      }
      if (plain && (needs.size() < kMaxKeyNeeds || needs.contains(any))) {
        needs[any].push_back(rank);
        needy.push_back(rank);
        break;  // one need a rule is looked at; the matcher tries all
      }
    }
  }
  keyless_ = sets_.AddBits(Without(all, std::move(needy)));
  for (auto& [any, ranks] : needs) {
    keys_.push_back({any, sets_.AddBeside(std::move(ranks), keyless_)});
  }
}

void RuleFilter::FinishTable() {
  table_.assign(std::bit_ceil(2 * building_.size() + 1), Slot{});
  for (const auto& [hash, set] : building_) {
    size_t at = hash & (table_.size() - 1);
    while (table_[at].set != RankSets::kEmpty) {
      at = (at + 1) & (table_.size() - 1);
    }
    table_[at] = {hash, set};
  }
  building_ = {};
}

RuleFilter::Id RuleFilter::Look(uint64_t hash) const noexcept {
  const size_t mask = table_.size() - 1;
  for (size_t at = hash & mask; table_[at].set != RankSets::kEmpty; at = (at + 1) & mask) {
    if (table_[at].hash == hash) {
      return table_[at].set;
    }
  }
  return RankSets::kEmpty;
}

bool RuleFilter::ManyCare(Id careless, const RankBits& left) const noexcept {
  const uint64_t* const words = sets_.Bits(careless);
  size_t count = 0;
  for (size_t i = 0; i < sets_.words() && count <= kFew; ++i) {
    count += static_cast<size_t>(std::popcount(left[i] & ~words[i]));
  }
  return count > kFew;
}

bool RuleFilter::NarrowByPath(const RequestView& request, RankBits& left) const noexcept {
  const PathSegments& path = request.segments();
  const size_t known = std::min({path.size(), places_.size(), PathPattern::kMaxSegments});
  for (size_t i = 0; i < known; ++i) {
    if (!AnyCare(places_[i].careless, left)) {
      continue;
    }
    Narrowing narrowing(sets_, places_[i].careless);
    narrowing.Keep(Look(HashOf(path[i], places_[i].salt)));
    if (!narrowing.Apply(left)) {
      return false;
    }
  }
  return true;
}

bool RuleFilter::NarrowBy(const Dimension& dimension, const RequestView& request,
                          const RegexBank& regexes, RankBits& left) const noexcept {
  Narrowing narrowing(sets_, dimension.careless);
  const std::string_view value = request.Value(dimension.attribute);
  if (value.empty()) {
    narrowing.Keep(dimension.absent);
    return narrowing.Apply(left);
  }
  const auto keep = [&narrowing](Id id) { narrowing.Keep(id); };
  keep(dimension.present);
  if (dimension.has_exact) {
    keep(Look(HashOf(value, dimension.salt)));
  }
  for (const Range& range : dimension.ranges) {
    if (request.address() && request.address()->is_v4 == range.second) {
      keep(Look(HashOf(request.address()->Masked(range.first), range, dimension.range_salt)));
    }
  }
  if (!dimension.beginnings.empty()) {
    dimension.beginnings.Match(value, keep);
  }
  if (!dimension.ends.empty()) {
    std::array<char, kMaxAttributeBytes> turned;
    std::reverse_copy(value.begin(), value.end(), turned.begin());
    dimension.ends.Match({turned.data(), value.size()}, keep);
  }
  if (!dimension.parts.empty()) {
    dimension.parts.Match(value, keep);
  }
  for (const auto& [regex, ranks] : dimension.regexes) {
    if (regexes.Matches(regex, value, request.regexes())) {
      keep(ranks);
    }
  }
  return narrowing.Apply(left);
}

bool RuleFilter::Find(const RequestView& request, WallTime wall, const RegexBank& regexes,
                      RankBits& left) const noexcept {
  if (all_ == RankSets::kEmpty) {
    return false;
  }
  std::copy_n(sets_.Bits(all_), sets_.words(), left.begin());
  if (!tells_apart_) {
    return true;
  }
  if (has_paths_) {
    const Id fitting = request.path().empty() ? no_path_ : by_length_[request.segments().size()];
    if (!sets_.Narrow(sets_.Bits(fitting), left.data())) {
      return false;
    }
  }
  if (!deadlines_.empty() && !DropExpired(wall, left)) {
    return false;
  }
  if (!keys_.empty() && AnyCare(keyless_, left)) {
    Narrowing narrowing(sets_, keyless_);
    for (const KeyNeed& need : keys_) {
      if (std::any_of(need.any.begin(), need.any.end(), [&request](uint16_t attribute) {
            return !request.Value(attribute).empty();
          })) {
        narrowing.Keep(need.ranks);
      }
    }
    if (!narrowing.Apply(left)) {
      return false;
    }
  }
  for (const Dimension& dimension : cheap_) {
    const bool worthwhile = dimension.is_quick || AnyCare(dimension.careless, left);
    if (worthwhile && !NarrowBy(dimension, request, regexes, left)) {
      return false;
    }
  }
  if (has_paths_ && !NarrowByPath(request, left)) {
    return false;
  }
  for (const Dimension& dimension : costly_) {
    if (ManyCare(dimension.careless, left) && !NarrowBy(dimension, request, regexes, left)) {
      return false;
    }
  }
  return true;
}

void RuleFilter::DropGroup(uint8_t group, size_t word, RankBits& left) const noexcept {
  const uint64_t* const members = sets_.Bits(groups_[group]);
  for (size_t i = word; i < sets_.words(); ++i) {
    left[i] &= ~members[i];
  }
}

}  // namespace weir::rules
