#include "rules/list_parser.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/spelling.h"
#include "rules/fields.h"
#include "rules/key_text.h"
#include "rules/when_parser.h"

namespace weir::rules {

namespace {

constexpr std::array<std::string_view, 8> kOverrideKeys = {
    "rule", "key", "limit", "limits", "burst", "algorithm", "expires", "comment"};

void AddEntry(std::string_view what, std::string_view attribute, std::string_view value, Mark mark,
              WallTime expires, std::vector<ListEntry>& list, Issues& issues) {
  ListEntry entry{.attribute = std::string(attribute),
                  .value = std::string(value),
                  .prefix = std::nullopt,
                  .expires = expires};
  if (attribute == "ip") {
    entry.prefix = base::IpPrefix::Parse(value);
    if (!entry.prefix) {
      issues.Error(mark, std::string(what) + ": found " + base::Quoted(value) +
                             "; expected an address or a prefix without bits beyond its length, "
                             "such as 203.0.113.7 or 203.0.113.0/24; or an attribute and its "
                             "value, such as api_key: k-123");
      return;
    }
  }
  if (list.size() == kMaxListEntries) {
    issues.Error(mark,
                 std::string(what) + ": more than " + std::to_string(kMaxListEntries) + " entries");
  }
  if (list.size() <= kMaxListEntries) {
    list.push_back(std::move(entry));
  }
}

// {api_key: [a, b], expires: 2027-01-31, comment: leaked}
void ReadMapEntry(const YamlNode& node, std::string_view what, std::vector<ListEntry>& list,
                  Issues& issues) {
  WallTime expires = kNever;
  const YamlNode* values = nullptr;
  std::string attribute;
  const std::vector<YamlNode> children = node.children();
  for (size_t i = 0; i + 1 < children.size(); i += 2) {
    const std::string_view key = children[i].text();
    if (key == "comment") {
      continue;
    }
    if (key == "expires") {
      const auto time =
          children[i + 1].IsScalar() ? ParseTime(children[i + 1].text()) : std::nullopt;
      if (!time) {
        issues.Error(children[i + 1].mark(), "expires: found " + Describe(children[i + 1]) +
                                                 "; expected a time such as 2027-01-31");
      }
      expires = time.value_or(kNever);
      continue;
    }
    if (values != nullptr) {
      issues.Error(children[i].mark(), std::string(what) + ": found a second attribute " +
                                           base::Quoted(key) +
                                           "; expected one, with expires and comment at the most");
      return;
    }
    attribute = ReadAttributeName(key, children[i].mark(), issues);
    values = &children[i + 1];
  }
  if (values == nullptr) {
    issues.Error(node.mark(), std::string(what) +
                                  ": found no attribute; expected one, such as {api_key: k-123}");
    return;
  }
  for (const auto& [value, mark] : Texts(*values, what, issues)) {
    AddEntry(what, attribute, value, mark, expires, list, issues);
  }
}

}  // namespace

void ReadList(const YamlNode& node, std::string_view what, std::vector<ListEntry>& list,
              Issues& issues) {
  if (!node.IsSequence()) {
    issues.Error(node.mark(), std::string(what) + ": found " + Describe(node) +
                                  "; expected a list of addresses, prefixes, or attributes with "
                                  "their values");
    return;
  }
  for (const YamlNode& item : node.children()) {
    if (item.IsScalar()) {
      AddEntry(what, "ip", item.text(), item.mark(), kNever, list, issues);
    } else if (item.IsMap()) {
      ReadMapEntry(item, what, list, issues);
    } else {
      issues.Error(item.mark(), std::string(what) + ": found " + Describe(item) +
                                    "; expected an address, a prefix or {api_key: k-123}");
    }
  }
}

void ReadOverrides(const YamlNode& node, const QuotaContext& context, SetModel& model,
                   Issues& issues) {
  if (!node.IsSequence()) {
    issues.Error(node.mark(), "overrides: found " + Describe(node) +
                                  "; expected a list such as [{rule: plan, key: alice, limit: "
                                  "5000/h, expires: 2027-01-31}]");
    return;
  }
  std::vector<std::string_view> names;
  for (const RuleModel& rule : model.rules) {
    names.push_back(rule.view.name);
  }
  for (const YamlNode& item : node.children()) {
    const Fields fields(item, kOverrideKeys, "an override", issues);
    OverrideModel made{
        .rule = "", .key = "", .variant = {}, .expires = kNever, .mark = item.mark()};
    fields.Read("rule", made.rule);
    fields.Read("expires", made.expires);
    issues.SetRule(made.rule);
    const auto rule = std::find_if(model.rules.begin(), model.rules.end(),
                                   [&](const RuleModel& r) { return r.view.name == made.rule; });
    if (rule == model.rules.end()) {
      issues.Error(fields.MarkOf("rule"), "an override: the rule " + base::Quoted(made.rule) +
                                              " is not there;" + DidYouMean(made.rule, names) +
                                              " expected the name of a rule");
      continue;
    }
    const YamlNode* const key = fields.Find("key");
    if (key == nullptr) {
      issues.Error(item.mark(),
                   "an override: no key; expected what the rule counts by, such as "
                   "key: alice, or key: [alice, /search]");
      continue;
    }
    const auto texts = Texts(*key, "key", issues);
    for (size_t i = 0; i < texts.size(); ++i) {
      made.key += i == 0 ? "" : "|";
      // A single text may be a key as explain shows it.
      made.key += key->IsSequence() ? EscapedKeyPart(texts[i].first) : std::string(texts[i].first);
    }
    auto variants = ReadVariants(fields, context, rule->precision, "", issues);
    if (!variants.front().unlimited && variants.front().quotas.empty() && issues.errors() == 0) {
      issues.Error(item.mark(),
                   "an override: no limit; expected limit: 5000/h, or limit: "
                   "unlimited");
    }
    made.variant = std::move(variants.front());
    made.variant.is_override = true;
    model.overrides.push_back(std::move(made));
  }
  issues.SetRule("");
}

}  // namespace weir::rules
