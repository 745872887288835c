#include "envoy/own_quota.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/spelling.h"
#include "rules/fields.h"

namespace weir::envoy {

namespace {

constexpr std::array<std::string_view, 5> kAlgorithms = {
    "token-bucket", "leaky-bucket", "fixed-window", "sliding-window", "sliding-log"};
constexpr std::array<std::string_view, 4> kPeriods = {"day", "week", "month", "year"};

bool IsPlain(const FileRateLimit& limit) {
  return limit.algorithm.empty() && limit.burst == 0 && !HasOwnWindow(limit);
}

template <size_t kCount>
Result<void> CheckWord(std::string_view field, const std::string& found,
                       const std::array<std::string_view, kCount>& words) {
  if (found.empty() || std::find(words.begin(), words.end(), found) != words.end()) {
    return {};
  }
  return Error::Invalid(std::string(field) + ": " + base::Quoted(found) + " is not known;" +
                        rules::DidYouMean(found, words) + " expected " + rules::Listed(words));
}

Result<void> CheckFields(const FileRateLimit& limit) {
  if (auto known = CheckWord("algorithm", limit.algorithm, kAlgorithms); !known) {
    return known;
  }
  if (auto known = CheckWord("calendar", limit.calendar, kPeriods); !known) {
    return known;
  }
  if (!limit.calendar.empty() && !(limit.window.empty() && limit.algorithm.empty())) {
    return Error::Invalid(
        "calendar: its periods are the window and the algorithm; leave those out");
  }
  if (!limit.time_zone.empty() && limit.calendar.empty()) {
    return Error::Invalid("time_zone: only with calendar");
  }
  if (HasOwnWindow(limit) && !limit.unit.empty()) {
    return Error::Invalid("window, calendar: each stands in place of unit; leave one of them out");
  }
  if (limit.unlimited && !(IsPlain(limit) && limit.tiers.empty() && limit.overrides.empty())) {
    return Error::Invalid("unlimited: nothing else says how much or how fast; leave the rest out");
  }
  if (limit.by.empty() != limit.tiers.empty()) {
    return Error::Invalid(
        "by, tiers: the one names the entry that tells the tier, the other the "
        "limits; give both or none");
  }
  return {};
}

Result<Quota> MakeQuota(const FileRateLimit& limit, const LimitRule& rule, uint32_t requests) {
  std::string text = std::to_string(requests) + "/";
  if (!limit.calendar.empty()) {
    text += limit.calendar + " calendar";
    text += limit.time_zone.empty() ? "" : " in " + limit.time_zone;
  } else {
    text += limit.window.empty() ? std::to_string(SecondsOf(rule.unit)) + "s" : limit.window;
    const bool is_window = limit.algorithm.empty() && limit.burst == 0;
    text += is_window ? " fixed-window" : limit.algorithm.empty() ? "" : " " + limit.algorithm;
  }
  text += limit.burst == 0 ? "" : " burst " + std::to_string(limit.burst);
  return Quota::Parse(text);
}

Result<LimitVariant> MakeVariant(const FileRateLimit& limit, const LimitRule& rule,
                                 const FileVariant& given) {
  LimitVariant variant;
  variant.of = given.of;
  variant.requests_per_unit = given.requests_per_unit;
  variant.unlimited = given.unlimited;
  variant.expires = given.expires;
  if (!IsPlain(limit) && !given.unlimited) {
    auto quota = MakeQuota(limit, rule, given.requests_per_unit);
    if (!quota) {
      return quota.error();
    }
    variant.quota = *std::move(quota);
  }
  return variant;
}

Result<void> MakeVariants(const FileRateLimit& limit, const LimitRule& rule,
                          const std::vector<FileVariant>& given, std::string_view what,
                          std::vector<LimitVariant>& into) {
  for (const FileVariant& one : given) {
    if (one.of.empty()) {
      return Error::Invalid(std::string(what) + ": one of them is for nobody; expected a " +
                            (what == "tiers" ? "name" : "value"));
    }
    auto variant = MakeVariant(limit, rule, one);
    if (!variant) {
      return Error::Invalid(std::string(what) + ": " + base::Quoted(one.of) + ": " +
                            variant.error().message);
    }
    into.push_back(*std::move(variant));
  }
  return {};
}

}  // namespace

bool HasOwnWindow(const FileRateLimit& limit) noexcept {
  return !limit.window.empty() || !limit.calendar.empty();
}

Result<void> ReadVariants(const FileRateLimit& limit, LimitRule& rule) {
  if (auto checked = CheckFields(limit); !checked) {
    return checked;
  }
  auto all = MakeVariant(limit, rule, {"", limit.requests_per_unit, limit.unlimited, std::nullopt});
  if (!all) {
    return all.error();
  }
  rule.all = *std::move(all);
  rule.tier_key = limit.by;
  if (auto made = MakeVariants(limit, rule, limit.tiers, "tiers", rule.tiers); !made) {
    return made;
  }
  if (auto made = MakeVariants(limit, rule, limit.overrides, "overrides", rule.overrides); !made) {
    return made;
  }
  // A window that refused hits do not fill up is what the original has not; a bucket that they
  // drain would never refill under steady pressure.
  const bool is_window = !rule.all.quota.has_value() ||
                         rule.all.quota->algorithm() == Algorithm::kFixedWindow ||
                         rule.all.quota->algorithm() == Algorithm::kCalendar;
  rule.count_refused = limit.count_refused.value_or(is_window);
  return {};
}

}  // namespace weir::envoy
