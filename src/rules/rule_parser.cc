#include "rules/rule_parser.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <deque>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/spelling.h"
#include "rules/fields.h"
#include "rules/list_parser.h"
#include "rules/rule_quota.h"
#include "rules/when_parser.h"
#include "rules/yaml_reader.h"

namespace weir::rules {

namespace {

constexpr std::array<std::string_view, 7> kTopKeys = {
    "rules", "default", "tiers", "default-algorithm", "block", "allow", "overrides"};
constexpr std::array<std::string_view, 29> kRuleKeys = {
    "name",      "when",      "per",         "limit",   "limits",           "burst",
    "min-gap",   "algorithm", "by",          "cost",    "on-missing",       "group",
    "priority",  "shadow",    "disabled",    "expires", "canary",           "unlimited",
    "block",     "headers",   "apply",       "owner",   "on-store-failure", "precision",
    "time-zone", "comment",   "description", "durable", "ipv6-prefix"};
constexpr std::array<std::string_view, 3> kCostKeys = {"attribute", "default", "max"};

// A section of one of the files; where it stood is needed for messages.
struct Section {
  std::string file;
  YamlNode node;
};

class Parser {
 public:
  explicit Parser(Issues& issues) : issues_(issues) {}

  void Collect(const SourceText& source) {
    issues_.SetFile(source.name);
    YamlTree& tree = trees_.emplace_back();
    if (!tree.Read(source.text, issues_)) {
      return;
    }
    for (const YamlNode& document : tree.documents()) {
      const Fields fields(document, kTopKeys, "a rule file", issues_);
      for (const std::string_view key : kTopKeys) {
        if (const YamlNode* const node = fields.Find(key)) {
          sections_[std::string(key)].push_back({source.name, *node});
        }
      }
    }
  }

  SetModel Finish() {
    if (sections_.find("rules") == sections_.end() && issues_.errors() == 0) {
      issues_.Error({}, "no rules; expected rules: with a list, which may be empty: []");
    }
    Each("tiers", [this](const YamlNode& node) { ReadTiers(node); });
    Each("default-algorithm", [this](const YamlNode& node) { ReadDefaultAlgorithm(node); });
    Each("rules", [this](const YamlNode& node) { ReadRules(node); });
    Each("default", [this](const YamlNode& node) { ReadDefault(node); });
    Each("block", [this](const YamlNode& node) { ReadList(node, "block", model_.block, issues_); });
    Each("allow", [this](const YamlNode& node) { ReadList(node, "allow", model_.allow, issues_); });
    Each("overrides",
         [this](const YamlNode& node) { ReadOverrides(node, context_, model_, issues_); });
    return std::move(model_);
  }

 private:
  template <class Function>
  void Each(const std::string& key, Function function) {
    for (const Section& section : sections_[key]) {
      issues_.SetFile(section.file);
      function(section.node);
    }
  }

  void ReadTiers(const YamlNode& node) {
    if (!node.IsMap()) {
      issues_.Error(node.mark(), "tiers: found " + Describe(node) +
                                     "; expected a mapping such as {premium: 5x}");
      return;
    }
    const std::vector<YamlNode> children = node.children();
    for (size_t i = 0; i + 1 < children.size(); i += 2) {
      const uint64_t permille =
          children[i + 1].IsScalar() ? ParseFactor(children[i + 1].text()) : 0;
      if (permille == 0) {
        issues_.Error(children[i + 1].mark(), "tiers: found " + Describe(children[i + 1]) +
                                                  "; expected a factor such as 5x or 0.5x, up to "
                                                  "1000000x");
      }
      context_.tiers.push_back({std::string(children[i].text()), permille});
    }
    if (context_.tiers.size() > kMaxTiers) {
      issues_.Error(node.mark(), "tiers: found " + std::to_string(context_.tiers.size()) +
                                     "; the most is " + std::to_string(kMaxTiers));
    }
  }

  void ReadDefaultAlgorithm(const YamlNode& node) {
    if (!node.IsScalar() || !Quota::Parse("10/min " + std::string(node.text())).ok()) {
      issues_.Error(node.mark(), "default-algorithm: found " + Describe(node) +
                                     "; expected token-bucket, leaky-bucket, fixed-window, "
                                     "sliding-window, sliding-log or sliced-window slices <n>");
      return;
    }
    context_.default_algorithm = node.text();
  }

  void ReadRules(const YamlNode& node) {
    if (!node.IsSequence()) {
      issues_.Error(node.mark(), "rules: found " + Describe(node) +
                                     "; expected a list, each item with - name: at its head");
      return;
    }
    for (const YamlNode& item : node.children()) {
      if (model_.rules.size() == kMaxRules) {
        issues_.Error(item.mark(), "rules: more than " + std::to_string(kMaxRules));
        return;
      }
      model_.rules.push_back(ReadRule(item, ""));
    }
  }

  void ReadDefault(const YamlNode& node) {
    const auto is_default = [](const RuleModel& rule) { return rule.view.is_default; };
    if (std::any_of(model_.rules.begin(), model_.rules.end(), is_default)) {
      issues_.Error(node.mark(), "default: found a second one; expected one in all files");
      return;
    }
    RuleModel rule = ReadRule(node, "default");
    rule.view.is_default = true;
    if (!rule.when.empty() || !rule.paths.empty()) {
      issues_.Error(node.mark(), "default: found when; it is for what no other rule matches");
    }
    model_.rules.push_back(std::move(rule));
  }

  RuleModel ReadRule(const YamlNode& node, std::string_view name) {
    issues_.SetRule(name);
    RuleModel rule;
    RuleView& view = rule.view;
    rule.mark = node.mark();
    view.file = issues_.file();
    view.line = node.mark().line;
    view.name = name;
    // The name first, so that what follows can say which rule it is about.
    NameRule(node, view);
    issues_.SetRule(view.name);
    const Fields fields(node, kRuleKeys, "a rule", issues_);
    CheckName(fields, view);
    ReadPlainFields(fields, rule);
    if (const YamlNode* const when = fields.Find("when")) {
      ReadWhen(*when, rule, issues_);
    }
    ReadCounting(fields, rule);
    ReadAction(fields, rule);
    if (view.group.empty()) {
      view.group = "per " + view.per;
    }
    issues_.SetRule("");
    return rule;
  }

  static void NameRule(const YamlNode& node, RuleView& view) {
    const std::vector<YamlNode> children = node.IsMap() ? node.children() : std::vector<YamlNode>();
    for (size_t i = 0; i + 1 < children.size(); i += 2) {
      if (children[i].text() == "name" && children[i + 1].IsScalar()) {
        view.name = children[i + 1].text().substr(0, kMaxRuleNameBytes);
      }
    }
  }

  void CheckName(const Fields& fields, RuleView& view) {
    fields.Read("name", view.name, kMaxRuleNameBytes);
    const auto fits = [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == '/' || c == ':';
    };
    if (view.name.empty()) {
      issues_.Error(fields.MarkOf("name"), "a rule without a name; expected name: and a word");
    } else if (!std::all_of(view.name.begin(), view.name.end(), fits)) {
      issues_.Error(fields.MarkOf("name"), "name: found " + base::Quoted(view.name) +
                                               "; expected letters, digits, _ - . / and :");
    } else if (!names_.emplace(view.name, view.line).second) {
      issues_.Error(fields.MarkOf("name"), "name: " + base::Quoted(view.name) +
                                               " is that of another rule; expected a new one");
    }
  }

  void ReadPlainFields(const Fields& fields, RuleModel& rule) {
    RuleView& view = rule.view;
    fields.Read("group", view.group, 64);
    fields.Read("comment", view.comment, 4096);
    fields.Read("description", view.comment, 4096);
    fields.Read("owner", view.owner, 256);
    fields.Read("shadow", view.shadow);
    fields.Read("disabled", view.disabled);
    fields.Read("expires", view.expires);
    int64_t priority = 0;
    fields.Read("priority", priority, -1'000'000, 1'000'000);
    view.priority = static_cast<int32_t>(priority);
    fields.Read(
        "on-missing", rule.on_missing,
        {{"skip", OnMissing::kSkip}, {"deny", OnMissing::kDeny}, {"shared", OnMissing::kShared}});
    fields.Read("on-store-failure", view.on_store_failure,
                {{"local", OnStoreFailure::kLocal},
                 {"allow", OnStoreFailure::kAllow},
                 {"deny", OnStoreFailure::kDeny}});
    fields.Read("headers", view.headers,
                {{"visible", HeaderVisibility::kVisible}, {"hidden", HeaderVisibility::kHidden}});
    fields.Read("apply", view.apply,
                {{"now", ApplyWhen::kNow}, {"next-window", ApplyWhen::kNextWindow}});
    fields.Read("precision", rule.precision,
                {{"exact", Precision::kExact}, {"sketch", Precision::kSketch}});
    int64_t bits = 0;
    fields.Read("ipv6-prefix", bits, 1, 128);
    rule.ipv6_prefix_bits = static_cast<uint8_t>(bits);
    ReadCanary(fields, view);
    bool durable = false;
    fields.Read("durable", durable);
    if (durable) {
      issues_.Warning(fields.MarkOf("durable"),
                      "durable: this version counts in memory, and what was counted does not "
                      "outlive the process");
    }
  }

  void ReadCanary(const Fields& fields, RuleView& view) {
    std::string text;
    fields.Read("canary", text);
    if (text.empty()) {
      return;
    }
    const bool percent = text.ends_with('%');
    const uint64_t permille =
        percent ? ParseFactor(std::string_view(text).substr(0, text.size() - 1)) : 0;
    const bool zero = text == "0%";
    if ((!zero && permille == 0) || permille > 100'000 || permille % 100 != 0) {
      issues_.Error(fields.MarkOf("canary"),
                    "canary: found " + base::Quoted(text) +
                        "; expected a share of the keys such as 10% or 0.5%, up to 100%");
      return;
    }
    view.canary_permille = static_cast<uint32_t>(permille / 100);
  }

  void ReadCounting(const Fields& fields, RuleModel& rule) {
    if (const YamlNode* const per = fields.Find("per")) {
      ReadPer(*per, rule, issues_);
    }
    if (const YamlNode* const by = fields.Find("by")) {
      rule.by = by->IsScalar() ? ReadAttributeName(by->text(), by->mark(), issues_) : "";
      if (rule.by.empty()) {
        issues_.Error(by->mark(), "by: found " + Describe(*by) + "; expected an attribute");
      }
    }
    const YamlNode* const cost = fields.Find("cost");
    if (cost == nullptr) {
      return;
    }
    const auto most = static_cast<int64_t>(Cost::kMax);
    int64_t units = 1;
    if (cost->IsMap()) {
      const Fields inner(*cost, kCostKeys, "cost", issues_);
      int64_t limit = most;
      inner.Read("attribute", rule.cost.attribute);
      inner.Read("default", units, 0, most);
      inner.Read("max", limit, 1, most);
      rule.cost.most = static_cast<uint64_t>(limit);
      if (rule.cost.attribute.empty()) {
        issues_.Error(cost->mark(),
                      "cost: no attribute; expected a number, or {attribute: "
                      "tokens, default: 1, max: 100000}");
      }
      rule.cost.attribute =
          ReadAttributeName(rule.cost.attribute, inner.MarkOf("attribute"), issues_);
    } else {
      fields.Read("cost", units, 0, most);
    }
    rule.cost.units = static_cast<uint64_t>(units);
  }

  void ReadAction(const Fields& fields, RuleModel& rule) {
    RuleView& view = rule.view;
    bool unlimited = false;
    bool block = false;
    fields.Read("unlimited", unlimited);
    fields.Read("block", block);
    const bool limited = fields.Has("limit") || fields.Has("limits") || fields.Has("min-gap");
    if (int{unlimited} + int{block} + int{limited} != 1) {
      issues_.Error(fields.MarkOf("limit"),
                    limited || unlimited || block
                        ? "found several of limit, limits, min-gap, unlimited and block that "
                          "contradict one another; expected a limit, or unlimited: true, or block: "
                          "true"
                        : "no limit; expected limit: 100/min, or unlimited: true, or block: true");
      return;
    }
    if (!limited) {
      view.action = block ? RuleAction::kBlock : RuleAction::kUnlimited;
      view.variants.resize(1);
      view.per = view.per.empty() ? "all" : view.per;
      return;
    }
    if (view.per.empty()) {
      issues_.Error(fields.MarkOf("per"),
                    "no per; expected what to count by, such as per: ip, or per: all for one count "
                    "for everybody");
    }
    view.variants = ReadVariants(fields, context_, rule.precision, rule.by, issues_);
  }

  Issues& issues_;
  std::deque<YamlTree> trees_;  // nodes point into them
  std::unordered_map<std::string, std::vector<Section>> sections_;
  std::unordered_map<std::string, uint32_t> names_;
  QuotaContext context_;
  SetModel model_;
};

}  // namespace

SetModel ReadSources(std::span<const SourceText> sources, Issues& issues) {
  Parser parser(issues);
  for (const SourceText& source : sources) {
    parser.Collect(source);
  }
  return parser.Finish();
}

}  // namespace weir::rules
