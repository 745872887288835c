// limitador's limits file. All limits whose conditions hold apply together, so each is a group of
// its own; its windows begin with the first hit, and a refused request is counted by none.
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/spelling.h"
#include "import/attribute_names.h"
#include "import/cel.h"
#include "import/import.h"
#include "import/predicate.h"
#include "rules/fields.h"
#include "rules/yaml_reader.h"

namespace weir::import {

namespace {

using rules::YamlNode;

struct Limit {
  Place place;
  std::string name_space;
  std::string name;
  std::string id;
  uint64_t max_value = 0;
  uint64_t seconds = 0;
  std::vector<std::pair<std::string, Place>> conditions;
  std::vector<std::pair<std::string, Place>> variables;
};

class Reader {
 public:
  Reader(const ImportOptions& options, Imported& into)
      : names_(options.attributes, {}), into_(into) {}

  void Read(const Source& source) {
    file_ = source.name;
    rules::Issues issues;
    issues.SetFile(file_);
    rules::YamlTree tree;
    if (!tree.Read(source.text, issues)) {
      const RuleIssue issue = issues.Take().front();
      throw Refused{{file_, issue.line, issue.column}, issue.message};
    }
    for (const YamlNode& document : tree.documents()) {
      ReadDocument(document, 0);
    }
  }

  void Write() {
    std::set<std::string> namespaces;
    for (const Limit& limit : limits_) {
      namespaces.insert(limit.name_space);
    }
    size_t number = 0;
    for (const Limit& limit : limits_) {
      WriteLimit(limit, namespaces.size() > 1, ++number);
    }
  }

 private:
  [[nodiscard]] Place At(const YamlNode& node) const {
    return {file_, node.mark().line, node.mark().column};
  }

  [[noreturn]] void Fail(const YamlNode& node, const std::string& message) const {
    throw Refused{At(node), message};
  }

  // The list itself, or below `limits`, or a Limitador resource with it below `spec`.
  void ReadDocument(const YamlNode& node, int depth) {
    if (node.IsSequence()) {
      for (const YamlNode& item : node.children()) {
        limits_.push_back(ReadLimit(item));
      }
      return;
    }
    const std::vector<YamlNode> children = node.IsMap() ? node.children() : std::vector<YamlNode>();
    for (size_t i = 0; i + 1 < children.size() && depth < 2; i += 2) {
      if (children[i].text() == "limits" || children[i].text() == "spec") {
        ReadDocument(children[i + 1], depth + 1);
        return;
      }
    }
    Fail(node, "found " + Describe(node) +
                   "; expected a list of limits, each with namespace, max_value and seconds");
  }

  Limit ReadLimit(const YamlNode& node) {
    if (!node.IsMap()) {
      Fail(node,
           "found " + Describe(node) + "; expected a limit with namespace, max_value and seconds");
    }
    Limit limit{.place = At(node),
                .name_space = {},
                .name = {},
                .id = {},
                .conditions = {},
                .variables = {}};
    std::set<std::string, std::less<>> seen;
    const std::vector<YamlNode> children = node.children();
    for (size_t i = 0; i + 1 < children.size(); i += 2) {
      const YamlNode& value = children[i + 1];
      const std::string key(children[i].text());
      seen.insert(key);
      if (key == "namespace") {
        limit.name_space = Text(value, key);
      } else if (key == "name") {
        limit.name = Text(value, key);
      } else if (key == "id") {
        limit.id = Text(value, key);
      } else if (key == "max_value") {
        limit.max_value = Number(value, key);
      } else if (key == "seconds") {
        limit.seconds = Number(value, key);
      } else if (key == "conditions") {
        limit.conditions = Texts(value, key);
      } else if (key == "variables") {
        limit.variables = Texts(value, key);
      } else {
        into_.Note(Carry::kDropped, At(children[i]),
                   key +
                       ": not known; of limits namespace, max_value, seconds, conditions, "
                       "variables, name and id are");
      }
    }
    for (const std::string_view needed : {"namespace", "max_value", "seconds"}) {
      if (!seen.contains(needed)) {
        Fail(node, "a limit without " + std::string(needed));
      }
    }
    return limit;
  }

  std::string Text(const YamlNode& node, const std::string& key) const {
    if (!node.IsScalar()) {
      Fail(node, key + ": found " + Describe(node) + "; expected a text");
    }
    return std::string(node.text());
  }

  uint64_t Number(const YamlNode& node, const std::string& key) const {
    const auto number = node.IsScalar() ? rules::ParseUnsigned(node.text()) : std::nullopt;
    if (!number) {
      Fail(node, key + ": found " + Describe(node) + "; expected a whole number");
    }
    return *number;
  }

  std::vector<std::pair<std::string, Place>> Texts(const YamlNode& node,
                                                   const std::string& key) const {
    std::vector<std::pair<std::string, Place>> texts;
    if (node.kind() == rules::NodeKind::kNull) {
      return texts;
    }
    if (!node.IsSequence()) {
      Fail(node, key + ": found " + Describe(node) + "; expected a list of texts");
    }
    for (const YamlNode& item : node.children()) {
      texts.emplace_back(Text(item, key), At(item));
    }
    return texts;
  }

  void WriteLimit(const Limit& limit, bool several_namespaces, size_t number) {
    Rule rule{.place = limit.place};
    rule.source = std::to_string(limit.max_value) + " in " + std::to_string(limit.seconds) +
                  " seconds of " + base::Quoted(limit.name_space);
    rule.name = !limit.name.empty() ? limit.name
                : !limit.id.empty() ? limit.id
                                    : limit.name_space + "/" + std::to_string(number);
    rule.group = rule.name + "#" + std::to_string(number);
    rule.ipv6_prefix = 128;
    rule.limit = std::to_string(limit.max_value) + "/" + std::to_string(limit.seconds) +
                 "s fixed-window from first-hit";
    rule.action = limit.max_value == 0 ? Action::kBlock : Action::kLimit;
    const Place* at = &limit.place;
    try {
      Predicate when = Always();
      if (several_namespaces) {
        when =
            Only({names_.Of("namespace", limit.place, into_), {{Match::kExact, limit.name_space}}});
      }
      for (const auto& [text, place] : limit.conditions) {
        at = &place;
        when = And(when, ReadCelCondition(text, AttributeAt(place)));
      }
      for (const auto& [text, place] : limit.variables) {
        at = &place;
        rule.per.push_back(ReadCelVariable(text, AttributeAt(place)));
        if (rule.action == Action::kBlock) {
          when = And(when, Only({rule.per.back(), {{Match::kPresent, ""}}}));
        }
      }
      at = &limit.place;
      if (limit.seconds == 0 && limit.max_value != 0) {
        into_.Note(Carry::kDropped, *at, rule.source + ": a window of no length limits nothing");
      } else if (const std::string problem = AddRules(rule, when, into_); !problem.empty()) {
        into_.Note(Carry::kDropped, *at, rule.source + ": " + problem);
      }
    } catch (const CelRefused& refused) {
      into_.Note(Carry::kDropped, *at,
                 rule.source + ": " + refused.message + " (at byte " +
                     std::to_string(refused.at + 1) + " of the expression)");
    } catch (const std::length_error& error) {
      into_.Note(Carry::kDropped, *at, rule.source + ": " + error.what());
    }
  }

  CelAttribute AttributeAt(const Place& place) {
    return [this, &place](const std::string& name, size_t descriptor) {
      if (descriptor != 0) {
        into_.NoteOnce(Carry::kApproximated, place,
                       "descriptors[" + std::to_string(descriptor) +
                           "]: attributes of a request are not told apart by descriptor");
      }
      return names_.Of(name, place, into_);
    };
  }

  AttributeNames names_;
  Imported& into_;
  std::string file_;
  std::vector<Limit> limits_;
};

}  // namespace

void ReadLimitador(std::span<const Source> sources, const ImportOptions& options, Imported& into) {
  Reader reader(options, into);
  for (const Source& source : sources) {
    reader.Read(source);
  }
  reader.Write();
}

}  // namespace weir::import
