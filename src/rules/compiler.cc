#include "rules/compiler.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/key_hash.h"
#include "base/spelling.h"
#include "rules/secret_attributes.h"
#include "rules/when_parser.h"

namespace weir::rules {

namespace {

// An alternative with what orders it.
struct Ordered {
  uint32_t rule = 0;
  const PathPattern* pattern = nullptr;
  int32_t priority = 0;
  std::string specificity;
  size_t conditions = 0;
};

class Compiler {
 public:
  Compiler(SetModel model, uint64_t version, Issues& issues)
      : set_(std::make_unique<CompiledSet>()), issues_(issues) {
    set_->model = std::move(model);
    set_->version = version;
  }

  std::unique_ptr<const CompiledSet> Run() {
    AttachOverrides();
    set_->rules.resize(set_->model.rules.size());
    for (uint32_t i = 0; i < set_->rules.size(); ++i) {
      CompileRule(i);
    }
    if (!set_->regexes.Compile()) {
      issues_.Error({},
                    "all regular expressions of one attribute together are too large for RE2; "
                    "use fewer or shorter ones");
    }
    if (!set_->block.Compile(set_->model.block, set_->attributes) ||
        !set_->allow.Compile(set_->model.allow, set_->attributes)) {
      TooManyAttributes({});
    }
    FindSpecial();
    CountCharges();
    if (issues_.errors() != 0) {
      return nullptr;
    }
    OrderAlternatives();
    if (set_->alternatives.size() > kMaxRanks) {
      issues_.Error({},
                    "found " + std::to_string(set_->alternatives.size()) +
                        " rules, a rule with several paths counted once for each; the most is " +
                        std::to_string(kMaxRanks));
      return nullptr;
    }
    CompileFilter();
    set_->has_deadlines =
        set_->has_deadlines || set_->block.has_deadlines() || set_->allow.has_deadlines();
    return std::move(set_);
  }

 private:
  void TooManyAttributes(Mark mark) {
    issues_.Error(mark, "more than " + std::to_string(kMaxSetAttributes) +
                            " different attributes in all rules; expected fewer");
  }

  uint16_t Intern(std::string_view name, Mark mark) {
    const auto number = set_->attributes.Intern(name);
    if (!number) {
      TooManyAttributes(mark);
    }
    return number.value_or(0);
  }

  // An override is one more variant of its rule; those with equal quotas share one.
  void AttachOverrides() {
    for (const OverrideModel& made : set_->model.overrides) {
      auto& rules = set_->model.rules;
      const auto rule = std::find_if(rules.begin(), rules.end(),
                                     [&](const RuleModel& r) { return r.view.name == made.rule; });
      auto& variants = rule->view.variants;
      const auto same = [&](const RuleVariant& variant) {
        return variant.is_override && variant.tier == OverrideName(made.variant);
      };
      auto found = std::find_if(variants.begin(), variants.end(), same);
      if (found == variants.end()) {
        found = variants.insert(variants.end(), made.variant);
        found->tier = OverrideName(made.variant);
      }
      const auto index = static_cast<uint32_t>(found - variants.begin());
      if (!overrides_[made.rule].emplace(made.key, CompiledOverride{index, made.expires}).second) {
        issues_.SetRule(made.rule);
        const std::string key = CountsBySecret(*rule) ? Hidden(made.key) : base::Quoted(made.key);
        issues_.Error(made.mark, "an override: the key " + key +
                                     " has one already; expected one for each key");
        issues_.SetRule("");
      }
      set_->has_deadlines = set_->has_deadlines || made.expires != kNever;
    }
    for (RuleModel& rule : set_->model.rules) {
      rule.view.secret_keys = CountsBySecret(rule);
      set_->views.push_back(rule.view);
    }
  }

  static bool CountsBySecret(const RuleModel& rule) {
    return std::any_of(rule.per.begin(), rule.per.end(), [](const KeyPart& part) {
      return std::any_of(part.any.begin(), part.any.end(), IsSecret);
    });
  }

  static std::string OverrideName(const RuleVariant& variant) {
    std::string name = variant.unlimited ? "unlimited" : "";
    for (const RuleQuota& quota : variant.quotas) {
      name += (name.empty() ? "" : ", ") + quota.text;
    }
    return name;
  }

  void CompileRule(uint32_t index) {
    const RuleModel& model = set_->model.rules[index];
    CompiledRule& rule = set_->rules[index];
    issues_.SetFile(model.view.file);
    issues_.SetRule(model.view.name);
    rule.model = &model;
    rule.view = &set_->views[index];
    for (const Condition& condition : model.when) {
      CompileCondition(condition, model.mark, rule);
    }
    if (!model.paths.empty()) {
      Intern("path", model.mark);
    }
    for (const KeyPart& part : model.per) {
      auto& sources = rule.per.emplace_back();
      for (const std::string& name : part.any) {
        sources.push_back(SourceFor(name, model.mark));
      }
    }
    rule.by = model.by.empty() ? AttributeTable::kNone : Intern(model.by, model.mark);
    rule.cost_attribute = model.cost.attribute.empty() ? AttributeTable::kNone
                                                       : Intern(model.cost.attribute, model.mark);
    rule.canary_salt = base::SaltFor(base::HashKeySeeded(model.view.name, 0));
    rule.group = GroupOf(*rule.view, model.mark);
    for (const RuleVariant& variant : rule.view->variants) {
      rule.first_slot.push_back(set_->slot_count);
      set_->slot_count += static_cast<uint32_t>(variant.quotas.size());
    }
    if (const auto found = overrides_.find(model.view.name); found != overrides_.end()) {
      for (auto& [key, made] : found->second) {
        rule.overrides.emplace(key, made);
      }
    }
    set_->has_deadlines = set_->has_deadlines || rule.view->expires != kNever;
    issues_.SetRule("");
  }

  void CompileCondition(const Condition& condition, Mark mark, CompiledRule& rule) {
    CompiledCondition compiled{.attribute = Intern(condition.attribute, mark), .any = {}};
    for (const Matcher& matcher : condition.any) {
      uint16_t regex = 0;
      if (matcher.kind == MatcherKind::kRegex) {
        const auto number = set_->regexes.Add(compiled.attribute, matcher.text);
        if (!number) {
          issues_.Error(mark, "more than " + std::to_string(kMaxRegexes) +
                                  " regular expressions (and globs that need one) in all rules");
        }
        regex = number.value_or(0);
      }
      compiled.any.push_back({&matcher, regex});
    }
    rule.when.push_back(std::move(compiled));
  }

  KeySource SourceFor(const std::string& name, Mark mark) {
    using Kind = KeySource::Kind;
    if (name.starts_with("path:")) {
      return {Kind::kParameter, AttributeTable::kNone, name.substr(5)};
    }
    if (const unsigned bits = Ipv4BitsOf(name); bits != 0) {
      return {Kind::kAddress, Intern("ip", mark), name, static_cast<uint8_t>(bits)};
    }
    if (name == "route") {
      Intern("path", mark);  // what stands in for a route that nobody named
    }
    const Kind kind = name == "ip" ? Kind::kAddress : name == "route" ? Kind::kRoute : Kind::kText;
    return {kind, Intern(name, mark), name};
  }

  // Shadow rules compete among themselves: one that took a real rule's place would change who is
  // limited. The default rule has a group of its own.
  uint8_t GroupOf(const RuleView& view, Mark mark) {
    const std::string name = view.is_default ? "default" : view.group;
    const auto [found, is_new] =
        groups_.emplace(std::tuple(name, view.shadow, view.is_default), set_->group_names.size());
    if (is_new) {
      set_->group_names.push_back(name);
      charges_.push_back(0);
      if (found->second < kMaxGroups && view.shadow) {
        set_->shadow_groups |= uint64_t{1} << found->second;
      }
      if (found->second == kMaxGroups) {
        issues_.Error(mark, "more than " + std::to_string(kMaxGroups) +
                                " groups; a request could meet more quotas than it may; give rules "
                                "that stand for one another the same group");
      }
    }
    if (!view.disabled) {
      for (const RuleVariant& variant : view.variants) {
        charges_[found->second] = std::max(charges_[found->second], variant.quotas.size());
      }
    }
    return static_cast<uint8_t>(found->second);
  }

  void CountCharges() {
    size_t most = 0;
    for (const size_t charges : charges_) {
      most += charges;
    }
    if (most > kMaxCharges && charges_.size() <= kMaxGroups) {
      issues_.SetRule("");
      issues_.Error({}, "one request could meet " + std::to_string(most) +
                            " quotas (of each group the rule with the most); the most is " +
                            std::to_string(kMaxCharges));
    }
  }

  void FindSpecial() {
    const bool derives = set_->attributes.Find("asn") != AttributeTable::kNone ||
                         set_->attributes.Find("country") != AttributeTable::kNone;
    if (derives) {
      Intern("ip", {});  // which they can be derived from
    }
    set_->special = {.ip = set_->attributes.Find("ip"),
                     .host = set_->attributes.Find("host"),
                     .path = set_->attributes.Find("path"),
                     .route = set_->attributes.Find("route"),
                     .asn = set_->attributes.Find("asn"),
                     .country = set_->attributes.Find("country")};
  }

  // Priority, then how much the path says, then the number of conditions, then the file's order.
  void OrderAlternatives() {
    std::vector<Ordered> all;
    for (uint32_t i = 0; i < set_->rules.size(); ++i) {
      const RuleModel& model = set_->model.rules[i];
      if (model.view.disabled) {
        continue;
      }
      const bool by_path_text =
          std::any_of(model.when.begin(), model.when.end(),
                      [](const Condition& condition) { return condition.attribute == "path"; });
      Ordered ordered{.rule = i,
                      .pattern = nullptr,
                      .priority = model.view.priority,
                      .specificity = by_path_text ? "1" : "0",
                      .conditions = model.when.size() + (model.paths.empty() ? 0 : 1)};
      if (model.paths.empty()) {
        all.push_back(ordered);
      }
      for (const PathPattern& pattern : model.paths) {
        ordered.pattern = &pattern;
        ordered.specificity = pattern.Specificity();
        all.push_back(ordered);
      }
    }
    // Last by place in the file. (Not a stable sort, which clang finds deprecated parts in.)
    std::sort(all.begin(), all.end(), [](const Ordered& a, const Ordered& b) {
      return std::tie(b.priority, b.specificity, b.conditions, a.rule, a.pattern) <
             std::tie(a.priority, a.specificity, a.conditions, b.rule, b.pattern);
    });
    for (const Ordered& ordered : all) {
      set_->alternatives.push_back(
          {ordered.rule, set_->rules[ordered.rule].group, ordered.pattern});
    }
  }

  void CompileFilter() {
    std::vector<RuleFilter::Entry> entries;
    for (uint32_t rank = 0; rank < set_->alternatives.size(); ++rank) {
      const Alternative& alternative = set_->alternatives[rank];
      const CompiledRule& rule = set_->rules[alternative.rule];
      if (rule.view->is_default) {  // not for its conditions: it has none
        set_->default_rank = rank;
        entries.emplace_back();
      } else {
        entries.push_back({&rule, alternative.pattern, alternative.group});
        AddCanary(rank, rule);
      }
    }
    set_->filter.Compile(entries);
    // Behind the last word, too: there all of them have begun.
    const auto& canaries = set_->canaries;
    for (size_t word = 0; !canaries.empty() && word <= set_->filter.words(); ++word) {
      const auto first = std::partition_point(
          canaries.begin(), canaries.end(),
          [word](const Canary& canary) { return canary.rank < word * kWordBits; });
      set_->first_canary.push_back(static_cast<uint32_t>(first - canaries.begin()));
    }
  }

  void AddCanary(uint32_t rank, const CompiledRule& rule) {
    const bool by_path =
        std::any_of(rule.per.begin(), rule.per.end(), [](const std::vector<KeySource>& part) {
          return std::any_of(part.begin(), part.end(), [](const KeySource& source) {
            return source.kind == KeySource::Kind::kRoute ||
                   source.kind == KeySource::Kind::kParameter;
          });
        });
    if (rule.view->canary_permille < 1000 && !by_path) {
      const auto key = canary_keys_.try_emplace({rule.view->per, rule.model->ipv6_prefix_bits},
                                                static_cast<uint32_t>(canary_keys_.size()));
      set_->canaries.push_back(
          {key.first->second, rank, rule.view->canary_permille, rule.canary_salt});
    }
  }

  std::unique_ptr<CompiledSet> set_;
  Issues& issues_;
  std::map<std::string, std::map<std::string, CompiledOverride>> overrides_;
  std::map<std::tuple<std::string, bool, bool>, size_t> groups_;
  std::map<std::pair<std::string, uint8_t>, uint32_t> canary_keys_;
  std::vector<size_t> charges_;  // by group: the most that one of its rules makes
};

}  // namespace

std::unique_ptr<const CompiledSet> Compile(SetModel model, uint64_t version, Issues& issues) {
  return Compiler(std::move(model), version, issues).Run();
}

}  // namespace weir::rules
