// Prints answers as the server would send them, one JSON object a line: {"case": …, "answer": …}.
// read_back.mjs reads them as clients do.
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "weir/quota.h"

#include "base/json_text.h"
#include "codec/http/answer.h"

namespace {

using namespace std::chrono_literals;
using namespace weir;               // NOLINT(google-build-using-namespace): all of it is used
using namespace weir::codec::http;  // NOLINT(google-build-using-namespace)

struct Sample {
  std::string_view name;
  uint8_t families;
  ResetStyle reset = ResetStyle::kUnixSeconds;
  bool denied = false;
};

constexpr Sample kSamples[] = {
    {"x-unix", kXRateLimit},
    {"x-delta", kXRateLimit, ResetStyle::kDelta},
    {"x-list", kXRateLimitList},
    {"draft-3", kRateLimit3},
    {"draft-7", kRateLimit7},
    {"draft-10", kRateLimit},
    {"x-unix-denied", kXRateLimit | kRetryAfter, ResetStyle::kUnixSeconds, true},
    {"draft-7-denied", kRateLimit7 | kRetryAfter, ResetStyle::kUnixSeconds, true},
    {"draft-10-denied", kRateLimit | kRetryAfter, ResetStyle::kUnixSeconds, true},
};

RuleView Rule(std::string name, const std::vector<std::string_view>& quotas) {
  RuleView rule;
  rule.name = std::move(name);
  rule.variants.emplace_back();
  for (const std::string_view text : quotas) {
    const Quota quota = *Quota::Parse(text);
    rule.variants[0].quotas.push_back(
        {.quota = quota,
         .text = quota.ToString(),
         .window_s = static_cast<uint64_t>(quota.window() / std::chrono::seconds(1)),
         .bound = ""});
  }
  return rule;
}

RulePart Part(const RuleView& rule, size_t quota, uint32_t limit, uint32_t remaining,
              Duration retry_after) {
  RulePart part;
  part.rule = &rule;
  part.quota = &rule.variants[0].quotas[quota];
  part.decision.limit = limit;
  part.decision.remaining = remaining;
  part.decision.retry_after = retry_after;
  part.decision.reset_after = 29'500ms;
  part.decision.outcome = retry_after == 0ns ? Outcome::kAllowed : Outcome::kDenied;
  return part;
}

}  // namespace

int main() {
  const std::vector<RuleView> rules = {Rule("plan", {"100/min"}),
                                       Rule("po\"l\\i te \xC3\xA4", {"10/min", "500/h"})};
  for (const Sample& sample : kSamples) {
    const Duration wait = sample.denied ? 12'300ms : 0ms;
    const RulePart parts[] = {Part(rules[0], 0, 100, sample.denied ? 0 : 40, wait),
                              Part(rules[1], 0, 10, 9, 0ms), Part(rules[1], 1, 500, 499, 0ms)};
    weir::codec::http::Ruling ruling;
    ruling.outcome = parts[0].decision.outcome;
    ruling.retry_after = wait;
    ruling.parts = parts;
    ruling.deciding = parts;
    AnswerContext context;
    context.now = WallTime(1'700'000'000s);
    base::ByteBuffer answer;
    AnswerWriter({.families = sample.families, .reset = sample.reset}, rules)
        .WriteCheck(answer, ruling, context);
    base::ByteBuffer line;
    line.Append("{\"case\":");
    base::AppendJsonText(line, sample.name);
    line.Append(",\"answer\":");
    base::AppendJsonText(line, answer.view());
    line.Append("}\n");
    std::fwrite(line.data(), 1, line.size(), stdout);
  }
  return 0;
}
