#include "import/rule_writer.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "import/stable_order.h"

namespace weir::import {

namespace {

// Text that YAML takes for nothing else, or in quotes.
std::string Scalar(std::string_view text) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == '/' || c == '|';
  };
  const bool plain = !text.empty() &&
                     (std::isalpha(static_cast<unsigned char>(text[0])) != 0 ||
                      (text[0] == '/' && text.size() > 1)) &&
                     std::all_of(text.begin(), text.end(), is_plain);
  const auto same = [text](std::string_view word) {
    return std::equal(text.begin(), text.end(), word.begin(), word.end(), [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) == b;
    });
  };
  constexpr std::array<std::string_view, 8> kWords = {"true", "false", "null", "yes",
                                                      "no",   "on",    "off",  "y"};
  if (plain && std::none_of(kWords.begin(), kWords.end(), same)) {
    return std::string(text);
  }
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      quoted += "\\x";
      quoted += "0123456789abcdef"[byte >> 4];
      quoted += "0123456789abcdef"[byte & 15];
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string_view KindOf(Match match) {
  switch (match) {
    case Match::kExact:
      return "exact";
    case Match::kPrefix:
      return "prefix";
    case Match::kSuffix:
      return "suffix";
    case Match::kContains:
      return "contains";
    case Match::kGlob:
      return "glob";
    case Match::kRegex:
      return "regex";
    case Match::kPattern:
    case Match::kPresent:
    case Match::kAbsent:
      break;
  }
  return "";
}

std::string TestText(const Condition& condition, const Test& test) {
  if (test.match == Match::kPresent || test.match == Match::kAbsent) {
    return test.match == Match::kPresent ? "present" : "absent";
  }
  // A path that is exact text is not a pattern, and "present" the word is not the test.
  const bool bare = test.match == Match::kPattern ||
                    (test.match == Match::kExact && condition.attribute != "path" &&
                     test.text != "present" && test.text != "absent");
  return bare ? Scalar(test.text)
              : "{" + std::string(KindOf(test.match)) + ": " + Scalar(test.text) + "}";
}

std::string ConditionText(const Condition& condition) {
  std::string text = "      " + Scalar(condition.attribute) + ": ";
  if (condition.any.size() == 1) {
    return text + TestText(condition, condition.any.front()) + "\n";
  }
  std::string list;
  for (const Test& test : condition.any) {
    list += (list.empty() ? "" : ", ") + TestText(condition, test);
  }
  return text + "[" + list + "]\n";
}

// A limit that counts by an attribute is for requests that have it anyway.
bool GoesWithoutSaying(const Rule& rule, const Condition& condition) {
  return rule.action == Action::kLimit && !rule.missing_is_shared && condition.any.size() == 1 &&
         condition.any.front().match == Match::kPresent &&
         std::find(rule.per.begin(), rule.per.end(), condition.attribute) != rule.per.end();
}

std::string WhenText(const Rule& rule) {
  std::string text;
  for (const Condition& condition : rule.when) {
    text += GoesWithoutSaying(rule, condition) ? "" : ConditionText(condition);
  }
  return text.empty() ? "" : "    when:\n" + text;
}

std::string PerText(const Rule& rule) {
  if (rule.action != Action::kLimit) {
    return "";
  }
  if (rule.per.size() <= 1) {
    return "    per: " + (rule.per.empty() ? "all" : Scalar(rule.per.front())) + "\n";
  }
  std::string list;
  for (const std::string& part : rule.per) {
    list += (list.empty() ? "" : ", ") + Scalar(part);
  }
  return "    per: [" + list + "]\n";
}

// Safe within a comment: one line, nothing that ends it.
std::string CommentText(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    safe += byte < 0x20 || byte >= 0x7F ? '?' : c;
  }
  return safe;
}

std::string FindingText(const Finding& finding) {
  return std::string(ToString(finding.carry)) + ": " + finding.what;
}

}  // namespace

std::string WriteRule(const Rule& rule) {
  std::string text = "  - name: " + Scalar(rule.name) + "\n";
  text += WhenText(rule) + PerText(rule);
  text += rule.action == Action::kUnlimited ? "    unlimited: true\n"
          : rule.action == Action::kBlock   ? "    block: true\n"
                                            : "    limit: " + rule.limit + "\n";
  text += rule.missing_is_shared && rule.action == Action::kLimit ? "    on-missing: shared\n" : "";
  const bool counts_addresses =
      std::any_of(rule.per.begin(), rule.per.end(),
                  [](const std::string& part) { return part == "ip" || part.starts_with("ip/"); });
  if (rule.ipv6_prefix != 0 && counts_addresses && rule.action == Action::kLimit) {
    text += "    ipv6-prefix: " + std::to_string(rule.ipv6_prefix) + "\n";
  }
  text += rule.shadow ? "    shadow: true\n" : "";
  text += rule.expires.empty() ? "" : "    expires: " + rule.expires + "\n";
  text += rule.group.empty() ? "" : "    group: " + Scalar(rule.group) + "\n";
  text += rule.priority == 0 ? "" : "    priority: " + std::to_string(rule.priority) + "\n";
  return text;
}

std::string WriteRules(const Imported& imported, std::string_view format) {
  std::string text = "# Made by weir rules import from " + std::string(format) + ".\n";
  std::vector<const Finding*> findings;
  for (const Finding& finding : imported.findings) {
    findings.push_back(&finding);
  }
  StableOrder(findings, [](const Finding* a, const Finding* b) { return a->before < b->before; });
  auto next = findings.begin();
  const auto comments = [&](size_t upto, std::string_view indent) {
    for (; next != findings.end() && (*next)->before <= upto; ++next) {
      text += std::string(indent) + "# " +
              CommentText(ToString((*next)->place) + ": " + FindingText(**next)) + "\n";
    }
  };
  if (imported.rules.empty()) {
    comments(imported.findings.size(), "");
    return text + "rules: []\n";
  }
  text += "rules:\n";
  for (size_t i = 0; i < imported.rules.size(); ++i) {
    const Rule& rule = imported.rules[i];
    comments(i, "  ");
    text += "  # " + CommentText(ToString(rule.place) + ": " + rule.source) + "\n";
    text += rule.mentions.empty() ? "" : "  # " + CommentText(rule.mentions) + "\n";
    text += WriteRule(rule);
  }
  comments(imported.rules.size(), "  ");
  return text;
}

std::string WriteReport(const Imported& imported) {
  std::string text;
  std::array<size_t, 3> counts{};
  for (const Rule& rule : imported.rules) {
    if (rule.mentions.empty()) {
      text += CommentText(ToString(rule.place) + ": carried: " + rule.source + " is the rule " +
                          rule.name) +
              "\n";
      ++counts[0];
    }
  }
  for (const Finding& finding : imported.findings) {
    text += CommentText(ToString(finding.place) + ": " + FindingText(finding)) + "\n";
    ++counts[static_cast<size_t>(finding.carry)];
  }
  return text + std::to_string(counts[0]) + " carried, " + std::to_string(counts[1]) +
         " approximated, " + std::to_string(counts[2]) + " dropped\n";
}

}  // namespace weir::import
