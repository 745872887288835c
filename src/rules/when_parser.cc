#include "rules/when_parser.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

#include <re2/re2.h>

#include "base/spelling.h"
#include "rules/secret_attributes.h"

namespace weir::rules {

namespace {

constexpr size_t kMaxMatcherBytes = 256;
constexpr size_t kMaxMatchers = 1024;
constexpr size_t kMaxKeyParts = 8;
constexpr size_t kMaxAlternatives = 8;
constexpr std::array<std::string_view, 7> kWellKnown = {"ip",   "method",  "host", "path",
                                                        "user", "api_key", "tier"};
constexpr std::array<std::string_view, 6> kMatcherKeys = {"exact", "prefix",   "suffix",
                                                          "glob",  "contains", "regex"};

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return upper;
}

// As requests have it: methods and countries in upper case, hosts in lower case, AS64496 as 64496.
std::string Normal(std::string_view attribute, std::string_view text) {
  const bool has_as = attribute == "asn" && text.size() > 2 && Upper(text.substr(0, 2)) == "AS";
  return attribute == "method" || attribute == "country" ? Upper(text)
         : attribute == "host"                           ? Lower(text)
                                                         : std::string(text.substr(has_as ? 2 : 0));
}

// `*` stands for any run of bytes, `?` for one. The usual shapes need no regular expression.
Matcher FromGlob(const std::string& glob) {
  const size_t star = glob.find('*');
  const bool has_question = glob.find('?') != std::string::npos;
  if (star == std::string::npos && !has_question) {
    return {MatcherKind::kExact, glob, "", "glob " + glob, {}};
  }
  const size_t last = glob.rfind('*');
  if (!has_question && star == last) {
    return {MatcherKind::kAffix, glob.substr(0, star), glob.substr(star + 1), "glob " + glob, {}};
  }
  if (!has_question && star == 0 && last + 1 == glob.size() && glob.find('*', 1) == last) {
    return {MatcherKind::kContains, glob.substr(1, last - 1), "", "glob " + glob, {}};
  }
  std::string regex = "(?s)";
  for (const char c : glob) {
    regex += c == '*' ? ".*" : c == '?' ? "." : RE2::QuoteMeta(re2::StringPiece(&c, 1));
  }
  return {MatcherKind::kRegex, regex, "", "glob " + glob, {}};
}

std::optional<Matcher> FromRegex(std::string_view attribute, std::string_view text, Mark mark,
                                 Issues& issues) {
  RE2::Options options;
  options.set_log_errors(false);
  const RE2 regex(re2::StringPiece(text.data(), text.size()), options);
  if (!regex.ok()) {
    issues.Error(mark, "regex: " + (IsSecret(attribute) ? Hidden(text) : base::Quoted(text)) +
                           " is not a regular expression of RE2" +
                           (IsSecret(attribute) ? std::string() : ": " + regex.error()));
    return std::nullopt;
  }
  return Matcher{MatcherKind::kRegex, std::string(text), "", "regex " + std::string(text), {}};
}

// One matcher with its text: {prefix: /api}.
std::optional<Matcher> MatcherFrom(std::string_view attribute, std::string_view kind,
                                   std::string_view text, Mark mark, Issues& issues) {
  if (attribute == "ip" && kind == "exact") {
    const auto prefix = base::IpPrefix::Parse(text);
    if (!prefix) {
      issues.Error(mark, "ip: found " + base::Quoted(text) +
                             "; expected an address or a prefix, such as 10.0.0.0/8");
      return std::nullopt;
    }
    return Matcher{MatcherKind::kAddress, "", "", std::string(text), *prefix};
  }
  if (text.size() > kMaxMatcherBytes) {
    issues.Error(mark, std::string(attribute) + ": found " + std::to_string(text.size()) +
                           " bytes; the most is " + std::to_string(kMaxMatcherBytes));
    return std::nullopt;
  }
  if (kind == "regex") {
    return FromRegex(attribute, text, mark, issues);
  }
  const std::string normal = Normal(attribute, text);
  if (kind == "glob") {
    return FromGlob(normal);
  }
  const MatcherKind which = kind == "prefix"     ? MatcherKind::kPrefix
                            : kind == "suffix"   ? MatcherKind::kSuffix
                            : kind == "contains" ? MatcherKind::kContains
                                                 : MatcherKind::kExact;
  const std::string shown =
      which == MatcherKind::kExact ? normal : std::string(kind) + " " + normal;
  return Matcher{which, normal, "", shown, {}};
}

// With what people get to see of it: of a secret its prefix at most, which tells what kind it is.
std::optional<Matcher> MakeMatcher(std::string_view attribute, std::string_view kind,
                                   std::string_view text, Mark mark, Issues& issues) {
  std::optional<Matcher> made = MatcherFrom(attribute, kind, text, mark, issues);
  if (made && IsSecret(attribute) && kind != "prefix") {
    made->shown = (kind == "exact" ? "" : std::string(kind) + " ") + Hidden(text);
  }
  return made;
}

// What stands behind an attribute's name.
void ReadMatchers(const YamlNode& node, Condition& condition, Issues& issues) {
  if (node.IsSequence()) {
    for (const YamlNode& item : node.children()) {
      ReadMatchers(item, condition, issues);
    }
    return;
  }
  if (node.IsScalar()) {
    const std::string_view text = node.text();
    if (text == "present" || text == "absent") {
      const bool present = text == "present";
      condition.any.push_back(
          {present ? MatcherKind::kPresent : MatcherKind::kAbsent, "", "", std::string(text), {}});
    } else if (text.empty()) {
      issues.Error(node.mark(), condition.attribute +
                                    ": found empty text, which no request has; expected text, or "
                                    "absent");
    } else if (auto matcher =
                   MakeMatcher(condition.attribute, "exact", text, node.mark(), issues)) {
      condition.any.push_back(*std::move(matcher));
    }
    return;
  }
  const std::vector<YamlNode> pair = node.children();
  if (!node.IsMap() || pair.size() != 2) {
    issues.Error(node.mark(), condition.attribute + ": found " + Describe(node) +
                                  "; expected text, present, absent, a list of these, or one of " +
                                  Listed(kMatcherKeys) + " with its text, as in {prefix: /api}");
    return;
  }
  const std::string_view kind = pair[0].text();
  if (std::find(kMatcherKeys.begin(), kMatcherKeys.end(), kind) == kMatcherKeys.end()) {
    issues.Error(pair[0].mark(), condition.attribute + ": " + base::Quoted(kind) +
                                     " is not known;" + DidYouMean(kind, kMatcherKeys) +
                                     " expected one of " + Listed(kMatcherKeys));
    return;
  }
  for (const auto& [text, mark] : Texts(pair[1], kind, issues)) {
    if (auto matcher = MakeMatcher(condition.attribute, kind, text, mark, issues)) {
      condition.any.push_back(*std::move(matcher));
    }
  }
}

void ReadPaths(const YamlNode& node, RuleModel& rule, Issues& issues) {
  for (const auto& [text, mark] : Texts(node, "path", issues)) {
    auto pattern = PathPattern::Parse(text);
    if (pattern) {
      rule.paths.push_back(*std::move(pattern));
    } else {
      issues.Error(mark, pattern.error().message);
    }
  }
}

// Plain text for a path is a pattern; present, absent and mappings are not.
bool IsPattern(const YamlNode& node) {
  if (node.IsSequence()) {
    const std::vector<YamlNode> items = node.children();
    return std::any_of(items.begin(), items.end(), IsPattern);
  }
  return node.IsScalar() && node.text() != "present" && node.text() != "absent";
}

std::string Words(const RuleModel& rule) {
  std::string words;
  const auto add = [&words](std::string_view attribute, const std::string& what, bool first) {
    words += first ? (words.empty() ? "" : ", ") + std::string(attribute) + " " : " or ";
    words += what;
  };
  for (const Condition& condition : rule.when) {
    for (size_t i = 0; i < condition.any.size(); ++i) {
      add(condition.attribute, condition.any[i].shown, i == 0);
    }
  }
  for (size_t i = 0; i < rule.paths.size(); ++i) {
    add("path", rule.paths[i].text, i == 0);
  }
  return words;
}

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) {
    text.remove_prefix(1);
  }
  while (text.ends_with(' ')) {
    text.remove_suffix(1);
  }
  return text;
}

bool ReadKeyPart(std::string_view text, Mark mark, RuleModel& rule, Issues& issues) {
  KeyPart part;
  for (std::string_view left = text; !left.empty();) {
    const size_t bar = std::min(left.find('|'), left.size());
    const std::string_view given = Trimmed(left.substr(0, bar));
    std::string name =
        Ipv4BitsOf(given) != 0 ? std::string(given) : ReadAttributeName(given, mark, issues);
    left.remove_prefix(std::min(bar + 1, left.size()));
    if (name.empty()) {
      return false;
    }
    if (name.starts_with("path:")) {
      const std::string parameter = name.substr(5);
      const bool everywhere =
          !rule.paths.empty() &&
          std::all_of(rule.paths.begin(), rule.paths.end(), [&](const PathPattern& pattern) {
            return pattern.PositionOf(parameter) != std::string_view::npos;
          });
      if (!everywhere) {
        issues.Error(mark, "per: " + base::Quoted(name) + ": not every path of the rule has a {" +
                               parameter + "}; expected when: {path: /.../{" + parameter + "}}");
        return false;
      }
    }
    part.any.push_back(std::move(name));
  }
  if (part.any.empty() || part.any.size() > kMaxAlternatives) {
    issues.Error(mark, "per: found " + std::to_string(part.any.size()) +
                           " alternatives; expected 1 to " + std::to_string(kMaxAlternatives));
    return false;
  }
  rule.per.push_back(std::move(part));
  return true;
}

}  // namespace

unsigned Ipv4BitsOf(std::string_view part) noexcept {
  constexpr std::string_view kAddress = "ip/";
  unsigned bits = 0;
  if (part.starts_with(kAddress)) {
    part.remove_prefix(kAddress.size());
    const auto read = std::from_chars(part.data(), part.data() + part.size(), bits);
    bits = read.ptr == part.data() + part.size() && bits <= 32 ? bits : 0;
  }
  return bits;
}

std::string ReadAttributeName(std::string_view text, Mark mark, Issues& issues) {
  std::string name = text.starts_with("header:") ? Lower(text) : std::string(text);
  const auto fits = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == ':';
  };
  if (name.empty() || name.size() > 64 || !std::all_of(name.begin(), name.end(), fits)) {
    issues.Error(mark, "the attribute " + base::Quoted(text) +
                           ": expected a name of letters, digits, _ - . and :, 64 at most, such as "
                           "ip, user or header:x-client");
    return "";
  }
  // A near miss of a well-known name would silently never be there.
  std::string same = name;
  std::replace(same.begin(), same.end(), '-', '_');
  for (const std::string_view known : kWellKnown) {
    if (name != known && (same == known || Lower(name) == known || name + "_key" == known ||
                          (known.size() >= 4 && base::SpellingDistance(name, known) == 1))) {
      issues.Warning(mark, "the attribute " + base::Quoted(name) + ": did you mean " +
                               base::Quoted(known) + "?");
    }
  }
  return name;
}

void ReadWhen(const YamlNode& node, RuleModel& rule, Issues& issues) {
  if (!node.IsMap()) {
    issues.Error(node.mark(), "when: found " + Describe(node) +
                                  "; expected a mapping such as {method: POST, path: /login}");
    return;
  }
  const std::vector<YamlNode> children = node.children();
  for (size_t i = 0; i + 1 < children.size(); i += 2) {
    Condition condition{
        .attribute = ReadAttributeName(children[i].text(), children[i].mark(), issues), .any = {}};
    if (condition.attribute.empty()) {
      continue;
    }
    if (condition.attribute.starts_with("path:") || condition.attribute == "route") {
      issues.Error(children[i].mark(), "when: " + base::Quoted(condition.attribute) +
                                           " can be counted by, not matched; expected path");
      continue;
    }
    if (condition.attribute == "path" && IsPattern(children[i + 1])) {
      ReadPaths(children[i + 1], rule, issues);
      continue;
    }
    ReadMatchers(children[i + 1], condition, issues);
    if (condition.any.size() > kMaxMatchers) {
      issues.Error(children[i].mark(), condition.attribute + ": found " +
                                           std::to_string(condition.any.size()) +
                                           " texts; the most is " + std::to_string(kMaxMatchers));
    }
    if (!condition.any.empty()) {
      rule.when.push_back(std::move(condition));
    }
  }
  rule.view.when = Words(rule);
}

void ReadPer(const YamlNode& node, RuleModel& rule, Issues& issues) {
  for (const auto& [text, mark] : Texts(node, "per", issues)) {
    if (text == "all" && !node.IsSequence()) {
      rule.view.per = "all";
      return;
    }
    if (!ReadKeyPart(text, mark, rule, issues)) {
      return;
    }
  }
  if (rule.per.size() > kMaxKeyParts) {
    issues.Error(node.mark(), "per: found " + std::to_string(rule.per.size()) +
                                  " attributes; the most is " + std::to_string(kMaxKeyParts));
  }
  for (const KeyPart& part : rule.per) {
    rule.view.per += rule.view.per.empty() ? "" : ", ";
    for (size_t i = 0; i < part.any.size(); ++i) {
      rule.view.per += (i == 0 ? "" : " | ") + part.any[i];
    }
  }
}

}  // namespace weir::rules
