#include "rules/rule_quota.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/spelling.h"

namespace weir::rules {

namespace {

using namespace std::chrono_literals;

std::string InAny(uint64_t units, const std::string& text) {
  // The window as the quota's own text has it: what stands between "/" and the first blank.
  const size_t begin = text.find('/') + 1;
  return "at most " + std::to_string(units) + " in any " +
         text.substr(begin, text.find(' ', begin) - begin);
}

std::string BoundOf(const Quota& quota, const std::string& text) {
  const uint64_t limit = quota.limit();
  switch (quota.algorithm()) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      return InAny(limit + quota.burst(), text) + "; exact";
    case Algorithm::kFixedWindow:
      return InAny(2 * limit, text) + ", across two windows; exact in each";
    case Algorithm::kSlidingWindow:
      return InAny(2 * limit, text) + "; an estimate from two windows' counts";
    case Algorithm::kMinGap:
      return "one at a time, " + text + " apart; exact";
    case Algorithm::kCalendar:
      return "at most " + std::to_string(limit) + " in each period; exact";
    case Algorithm::kSlidingLog:
      return InAny(limit, text) + "; exact";
    case Algorithm::kSlicedWindow:
      return InAny(limit, text) + "; at most a slice too strict";
    case Algorithm::kConcurrency:
      return "at most " + std::to_string(limit) + " at the same time; exact";
  }
  return "";
}

uint64_t WindowSeconds(const Quota& quota) {
  switch (quota.algorithm()) {
    case Algorithm::kConcurrency:
      return 0;
    case Algorithm::kCalendar: {
      constexpr std::array<uint64_t, 4> kDays = {1, 7, 30, 365};
      return kDays[static_cast<size_t>(quota.period())] * 86400;
    }
    default:
      return static_cast<uint64_t>(std::chrono::ceil<std::chrono::seconds>(quota.window()).count());
  }
}

Result<Quota> Scaled(const Quota& quota, uint64_t permille) {
  const auto scale = [permille](uint64_t units) {
    const uint64_t scaled = units * permille / 1000;
    return static_cast<int64_t>(
        std::clamp<uint64_t>(scaled, 1, static_cast<uint64_t>(Quota::kMaxLimit) + 1));
  };
  const bool has_burst =
      quota.algorithm() == Algorithm::kTokenBucket || quota.algorithm() == Algorithm::kLeakyBucket;
  return Quota::Create({.algorithm = quota.algorithm(),
                        .limit = scale(quota.limit()),
                        .window = quota.window(),
                        .burst = has_burst ? scale(quota.burst()) : 0,
                        .start = quota.start(),
                        .period = quota.period(),
                        .time_zone = quota.time_zone(),
                        .slices = quota.slices(),
                        .undelayed = quota.undelayed()});
}

bool HasWord(std::string_view text, std::initializer_list<std::string_view> words) {
  std::string padded = " " + std::string(text) + " ";
  std::replace(padded.begin(), padded.end(), '/', ' ');
  std::replace(padded.begin(), padded.end(), '\t', ' ');
  return std::any_of(words.begin(), words.end(), [&padded](std::string_view word) {
    return padded.find(" " + std::string(word) + " ") != std::string::npos;
  });
}

bool NamesAlgorithm(std::string_view text) {
  return HasWord(text, {"token-bucket", "leaky-bucket", "fixed-window", "sliding-window",
                        "sliding-log", "sliced-window", "calendar", "queue", "gap", "concurrency"});
}

// The quotas of one rule, read with what its other fields say.
class QuotaReader {
 public:
  QuotaReader(const Fields& fields, const QuotaContext& context, Precision precision,
              Issues& issues)
      : fields_(fields), context_(context), precision_(precision), issues_(issues) {
    if (fields.Has("burst")) {
      fields.Read("burst", burst_, 1, Quota::kMaxLimit);
    }
    fields.Read("algorithm", algorithm_, 64);
    fields.Read("time-zone", time_zone_, 64);
  }

  std::optional<Quota> Read(std::string_view text, Mark mark) const {
    std::string whole(text);
    const bool is_calendar = HasWord(text, {"month", "months", "year", "years", "yr", "calendar"});
    if (burst_ != 0) {
      whole += " burst " + std::to_string(burst_);
    }
    if (!algorithm_.empty()) {
      whole += " " + algorithm_;
    } else if (!context_.default_algorithm.empty() && !is_calendar && !NamesAlgorithm(whole) &&
               burst_ == 0 && !HasWord(text, {"burst"})) {
      whole += " " + context_.default_algorithm;
    }
    if (!time_zone_.empty() && (is_calendar || algorithm_ == "calendar")) {
      whole += " in " + time_zone_;
    }
    auto quota = Quota::Parse(whole);
    if (!quota) {
      const bool is_zero = text.starts_with("0/") || text.starts_with("0 ");
      issues_.Error(mark,
                    "limit: " + quota.error().message +
                        (is_zero ? "; to refuse every request that matches, use block: true" : ""));
      return std::nullopt;
    }
    return *std::move(quota);
  }

  // The value of `limit`, of `limits`, or of one tier.
  RuleVariant ReadVariant(const YamlNode& node, std::string_view tier) const {
    RuleVariant variant{.tier = std::string(tier)};
    if (node.IsScalar() && node.text() == "unlimited") {
      variant.unlimited = true;
      return variant;
    }
    for (const auto& [text, mark] : Texts(node, "limit", issues_)) {
      if (const auto quota = Read(text, mark)) {
        variant.quotas.push_back(MakeRuleQuota(*quota, precision_));
      }
    }
    AddGap(variant);
    if (variant.quotas.size() > kMaxLimits) {
      issues_.Error(node.mark(), "limits: found " + std::to_string(variant.quotas.size()) +
                                     "; the most is " + std::to_string(kMaxLimits));
    }
    return variant;
  }

  void AddGap(RuleVariant& variant) const {
    const YamlNode* const node = fields_.Find("min-gap");
    if (node == nullptr) {
      return;
    }
    auto gap = node->IsScalar() ? Quota::Parse("gap " + std::string(node->text()))
                                : Result<Quota>(Error::Invalid("expected a time such as 2s"));
    if (!gap) {
      issues_.Error(node->mark(), "min-gap: found " + Describe(*node) + ": " + gap.error().message);
      return;
    }
    variant.quotas.push_back(MakeRuleQuota(*gap, precision_));
  }

  // One variant for each tier of the file, made from that for all.
  void Multiply(std::vector<RuleVariant>& variants) const {
    for (const TierFactor& tier : context_.tiers) {
      RuleVariant scaled{.tier = tier.tier};
      for (const RuleQuota& quota : variants.front().quotas) {
        const bool is_gap = quota.quota.algorithm() == Algorithm::kMinGap;
        auto changed = is_gap ? Result<Quota>(quota.quota) : Scaled(quota.quota, tier.permille);
        if (!changed) {
          issues_.Error(fields_.MarkOf("by"),
                        "tier " + base::Quoted(tier.tier) + ": " + changed.error().message);
          return;
        }
        scaled.quotas.push_back(MakeRuleQuota(*changed, precision_));
      }
      variants.push_back(std::move(scaled));
    }
  }

  std::vector<RuleVariant> ReadTable(const YamlNode& table) const {
    std::vector<RuleVariant> variants(1);
    bool has_default = false;
    const std::vector<YamlNode> children = table.children();
    for (size_t i = 0; i + 1 < children.size(); i += 2) {
      const std::string_view tier = children[i].text();
      RuleVariant variant = ReadVariant(children[i + 1], tier);
      if (tier == "default") {
        has_default = true;
        variant.tier.clear();
        variants.front() = std::move(variant);
      } else {
        variants.push_back(std::move(variant));
      }
    }
    if (!has_default) {
      issues_.Error(table.mark(),
                    "limit: a table without \"default\"; expected a limit for those that it does "
                    "not name, such as default: 100/h, or default: unlimited");
    }
    if (variants.size() > kMaxTiers + 1) {
      issues_.Error(table.mark(), "limit: a table of " + std::to_string(variants.size()) +
                                      " tiers; the most is " + std::to_string(kMaxTiers));
    }
    return variants;
  }

 private:
  const Fields& fields_;
  const QuotaContext& context_;
  Precision precision_;
  Issues& issues_;
  int64_t burst_ = 0;
  std::string algorithm_;
  std::string time_zone_;
};

}  // namespace

RuleQuota MakeRuleQuota(const Quota& quota, Precision precision) {
  RuleQuota made{.quota = quota, .text = quota.ToString(), .window_s = WindowSeconds(quota)};
  made.bound = BoundOf(quota, made.text);
  if (precision == Precision::kSketch) {
    made.bound += "; below half of it counted in a sketch: never looser, at times stricter";
  }
  return made;
}

uint64_t ParseFactor(std::string_view text) {
  if (text.ends_with('x')) {
    text.remove_suffix(1);
  }
  const size_t dot = text.find('.');
  std::string digits(text.substr(0, dot));
  std::string decimals(dot == std::string_view::npos ? "" : text.substr(dot + 1));
  if (digits.empty() || digits.size() > 7 || decimals.size() > 3 ||
      (dot != std::string_view::npos && decimals.empty())) {
    return 0;
  }
  decimals.resize(3, '0');
  const auto permille = ParseUnsigned(digits + decimals);
  return permille && *permille <= 1'000'000'000 ? *permille : 0;
}

std::vector<RuleVariant> ReadVariants(const Fields& fields, const QuotaContext& context,
                                      Precision precision, std::string_view by, Issues& issues) {
  const QuotaReader reader(fields, context, precision, issues);
  const YamlNode* const limit = fields.Find("limit");
  const YamlNode* const limits = fields.Find("limits");
  std::vector<RuleVariant> variants(1);
  if (limit != nullptr && limits != nullptr) {
    issues.Error(fields.MarkOf("limits"), "limits: found beside limit; expected one of the two");
    return variants;
  }
  if (limits != nullptr && fields.Has("burst")) {
    issues.Error(fields.MarkOf("burst"),
                 "burst: found beside limits; write it into the one it is for, as in "
                 "\"10/min burst 5\"");
    return variants;
  }
  if (limit != nullptr && limit->IsMap()) {
    variants = reader.ReadTable(*limit);
    if (by.empty()) {
      issues.Error(limit->mark(),
                   "limit: found a table, but no \"by\"; expected by: tier, or another attribute "
                   "that names the rows");
    }
    return variants;
  }
  if (limit != nullptr || limits != nullptr) {
    variants.front() = reader.ReadVariant(limit != nullptr ? *limit : *limits, "");
  } else if (fields.Has("min-gap")) {
    reader.AddGap(variants.front());
  }
  if (!by.empty() && context.tiers.empty()) {
    issues.Error(fields.MarkOf("by"),
                 "by: found " + base::Quoted(by) +
                     ", but neither a table under limit nor multipliers; expected limit: {free: "
                     "100/h, default: 10/h}, or tiers: {premium: 5x} at the top of the file");
  } else if (!by.empty() && !variants.front().unlimited) {
    reader.Multiply(variants);
  }
  return variants;
}

}  // namespace weir::rules
