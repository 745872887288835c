#include "import/haproxy_condition.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/ip_address.h"
#include "base/spelling.h"
#include "import/nginx_key.h"
#include "rules/fields.h"

namespace weir::import {

namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

[[noreturn]] void Fail(const std::string& message) {
  throw HaproxyRefused{message};
}

// At commas outside brackets.
std::vector<std::string> SplitCommas(std::string_view text) {
  std::vector<std::string> parts(1);
  int open = 0;
  for (const char c : text) {
    open += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && open == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

struct Way {
  std::string_view ending;
  std::string_view how;
};

// path_beg is `path -m beg`.
constexpr std::array<Way, 7> kWays = {{{"_beg", "beg"},
                                       {"_end", "end"},
                                       {"_sub", "sub"},
                                       {"_reg", "reg"},
                                       {"_dir", "dir"},
                                       {"_dom", "dom"},
                                       {"_str", "str"}}};

std::string RegexFor(std::string_view how, const std::string& value, bool of_path) {
  const std::string text = RegexOf(value);
  const std::string any = of_path ? "[^?#]*" : ".*";
  const std::string tail = of_path ? "(?:[?#].*)?" : "";
  if (how == "beg") {
    return text + ".*";
  }
  if (how == "end") {
    return any + text + tail;
  }
  if (how == "sub") {
    return any + text + ".*";
  }
  if (how == "dir") {
    return "(?:" + any + "/)?" + text + "(?:[/?#].*)?";
  }
  if (how == "dom") {
    return "(?:.*[.:/])?" + text + "(?:[.:/].*)?";
  }
  return text + tail;
}

}  // namespace

HaproxySample ReadSample(std::string_view text) {
  HaproxySample sample;
  const std::vector<std::string> parts = SplitCommas(text);
  const std::string& first = parts.front();
  const size_t open = first.find('(');
  sample.name = first.substr(0, open);
  if (open != std::string::npos) {
    const size_t close = first.rfind(')');
    const size_t size = close == std::string::npos || close < open ? 0 : close - open - 1;
    sample.arguments = SplitCommas(first.substr(open + 1, size));
  }
  sample.converters.assign(parts.begin() + 1, parts.end());
  return sample;
}

std::string AttributeOf(const HaproxySample& sample, std::string_view name) {
  const std::string argument = sample.arguments.empty() ? "" : sample.arguments.front();
  if (name == "src") {
    return "ip";
  }
  if (name == "path" || name == "url" || name == "pathq" || name == "capture.req.uri") {
    return "path";
  }
  if (name == "method" || name == "capture.req.method") {
    return "method";
  }
  if (argument.empty()) {
    return "";
  }
  for (const std::string_view header : {"hdr", "req.hdr", "req.fhdr", "hdr_ip", "req.hdr_ip"}) {
    if (name == header) {
      return Lower(argument) == "host" ? "host" : "header:" + Lower(argument);
    }
  }
  if (name == "url_param" || name == "urlp" || name == "req.url_param") {
    return "query:" + argument;
  }
  return name == "req.cook" || name == "cook" ? "cookie:" + argument : "";
}

void HaproxyConditions::Define(const HaproxyLine& line) {
  if (line.words.size() >= 3) {
    named_[line.words[1]].emplace_back(line.words.begin() + 2, line.words.end());
  }
}

Predicate HaproxyConditions::Read(std::span<const std::string> words, bool unless) {
  Predicate any;
  Predicate all = Always();
  for (size_t at = 0; at < words.size();) {
    if (words[at] == "or" || words[at] == "||") {
      any = Or(any, all);
      all = Always();
      ++at;
    } else {
      all = And(all, Term(words, at));
    }
  }
  any = Or(any, all);
  return unless ? Not(any) : any;
}

Predicate HaproxyConditions::Term(std::span<const std::string> words, size_t& at) {
  std::string word = words[at++];
  bool negated = false;
  while (word.starts_with('!')) {
    negated = !negated;
    word.erase(0, 1);
    if (word.empty() && at < words.size()) {
      word = words[at++];
    }
  }
  Predicate term;
  if (word == "{") {
    const size_t begin = at;
    while (at < words.size() && words[at] != "}") {
      ++at;
    }
    if (at == words.size()) {
      Fail("found { without its }");
    }
    term = Expression(words.subspan(begin, at - begin));
    ++at;
  } else {
    term = Named(word);
  }
  return negated ? Not(term) : term;
}

Predicate HaproxyConditions::Named(const std::string& name) {
  if (const auto found = named_.find(name); found != named_.end()) {
    if (++depth_ > 16) {
      Fail("acl " + name + " is made of too many others");
    }
    Predicate any;
    for (const std::vector<std::string>& one : found->second) {
      any = Or(any, Expression(one));
    }
    --depth_;
    return any;
  }
  if (name == "TRUE" || name == "HTTP") {
    return Always();
  }
  if (name == "FALSE") {
    return {};
  }
  if (name.starts_with("METH_")) {
    return Only({"method", {{Match::kExact, name.substr(5)}}});
  }
  Fail("there is no acl " + base::Quoted(name));
}

std::optional<Predicate> HaproxyConditions::Counter(const HaproxySample& sample,
                                                    std::span<const std::string> rest) {
  CounterTest test;
  const std::string& name = sample.name;
  const std::vector<std::string>& arguments = sample.arguments;
  if (name.starts_with("src_")) {
    test.counter = name.substr(4);
    test.tracked = "src";
    test.table = arguments.empty() ? "" : arguments.front();
  } else if (name.size() > 4 && name.starts_with("sc") && name[3] == '_' &&
             std::isdigit(static_cast<unsigned char>(name[2])) != 0) {
    test.counter = name.substr(4);
    test.tracked = name.substr(2, 1);
    test.table = arguments.empty() ? "" : arguments.front();
  } else if (name.starts_with("sc_")) {
    test.counter = name.substr(3);
    test.tracked = arguments.empty() ? "0" : arguments.front();
    test.table = arguments.size() > 1 ? arguments[1] : "";
  } else {
    return std::nullopt;
  }
  if (!sample.converters.empty()) {
    Fail(name + " with a converter");
  }
  const auto number = rest.size() == 2 ? rules::ParseUnsigned(rest[1]) : std::nullopt;
  const uint64_t value = number.value_or(0);
  const std::string comparison = rest.empty() ? "" : rest[0];
  if (!value ||
      (comparison != "gt" && comparison != "ge" && comparison != "lt" && comparison != "le")) {
    Fail(name + ": expected gt, ge, lt or le and a number");
  }
  if ((comparison == "ge" || comparison == "lt") && value == 0) {
    Fail(name + " " + comparison + " 0 is always the same");
  }
  test.above = comparison == "gt" || comparison == "ge";
  test.value = comparison == "ge" || comparison == "lt" ? value - 1 : value;
  counters_.push_back(test);
  return Only({std::string(kCounter), {{Match::kExact, std::to_string(counters_.size() - 1)}}});
}

Predicate HaproxyConditions::Expression(std::span<const std::string> words) {
  if (words.empty()) {
    Fail("an empty condition");
  }
  const HaproxySample sample = ReadSample(words[0]);
  if (sample.name == "always_true" || sample.name == "always_false") {
    return sample.name == "always_true" ? Always() : Predicate();
  }
  if (auto counter = Counter(sample, words.subspan(1))) {
    return *std::move(counter);
  }
  std::string name = sample.name;
  std::string how = "str";
  std::string attribute = AttributeOf(sample, name);
  for (const Way& way : kWays) {
    if (attribute.empty() && name.ends_with(way.ending)) {
      how = way.how;
      attribute =
          AttributeOf(sample, std::string_view(name).substr(0, name.size() - way.ending.size()));
    }
  }
  if (attribute.empty() || !(sample.converters.empty() ||
                             (sample.converters.size() == 1 && sample.converters[0] == "lower"))) {
    Fail(words[0] + " is not understood");
  }
  bool ignore_case = !sample.converters.empty();
  size_t at = 1;
  for (; at < words.size() && words[at].starts_with('-'); ++at) {
    if (words[at] == "-m" && at + 1 < words.size()) {
      how = words[++at];
    } else if (words[at] == "-i") {
      ignore_case = true;
    } else if (words[at] == "--") {
      ++at;
      break;
    } else if (words[at] != "-n") {
      Fail(words[at] + " is not understood");
    }
  }
  if (how == "found") {
    return Only({attribute, {{Match::kPresent, ""}}});
  }
  const std::span<const std::string> values = words.subspan(at);
  if (values.empty()) {
    Fail(words[0] + " without a value");
  }
  return Only({attribute, Tests(attribute, how, ignore_case, values)});
}

std::vector<Test> HaproxyConditions::Tests(const std::string& attribute, std::string_view how,
                                           bool ignore_case, std::span<const std::string> values) {
  std::vector<Test> tests;
  const bool of_path = attribute == "path";
  for (const std::string& value : values) {
    if (attribute == "ip") {
      if (!base::IpPrefix::Parse(value)) {
        Fail(base::Quoted(value) + " is neither an address nor a network");
      }
      tests.push_back({Match::kExact, value});
    } else if (how == "reg") {
      tests.push_back({Match::kRegex, WholeRegex(value, ignore_case, of_path)});
    } else if (attribute == "method" || (attribute == "host" && how == "str")) {
      tests.push_back({Match::kExact, value});
    } else if (how == "beg" && !ignore_case) {
      tests.push_back({Match::kPrefix, value});
    } else if (how == "str" && !ignore_case) {
      tests.push_back({Match::kExact, value});
      if (of_path) {
        tests.push_back({Match::kPrefix, value + "?"});
      }
    } else if (how == "beg" || how == "end" || how == "sub" || how == "dir" || how == "dom" ||
               how == "str") {
      tests.push_back(
          {Match::kRegex, (ignore_case ? "(?is)" : "(?s)") + RegexFor(how, value, of_path)});
    } else {
      Fail("-m " + std::string(how) + " is not understood");
    }
  }
  return tests;
}

}  // namespace weir::import
