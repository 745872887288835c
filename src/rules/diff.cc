// What changes, and for whom, when one rule set takes another's place.
#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/rule_set.h"

#include "base/spelling.h"
#include "rules/rule_set_state.h"

namespace weir {

namespace {

using Kind = RuleChange::Kind;
using rules::CompiledSet;

using ByName = std::unordered_map<std::string_view, const RuleView*>;

ByName Index(std::span<const RuleView> views) {
  ByName by_name;
  for (const RuleView& view : views) {
    by_name.emplace(view.name, &view);
  }
  return by_name;
}

const RuleView* Find(const ByName& by_name, std::string_view name) {
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

const RuleVariant* Find(const RuleView& view, const RuleVariant& like) {
  const auto found =
      std::find_if(view.variants.begin(), view.variants.end(), [&like](const RuleVariant& variant) {
        return variant.tier == like.tier && variant.is_override == like.is_override;
      });
  return found == view.variants.end() ? nullptr : &*found;
}

std::string Whom(const RuleVariant& variant) {
  return variant.is_override    ? " for keys with an override"
         : variant.tier.empty() ? ""
                                : " for tier " + variant.tier;
}

std::string Quotas(const RuleVariant& variant) {
  if (variant.unlimited) {
    return "unlimited";
  }
  std::string text;
  for (const RuleQuota& quota : variant.quotas) {
    text += (text.empty() ? "" : ", ") + quota.text;
  }
  return text.empty() ? "nothing" : text;
}

// Units a second in the long run; a gap admits one in its window. 0: it is no rate.
double Rate(const RuleQuota& quota) {
  return quota.window_s == 0 && quota.quota.algorithm() == Algorithm::kConcurrency ? 0
         : quota.quota.algorithm() == Algorithm::kCalendar
             ? double(quota.quota.limit()) / double(quota.window_s)
             : double(quota.quota.limit()) / (double(quota.quota.window().count()) / 1e9);
}

// By the least of a variant's rates, then by its bursts. kChanged where they cannot be compared.
Kind Compare(const RuleVariant& before, const RuleVariant& after) {
  if (before.unlimited || after.unlimited) {
    return after.unlimited ? Kind::kRaised : Kind::kLowered;
  }
  if (before.quotas.size() != 1 || after.quotas.size() != 1) {
    return Kind::kChanged;
  }
  const RuleQuota& a = before.quotas.front();
  const RuleQuota& b = after.quotas.front();
  const bool raised = Rate(b) >= Rate(a) && b.quota.burst() >= a.quota.burst();
  const bool lowered = Rate(b) <= Rate(a) && b.quota.burst() <= a.quota.burst();
  return a.quota.algorithm() != b.quota.algorithm() || raised == lowered ? Kind::kChanged
         : raised                                                        ? Kind::kRaised
                                                                         : Kind::kLowered;
}

class Differ {
 public:
  void Rules(const RuleView& before, const RuleView& after) {
    rule_ = after.name;
    Text("it matches", before.when.empty() ? "everything" : before.when,
         after.when.empty() ? "everything" : after.when);
    Text("it counts by", before.per, after.per);
    Text("its group is", before.group, after.group);
    Text("priority", std::to_string(before.priority), std::to_string(after.priority));
    Flag("disabled", before.disabled, after.disabled);
    Flag("shadow", before.shadow, after.shadow);
    Text("canary", Permille(before.canary_permille), Permille(after.canary_permille));
    if (before.expires != after.expires) {
      Add(Kind::kChanged, "it expires at another time");
    }
    if (before.action != after.action) {
      Text("it", Action(before), Action(after));
      return;
    }
    for (const RuleVariant& variant : after.variants) {
      const RuleVariant* const old = Find(before, variant);
      if (old == nullptr) {
        Add(Kind::kChanged, "new" + Whom(variant) + ": " + Quotas(variant));
      } else if (Quotas(*old) != Quotas(variant)) {
        const Kind kind = Compare(*old, variant);
        Add(kind, Quotas(*old) + " -> " + Quotas(variant) + Whom(variant) + " (" +
                      std::string(ToString(kind)) + ")");
      }
    }
    for (const RuleVariant& variant : before.variants) {
      if (Find(after, variant) == nullptr) {
        Add(Kind::kChanged, "no more" + Whom(variant) + ": " + Quotas(variant));
      }
    }
  }

  void Whole(Kind kind, const RuleView& view) {
    rule_ = view.name;
    const std::string who = view.when.empty() ? "everything" : view.when;
    Add(kind, std::string(ToString(kind)) + ": " + Action(view) + " " + who + ", per " + view.per);
  }

  void Lists(const CompiledSet& before, const CompiledSet& after) {
    rule_ = "";
    const auto count = [this](std::string_view what, size_t a, size_t b) {
      if (a != b) {
        Add(Kind::kChanged,
            std::string(what) + ": " + std::to_string(a) + " -> " + std::to_string(b) + " entries");
      }
    };
    count("block", before.model.block.size(), after.model.block.size());
    count("allow", before.model.allow.size(), after.model.allow.size());
    count("overrides", before.model.overrides.size(), after.model.overrides.size());
  }

  std::vector<RuleChange> Take() { return std::move(changes_); }

 private:
  static std::string Action(const RuleView& view) {
    return view.action == RuleAction::kBlock       ? "refuses"
           : view.action == RuleAction::kUnlimited ? "does not limit"
                                                   : Quotas(view.variants.front()) + " on";
  }
  static std::string Permille(uint32_t permille) {
    return std::to_string(permille / 10) + "." + std::to_string(permille % 10) + "%";
  }

  void Add(Kind kind, std::string text) {
    changes_.push_back({kind, rule_, (rule_.empty() ? "" : rule_ + ": ") + std::move(text)});
  }
  void Text(std::string_view what, const std::string& before, const std::string& after) {
    if (before != after) {
      Add(Kind::kChanged, std::string(what) + " " + before + " -> " + after);
    }
  }
  void Flag(std::string_view what, bool before, bool after) {
    if (before != after) {
      Add(Kind::kChanged, std::string(after ? "now " : "no more ") + std::string(what));
    }
  }

  std::string rule_;
  std::vector<RuleChange> changes_;
};

}  // namespace

std::string_view ToString(RuleChange::Kind kind) noexcept {
  switch (kind) {
    case Kind::kAdded:
      return "added";
    case Kind::kRemoved:
      return "removed";
    case Kind::kRaised:
      return "raised";
    case Kind::kLowered:
      return "lowered";
    case Kind::kChanged:
      return "changed";
  }
  return "unknown";
}

std::vector<RuleChange> Diff(const RuleSet& before, const RuleSet& after) {
  Differ differ;
  const ByName old_rules = Index(before.rules());
  const ByName new_rules = Index(after.rules());
  for (const RuleView& view : after.rules()) {
    if (const RuleView* const old = Find(old_rules, view.name)) {
      differ.Rules(*old, view);
    } else {
      differ.Whole(Kind::kAdded, view);
    }
  }
  for (const RuleView& view : before.rules()) {
    if (Find(new_rules, view.name) == nullptr) {
      differ.Whole(Kind::kRemoved, view);
    }
  }
  differ.Lists(*before.state().compiled, *after.state().compiled);
  return differ.Take();
}

std::vector<RuleIssue> LintAgainst(const RuleSet& running, const RuleSet& candidate) {
  std::vector<RuleIssue> issues;
  const ByName old_rules = Index(running.rules());
  const ByName new_rules = Index(candidate.rules());
  const auto warn = [&issues](const RuleView& view, std::string message) {
    issues.push_back(
        {IssueLevel::kWarning, view.file, view.line, 1, view.name, std::move(message)});
  };
  for (const RuleView& view : candidate.rules()) {
    const RuleView* const old = Find(old_rules, view.name);
    for (const RuleVariant& variant : view.variants) {
      const RuleVariant* const before = old == nullptr ? nullptr : Find(*old, variant);
      for (size_t i = 0; before != nullptr && i < variant.quotas.size(); ++i) {
        if (i < before->quotas.size() && Rate(variant.quotas[i]) * 10 < Rate(before->quotas[i])) {
          warn(view, "limit: " + before->quotas[i].text + " shrinks to " + variant.quotas[i].text +
                         Whom(variant) + ", less than a tenth; is that meant?");
        }
      }
    }
  }
  for (const RuleView& view : running.rules()) {
    if (Find(new_rules, view.name) == nullptr) {
      warn(view, "it is not there any more");
    }
  }
  return issues;
}

}  // namespace weir
