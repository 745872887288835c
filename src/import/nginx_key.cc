#include "import/nginx_key.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/ip_address.h"
#include "base/spelling.h"

namespace weir::import {

namespace {

bool IsName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// Variables that fronts fill in as an attribute of another name.
const std::map<std::string, std::string>& KnownVariables() {
  static const std::map<std::string, std::string> known = {
      {"binary_remote_addr", "ip"}, {"remote_addr", "ip"},   {"host", "host"},
      {"http_host", "host"},        {"server_name", "host"}, {"request_method", "method"},
      {"request_uri", "path"},      {"uri", "path"},         {"document_uri", "path"},
      {"remote_user", "user"}};
  return known;
}

}  // namespace

std::string WholeRegex(std::string_view regex, bool ignore_case, bool of_path) {
  const bool from_start = regex.starts_with('^');
  const bool to_end = regex.ends_with('$') && !regex.ends_with("\\$");
  // Anchors at the outside go, unless they belong to one of several alternatives.
  const bool split = regex.find('|') != std::string_view::npos;
  std::string inner(regex);
  if (!split) {
    inner = inner.substr(from_start ? 1 : 0);
    inner.resize(inner.size() - (to_end ? 1 : 0));
  } else if (to_end && inner.find(")$") == inner.size() - 2 &&
             std::count(inner.begin(), inner.end(), '|') != 0 &&
             inner.find('|') > inner.find('(')) {
    inner.resize(inner.size() - 1);
    if (from_start) {
      inner.erase(0, 1);
    }
  } else {
    return std::string(ignore_case ? "(?is)" : "(?s)") + ".*(?:" + inner + ").*";
  }
  const std::string any = of_path ? "[^?#]*" : ".*";
  std::string whole = ignore_case ? "(?is)" : "(?s)";
  whole += (from_start ? "" : any) + "(?:" + inner + ")" + (to_end ? "" : any);
  return whole + (of_path ? "(?:[?#].*)?" : "");
}

void NginxKeys::AddMap(const NginxDirective& directive) {
  if (directive.words.size() >= 2 && directive.words.back().starts_with('$')) {
    maps_[directive.words.back().substr(1)] = &directive;
  }
}

NginxKeys::Cut NginxKeys::CutUp(std::string_view text) {
  Cut cut;
  while (!text.empty()) {
    if (text.front() != '$' || text.size() == 1) {
      cut.has_text = true;
      text.remove_prefix(1);
      continue;
    }
    text.remove_prefix(1);
    const bool braces = text.starts_with('{');
    text.remove_prefix(braces ? 1 : 0);
    const auto end =
        static_cast<size_t>(std::find_if_not(text.begin(), text.end(), IsName) - text.begin());
    cut.variables.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    text.remove_prefix(braces && text.starts_with('}') ? 1 : 0);
  }
  return cut;
}

std::string NginxKeys::AttributeOf(const std::string& variable, const Place& place) {
  if (const auto given = given_.find(variable); given != given_.end()) {
    return given->second;
  }
  if (variable == "uri" || variable == "document_uri") {
    into_.NoteOnce(Carry::kApproximated, place,
                   "$" + variable + ": the path as it was sent, with its query");
  }
  if (variable == "server_name") {
    into_.NoteOnce(Carry::kApproximated, place, "$server_name: the host that was asked for");
  }
  if (const auto known = KnownVariables().find(variable); known != KnownVariables().end()) {
    return known->second;
  }
  const auto renamed = [&](size_t prefix, std::string_view kind, char joint) {
    std::string name = std::string(kind) + Lower(variable.substr(prefix));
    std::replace(name.begin() + static_cast<ptrdiff_t>(kind.size()), name.end(), '_', joint);
    return name;
  };
  if (variable.starts_with("http_")) {
    return renamed(5, "header:", '-');
  }
  const std::string name = variable.starts_with("arg_")      ? "query:" + variable.substr(4)
                           : variable.starts_with("cookie_") ? "cookie:" + variable.substr(7)
                                                             : variable;
  into_.NoteOnce(Carry::kApproximated, place,
                 "$" + variable + " is the attribute " + base::Quoted(name) +
                     ", which the proxies' fronts do not fill in: the caller has to send it");
  return names_.Of(name, place, into_);
}

std::optional<NginxKey> NginxKeys::Read(const std::string& text, const Place& place) {
  const Cut cut = CutUp(text);
  if (cut.variables.size() == 1 && !cut.has_text) {
    if (const auto map = maps_.find(cut.variables.front()); map != maps_.end()) {
      return ReadMap(*map->second, place);
    }
  }
  NginxKey key;
  for (const std::string& variable : cut.variables) {
    if (maps_.contains(variable)) {
      into_.Note(Carry::kDropped, place,
                 "$" + variable + ": a variable of map or geo together with others");
      return std::nullopt;
    }
    const std::string attribute = AttributeOf(variable, place);
    if (std::find(key.per.begin(), key.per.end(), attribute) == key.per.end()) {
      key.per.push_back(attribute);
    }
  }
  // nginx counts whatever is not empty as a whole.
  key.needs_all = cut.variables.size() == 1 && !cut.has_text;
  return key;
}

std::optional<NginxKey> NginxKeys::ReadMap(const NginxDirective& map, const Place& place) {
  const auto drop = [&](const std::string& why) {
    into_.Note(Carry::kDropped, place, map.words.back() + ": " + why);
    return std::nullopt;
  };
  if (map.name() != "map" || map.words.size() != 3) {
    return drop("only a map of something to a key or to nothing is understood");
  }
  std::string value;  // the key; all others are nothing
  std::string default_value;
  for (const NginxDirective& one : map.block) {
    if (one.words.size() != 2 || one.name() == "include") {
      if (one.name() == "hostnames" || one.name() == "volatile") {
        continue;
      }
      return drop("its map has " + base::Quoted(one.name()) + ", which is not understood");
    }
    const std::string& made = one.words[1];
    default_value = one.name() == "default" ? made : default_value;
    if (!made.empty() && !value.empty() && made != value) {
      return drop("its map makes different keys");
    }
    value = made.empty() ? value : made;
  }
  const Cut cut = CutUp(value);
  if (std::any_of(cut.variables.begin(), cut.variables.end(),
                  [this](const std::string& name) { return maps_.contains(name); })) {
    return drop("its map makes a key of another map");
  }
  auto key = Read(value, place);
  if (!key || !AddCases(map, default_value, *key, place)) {
    return std::nullopt;
  }
  return key;
}

bool NginxKeys::AddCases(const NginxDirective& map, const std::string& default_value, NginxKey& key,
                         const Place& place) {
  const Cut source = CutUp(map.words[1]);
  if (source.variables.size() != 1 || source.has_text) {
    into_.Note(Carry::kDropped, place,
               map.words.back() + ": its map is by " + base::Quoted(map.words[1]) +
                   "; only one variable is understood");
    return false;
  }
  // With a default that is counted the others are exceptions, and the other way round.
  const bool counted = !default_value.empty();
  std::vector<Test> tests;
  std::string attribute;
  const auto geo = maps_.find(source.variables.front());
  const auto decides = [&](const NginxDirective& one) {
    return one.words.size() == 2 && one.name() != "default" && one.words[1].empty() == counted;
  };
  if (geo != maps_.end()) {
    // Networks have names, and the map says which of these names are counted.
    std::string geo_default;
    for (const NginxDirective& net : geo->second->block) {
      geo_default = net.name() == "default" && net.words.size() == 2 ? net.words[1] : geo_default;
    }
    const auto is_counted = [&](const std::string& name) {
      for (const NginxDirective& one : map.block) {
        if (one.words.size() == 2 && one.name() == name) {
          return !one.words[1].empty();
        }
      }
      return counted;
    };
    if (geo->second->name() != "geo" || geo->second->words.size() != 2) {
      into_.Note(Carry::kDropped, place, map.words.back() + ": a map of a map");
      return false;
    }
    attribute = "ip";
    const bool by_default = is_counted(geo_default);
    for (const NginxDirective& net : geo->second->block) {
      if (net.words.size() == 2 && base::IpPrefix::Parse(net.name()) &&
          is_counted(net.words[1]) != by_default) {
        tests.push_back({Match::kExact, net.name()});
      } else if (net.name() != "default" && !base::IpPrefix::Parse(net.name())) {
        into_.Note(Carry::kDropped, net.place,
                   "geo: " + base::Quoted(net.name()) + " is neither an address nor a network");
      }
    }
    if (by_default) {
      if (!tests.empty()) {
        key.exceptions.push_back({attribute, tests});
      }
    } else {
      key.only = Condition{attribute, tests};
    }
    return by_default || !tests.empty();
  }
  attribute = AttributeOf(source.variables.front(), place);
  for (const NginxDirective& one : map.block) {
    if (!decides(one)) {
      continue;
    }
    const auto more = TestsOf(attribute, one.name(), one.place);
    if (!more) {
      return false;
    }
    tests.insert(tests.end(), more->begin(), more->end());
  }
  if (!counted) {
    key.only = Condition{attribute, tests};
    return !tests.empty();
  }
  if (!tests.empty()) {
    key.exceptions.push_back({attribute, tests});
  }
  return true;
}

std::optional<std::vector<Test>> NginxKeys::TestsOf(const std::string& attribute,
                                                    const std::string& pattern,
                                                    const Place& place) {
  if (pattern.empty()) {
    return std::vector<Test>{{Match::kAbsent, ""}};
  }
  if (pattern.starts_with('~')) {
    const bool any_case = pattern.starts_with("~*");
    return std::vector<Test>{
        {Match::kRegex, WholeRegex(std::string_view(pattern).substr(any_case ? 2 : 1), any_case,
                                   attribute == "path")}};
  }
  if (attribute == "ip") {
    if (!base::IpAddress::Parse(pattern)) {
      into_.Note(Carry::kDropped, place, base::Quoted(pattern) + " is no address");
      return std::nullopt;
    }
    return std::vector<Test>{{Match::kExact, pattern}};
  }
  if (attribute == "method" || attribute == "host") {
    return std::vector<Test>{{Match::kExact, pattern}};
  }
  return std::vector<Test>{{Match::kRegex, "(?is)" + RegexOf(pattern)}};
}

}  // namespace weir::import
