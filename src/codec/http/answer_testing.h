// For tests: rules and rulings made by hand, and answers taken apart.
#pragma once

#include <simdjson.h>

#include <chrono>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "codec/http/answer.h"

namespace weir::codec::http {

inline RuleQuota MakeQuota(std::string_view text) {
  const Quota quota = *Quota::Parse(text);
  const auto ns = static_cast<uint64_t>(quota.window().count());
  const bool timed = quota.algorithm() != Algorithm::kConcurrency;
  return {.quota = quota,
          .text = quota.ToString(),
          .window_s = timed ? (ns + 999'999'999) / 1'000'000'000 : 0,
          .bound = ""};
}

inline RuleView MakeRule(std::string name, const std::vector<std::string_view>& quotas) {
  RuleView rule;
  rule.name = std::move(name);
  rule.variants.emplace_back();
  for (const std::string_view quota : quotas) {
    rule.variants[0].quotas.push_back(MakeQuota(quota));
  }
  return rule;
}

inline Decision MakeDecision(Outcome outcome, uint32_t limit, uint32_t remaining,
                             Duration retry_after, Duration reset_after) {
  Decision decision;
  decision.outcome = outcome;
  decision.limit = limit;
  decision.remaining = remaining;
  decision.retry_after = retry_after;
  decision.reset_after = reset_after;
  return decision;
}

// A JSON text; its members stay readable as long as it lives.
class Json {
 public:
  explicit Json(std::string_view text) : root_(parser_.parse(text)) {}

  simdjson::dom::element operator[](std::string_view name) const { return root_[name]; }
  [[nodiscard]] std::string Text(std::string_view name) const {
    return std::string(std::string_view(root_[name]));
  }
  [[nodiscard]] int64_t Number(std::string_view name) const { return root_[name]; }
  [[nodiscard]] simdjson::dom::array List(std::string_view name) const { return root_[name]; }

 private:
  simdjson::dom::parser parser_;
  simdjson::dom::element root_;
};

// An answer as a client sees it.
struct ReadAnswer {
  std::string status;  // "200 OK"
  std::multimap<std::string, std::string> fields;
  std::string body;

  [[nodiscard]] std::string Field(const std::string& name) const {
    const auto found = fields.find(name);
    return found == fields.end() ? "" : found->second;
  }
};

// Fails the test if the answer's length is not what Content-Length says.
inline ReadAnswer Read(std::string_view bytes) {
  ReadAnswer answer;
  const size_t end = bytes.find("\r\n\r\n");
  EXPECT_NE(end, std::string_view::npos) << bytes;
  std::string_view head = bytes.substr(0, end + 2);
  answer.body = bytes.substr(end + 4);
  EXPECT_TRUE(head.starts_with("HTTP/1.1 ")) << bytes;
  const size_t line = head.find("\r\n");
  answer.status = head.substr(9, line - 9);
  head.remove_prefix(line + 2);
  while (!head.empty()) {
    const size_t colon = head.find(": ");
    const size_t next = head.find("\r\n");
    EXPECT_LT(colon, next) << bytes;
    answer.fields.emplace(head.substr(0, colon), head.substr(colon + 2, next - colon - 2));
    head.remove_prefix(next + 2);
  }
  if (answer.status.starts_with("204")) {
    EXPECT_EQ(answer.body, "");
    EXPECT_EQ(answer.Field("Content-Length"), "");
  } else {
    EXPECT_EQ(answer.Field("Content-Length"), std::to_string(answer.body.size())) << bytes;
  }
  return answer;
}

// Rules, what a request met, and its answer.
class AnswerScene {
 public:
  static constexpr WallTime kNow = WallTime(std::chrono::seconds(1'700'000'000));

  explicit AnswerScene(std::vector<RuleView> rules) : rules_(std::move(rules)) {}

  // Part by part; the first one decides unless told otherwise.
  RulePart& Meet(size_t rule, size_t quota, const Decision& decision) {
    RulePart part;
    part.rule = &rules_[rule];
    part.quota = &rules_[rule].variants[0].quotas[quota];
    part.key = "k";
    part.decision = decision;
    parts_.push_back(part);
    return parts_.back();
  }

  Ruling& ruling() {
    verdict_.parts = parts_;
    if (verdict_.deciding == nullptr && !parts_.empty()) {
      verdict_.deciding = parts_.data();
    }
    return verdict_;
  }

  // The bytes; a ruling whose parts refuse is refused.
  std::string Write(AnswerContext context = {}, const AnswerOptions& options = {}) {
    context.now = kNow;
    Ruling now = ruling();
    for (const RulePart& part : parts_) {
      if (!part.shadow && !part.decision.allowed()) {
        now.outcome = part.decision.outcome;
        now.retry_after = std::max(now.retry_after, part.decision.retry_after);
      }
    }
    base::ByteBuffer out;
    out.Append("before ");  // as behind another answer
    AnswerWriter(options, rules_).WriteCheck(out, now, context);
    return std::string(out.view().substr(7));
  }

 private:
  std::vector<RuleView> rules_;
  std::vector<RulePart> parts_;
  Ruling verdict_;
};

}  // namespace weir::codec::http
