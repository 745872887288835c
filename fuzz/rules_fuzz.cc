// Any text is refused with issues or becomes a rule set that decides and explains; text that is cut
// is never half a set.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "weir/rules.h"

#include "fuzz/require.h"
#include "fuzz/without_zones.h"

using weir::fuzz::Require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const weir::RuleParse parse = weir::RuleSet::Parse(text, "fuzz");
  bool has_error = false;
  for (const weir::RuleIssue& issue : parse.issues) {
    has_error = has_error || issue.level == weir::IssueLevel::kError;
    Require(!issue.message.empty());
    Require(issue.message.find('\0') == std::string::npos);
  }
  Require((parse.rules == nullptr) == has_error);
  if (parse.rules == nullptr) {
    return 0;
  }
  const auto fresh = *weir::MemoryStore::Create(
      {.budget_bytes = size_t{256} << 10, .record_percent = 25, .huge_pages = false});
  const auto limiter = weir::RuleLimiter::Create(parse.rules, fresh);
  if (!limiter) {
    return 0;
  }
  const weir::Attribute requests[][5] = {
      {{"ip", "192.0.2.1"}, {"path", "/a/b?c"}, {"method", "GET"}, {"user", "u"}, {"x", "y"}},
      {{"ip", "2001:db8::1"},
       {"path", text.substr(0, 100)},
       {"host", "H.example:1"},
       {"tier", "t"},
       {"user", text.substr(0, 200)}},
  };
  for (const auto& request : requests) {
    const weir::Explanation before = (*limiter)->Explain(request);
    const weir::RuleVerdict verdict = (*limiter)->Check(request);
    Require(before.outcome == verdict.outcome);  // explaining consumes nothing
    Require(!ToText(before).empty() && !ToJson(before).empty());
  }
  Require(Diff(*parse.rules, *parse.rules).empty());
  return 0;
}
