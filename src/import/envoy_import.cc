// envoyproxy/ratelimit's files. A descriptor's entries are attributes of a request; limits of one
// sequence of keys stand for one another, as only one of them is found for a descriptor, and so are
// one group, in the order in which the original looks: at each level the value itself, then
// wildcards in the order of the file, then the key alone, and never back.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ip_address.h"
#include "base/spelling.h"
#include "envoy/descriptor_config.h"
#include "envoy/descriptor_file.h"
#include "envoy/own_quota.h"
#include "envoy/unit.h"
#include "import/attribute_names.h"
#include "import/import.h"
#include "rules/fields.h"

namespace weir::import {

namespace {

using envoy::FileDescriptor;

using Keys = std::vector<std::string>;

// A descriptor with the file that it stands in.
struct Node {
  const FileDescriptor* descriptor = nullptr;
  const std::string* file = nullptr;

  [[nodiscard]] Place place() const { return {*file, descriptor->line, 0}; }
};

using Nodes = std::vector<Node>;

Nodes ChildrenOf(const Node& node) {
  Nodes children;
  for (const FileDescriptor& child : node.descriptor->descriptors) {
    children.push_back({&child, node.file});
  }
  return children;
}

bool IsWildcard(const FileDescriptor& descriptor) {
  return descriptor.value.find('*') != std::string::npos;
}

// What a look-up of one sequence of keys can end at, in the order of the look-up.
struct Ending {
  Conditions when;
  std::vector<std::string> per;
  std::string name;
  Node node;
  const envoy::LimitVariant* variant = nullptr;  // nullptr: no limit
  std::vector<std::string> variant_of;           // for whom, beside the descriptor
};

std::string UnitText(envoy::Unit unit) {
  switch (unit) {
    case envoy::Unit::kSecond:
      return "s";
    case envoy::Unit::kMinute:
      return "min";
    case envoy::Unit::kHour:
      return "h";
    case envoy::Unit::kDay:
      return "day";
    case envoy::Unit::kWeek:
      return "week";
    case envoy::Unit::kMonth:
      return "30d";
    case envoy::Unit::kYear:
    case envoy::Unit::kUnknown:
      break;
  }
  return "365d";
}

class Reader {
 public:
  Reader(const ImportOptions& options, bool several_domains, Imported& into)
      : names_(options.attributes, {{"remote_address", "ip"}}),
        several_domains_(several_domains),
        into_(into) {}

  void ReadDomain(const std::string& domain, const std::vector<const envoy::DescriptorFile*>& files,
                  bool strict) {
    domain_ = domain;
    strict_ = strict;
    endings_.clear();
    Nodes roots;
    bool counts_refused = false;
    for (const envoy::DescriptorFile* const file : files) {
      counts_refused = counts_refused || !file->all_or_nothing.value_or(false);
      for (const FileDescriptor& descriptor : file->descriptors) {
        roots.push_back({&descriptor, &file->name});
      }
    }
    const Place place{files.front()->name, 1, 0};
    if (several_domains_) {
      domain_attribute_ = names_.Of("domain", place, into_);
    }
    CheckNodes(roots);
    std::vector<Keys> sequences;
    CollectSequences(roots, {}, sequences);
    for (const Keys& keys : sequences) {
      std::vector<Ending>& endings = endings_[keys];
      Conditions none;
      if (several_domains_) {
        none.push_back({domain_attribute_, {{Match::kExact, domain_}}});
      }
      Walk(roots, keys, 0, {none, {}, several_domains_ ? domain_ : "", {}, nullptr, {}}, endings);
    }
    ApplyReplaces();
    if (counts_refused && !sequences.empty()) {
      into_.Note(Carry::kApproximated, place,
                 "domain " + base::Quoted(domain_) +
                     " counts what it refuses; here a refused request is charged to no limit, as "
                     "with STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT");
    }
    NoteNestedLimits(sequences, place);
    for (const Keys& keys : sequences) {
      Emit(keys, false);
      Emit(keys, true);
    }
  }

 private:
  // --- what cannot be carried over, node by node

  void CheckNodes(const Nodes& nodes) {
    std::set<std::string> keys;
    for (const Node& node : nodes) {
      keys.insert(node.descriptor->key);
    }
    for (const Node& node : nodes) {
      CheckNode(node, keys);
      CheckNodes(ChildrenOf(node));
    }
  }

  void CheckNode(const Node& node, const std::set<std::string>& siblings) {
    const FileDescriptor& given = *node.descriptor;
    if (HasPatternKey(node)) {
      into_.Note(Carry::kDropped, node.place(),
                 "key " + base::Quoted(given.key) +
                     ": a key that is a pattern, and all below it; attributes have one name");
    }
    if (given.detailed_metric || given.value_to_metric) {
      into_.Note(Carry::kDropped, node.place(),
                 std::string(given.detailed_metric ? "detailed_metric" : "value_to_metric") +
                     ": it names statistics; counts here are by rule");
    }
    if (given.metadata.IsStruct() && !given.metadata.fields().empty()) {
      into_.Note(Carry::kDropped, node.place(), "metadata: answers to Envoy had it");
    }
    const std::string composite = given.value.empty() ? given.key : given.key + "_" + given.value;
    for (size_t at = composite.find('_'); !strict_ && at != std::string::npos;
         at = composite.find('_', at + 1)) {
      if (const std::string other = composite.substr(0, at);
          other != given.key && siblings.contains(other)) {
        into_.Note(Carry::kApproximated, node.place(),
                   base::Quoted(composite) + " is also found there for the key " +
                       base::Quoted(other) + "; here keys and values are apart");
        return;
      }
    }
  }

  [[nodiscard]] bool HasPatternKey(const Node& node) const {
    return !strict_ && node.descriptor->key.find('*') != std::string::npos;
  }

  // A descriptor in the original meets the limit of all its entries only; a request here has them
  // all.
  void NoteNestedLimits(const std::vector<Keys>& sequences, const Place& place) {
    for (const Keys& one : sequences) {
      for (const Keys& other : sequences) {
        if (one.size() < other.size() && std::equal(one.begin(), one.end(), other.begin())) {
          into_.Note(Carry::kApproximated, place,
                     "limits by " + Joined(one) + " and by " + Joined(other) +
                         ": a request with all of these attributes meets both, as if Envoy sent a "
                         "descriptor for each");
          return;
        }
      }
    }
  }

  static std::string Joined(const Keys& keys) {
    std::string text;
    for (const std::string& key : keys) {
      text += (text.empty() ? "" : ",") + key;
    }
    return text;
  }

  void CollectSequences(const Nodes& nodes, const Keys& above, std::vector<Keys>& into) {
    for (const Node& node : nodes) {
      if (HasPatternKey(node)) {
        continue;
      }
      Keys keys = above;
      const bool twice = std::find(keys.begin(), keys.end(), node.descriptor->key) != keys.end();
      keys.push_back(node.descriptor->key);
      if (twice) {
        into_.Note(Carry::kDropped, node.place(),
                   "key " + base::Quoted(node.descriptor->key) +
                       ", and all below it: a request has an attribute once, and it is above too");
        continue;
      }
      if (node.descriptor->rate_limit.has_value() &&
          std::find(into.begin(), into.end(), keys) == into.end()) {
        into.push_back(keys);
      }
      CollectSequences(ChildrenOf(node), keys, into);
    }
  }

  // --- the order of a look-up

  void Walk(const Nodes& siblings, const Keys& keys, size_t depth, const Ending& above,
            std::vector<Ending>& into) {
    const auto visit = [&](auto wanted) {
      for (const Node& node : siblings) {
        if (node.descriptor->key == keys[depth] && wanted(*node.descriptor)) {
          Step(node, keys, depth, above, into);
        }
      }
    };
    visit([](const FileDescriptor& d) { return !d.value.empty() && !IsWildcard(d); });
    visit([](const FileDescriptor& d) { return IsWildcard(d); });
    visit([](const FileDescriptor& d) { return d.value.empty(); });
  }

  void Step(const Node& node, const Keys& keys, size_t depth, const Ending& above,
            std::vector<Ending>& into) {
    const FileDescriptor& given = *node.descriptor;
    const std::string attribute = names_.Of(given.key, node.place(), into_);
    Ending here = above;
    here.node = node;
    here.name += (here.name.empty() ? "" : "/") + given.key;
    here.name += given.value.empty() ? "" : ":" + given.value;
    here.when.push_back({attribute, {TestFor(attribute, given, node.place())}});
    if (given.value.empty() || (IsWildcard(given) && !given.share_threshold)) {
      here.per.push_back(attribute);
    }
    if (depth + 1 < keys.size()) {
      Walk(ChildrenOf(node), keys, depth + 1, here, into);
      into.push_back(here);  // found here, and then nothing: the look-up does not go back
    } else if (!given.rate_limit.has_value()) {
      into.push_back(here);
    } else {
      AddVariants(here, keys, into);
    }
  }

  Test TestFor(const std::string& attribute, const FileDescriptor& given, const Place& place) {
    const std::string& value = given.value;
    if (value.empty()) {
      return {Match::kPresent, ""};
    }
    if (attribute == "host") {
      into_.NoteOnce(Carry::kApproximated, place,
                     "host: compared without regard to case, port and a dot at the end");
    }
    if (IsWildcard(given)) {
      if (value.find('?') == std::string::npos && attribute != "method") {
        return {Match::kGlob, value};
      }
      std::string regex = "(?s)";
      for (const char c : value) {
        regex += c == '*' ? ".*" : RegexOf(std::string_view(&c, 1));
      }
      return {Match::kRegex, regex};
    }
    const bool is_text = attribute == "ip" && !base::IpAddress::Parse(value).has_value();
    return {is_text || attribute == "method" ? Match::kRegex : Match::kExact,
            is_text || attribute == "method" ? RegexOf(value) : value};
  }

  // Overrides come first, then tiers, then the limit for all others.
  void AddVariants(const Ending& here, const Keys& keys, std::vector<Ending>& into) {
    const envoy::FileRateLimit& limit = *here.node.descriptor->rate_limit;
    auto rule = std::make_unique<envoy::LimitRule>();
    rule->unit = envoy::ParseUnit(limit.unit).value_or(envoy::Unit::kUnknown);
    if (!envoy::ReadVariants(limit, *rule).ok()) {
      return;  // Load would have refused it
    }
    const auto add = [&](const envoy::LimitVariant& variant, const std::string& key) {
      Ending one = here;
      bool never = false;
      const std::string attribute = names_.Of(key, here.node.place(), into_);
      one.variant = &variant;
      one.variant_of.push_back(variant.of);
      one.name += "/" + variant.of;
      if (Add(one.when, {attribute, {{Match::kExact, variant.of}}}, never)) {
        into.push_back(std::move(one));
      } else if (!never) {
        into_.Note(Carry::kDropped, here.node.place(),
                   "the limit for " + base::Quoted(variant.of) +
                       ": a rule cannot ask for that value and for the pattern");
      }
    };
    for (const envoy::LimitVariant& variant : rule->overrides) {
      add(variant, keys.back());
    }
    for (const envoy::LimitVariant& variant : rule->tiers) {
      if (std::find(keys.begin(), keys.end(), rule->tier_key) != keys.end()) {
        add(variant, rule->tier_key);
      }
    }
    into.push_back(here);
    into.back().variant = &rule->all;
    rules_.push_back(std::move(rule));
    units_[&rules_.back()->all] = rules_.back()->unit;
    for (const auto* const list : {&rules_.back()->overrides, &rules_.back()->tiers}) {
      for (const envoy::LimitVariant& variant : *list) {
        units_[&variant] = rules_.back()->unit;
      }
    }
  }

  // A limit of that name does not count where one that replaces it is met.
  void ApplyReplaces() {
    const auto before = endings_;
    for (auto& [keys, endings] : endings_) {
      std::vector<Ending> with;
      for (const Ending& ending : endings) {
        const auto& limit = ending.node.descriptor->rate_limit;
        if (ending.variant != nullptr && limit.has_value() && !limit->name.empty()) {
          AddReplacements(ending, keys, before, with);
        }
        with.push_back(ending);
      }
      endings = std::move(with);
    }
  }

  void AddReplacements(const Ending& replaced, const Keys& keys,
                       const std::map<Keys, std::vector<Ending>>& all, std::vector<Ending>& into) {
    const std::string& name = replaced.node.descriptor->rate_limit->name;
    for (const auto& [other_keys, endings] : all) {
      for (size_t i = 0; other_keys != keys && i < endings.size(); ++i) {
        const Ending& other = endings[i];
        if (other.variant == nullptr || !other.variant_of.empty()) {
          continue;
        }
        const auto& replaces = other.node.descriptor->rate_limit->replaces;
        if (std::find(replaces.begin(), replaces.end(), name) == replaces.end()) {
          continue;
        }
        bool never = false;
        const auto both = Both(replaced.when, other.when, never);
        if (both) {
          into.push_back({*both, {}, replaced.name + "/replaced", replaced.node, nullptr, {}});
        }
        const bool may_be_taken = std::any_of(
            endings.begin(), endings.begin() + static_cast<ptrdiff_t>(i), [&](const Ending& first) {
              return first.node.descriptor != other.node.descriptor &&
                     !AreExclusive(first.when, other.when);
            });
        if (!never && (!both || may_be_taken)) {
          into_.Note(both ? Carry::kApproximated : Carry::kDropped, other.node.place(),
                     "replaces " + base::Quoted(name) +
                         (both ? ": also where a more specific limit stands in for this one"
                               : ": a rule cannot ask for both patterns"));
        }
      }
    }
  }

  // --- rules

  // How many sequences of keys have limits in quota mode.
  [[nodiscard]] size_t CountQuotaModes() const {
    return static_cast<size_t>(
        std::count_if(endings_.begin(), endings_.end(), [](const auto& item) {
          return std::any_of(item.second.begin(), item.second.end(), [](const Ending& ending) {
            return ending.variant != nullptr && ending.node.descriptor->quota_mode;
          });
        }));
  }

  [[nodiscard]] bool IsShadow(const Ending& ending) const {
    const FileDescriptor& given = *ending.node.descriptor;
    return given.shadow_mode || (given.quota_mode && CountQuotaModes() > 1);
  }

  // Shadow rules compete among themselves, so that each kind needs to know of the other.
  void Emit(const Keys& keys, bool shadow) {
    std::vector<std::pair<const Ending*, bool>> kept;  // whether it is a limit of this kind
    const std::vector<Ending>& endings = endings_[keys];
    for (size_t i = endings.size(); i > 0; --i) {
      const Ending& ending = endings[i - 1];
      const bool own = ending.variant != nullptr && IsShadow(ending) == shadow;
      const bool said = own && (!ending.variant->unlimited || !shadow);
      const bool in_the_way = std::any_of(kept.begin(), kept.end(), [&](const auto& later) {
        return later.second && !AreExclusive(ending.when, later.first->when);
      });
      if (said || in_the_way) {
        kept.emplace_back(&ending, own && !ending.variant->unlimited);
      }
    }
    std::reverse(kept.begin(), kept.end());
    for (size_t i = 0; i < kept.size(); ++i) {
      const auto priority = static_cast<int>(kept.size() > 1 ? kept.size() - i : 0);
      AddRule(*kept[i].first, kept[i].second, shadow, Joined(keys), priority);
    }
  }

  void AddRule(const Ending& ending, bool is_limit, bool shadow, const std::string& group,
               int priority) {
    const Place place = ending.node.place();
    const FileDescriptor& given = *ending.node.descriptor;
    Rule rule{.name = ending.name,
              .group = group,
              .when = ending.when,
              .per = ending.per,
              .action = Action::kUnlimited,
              .shadow = shadow,
              .ipv6_prefix = 128,
              .priority = priority,
              .place = place,
              .source = SourceText(given)};
    if (!is_limit) {
      const bool is_unlimited = ending.variant != nullptr && ending.variant->unlimited;
      rule.name += ending.variant == nullptr || !is_unlimited ? "/none" : "";
      rule.mentions =
          is_unlimited ? "" : "no limit of this group here: the look-up ends at this descriptor";
      into_.rules.push_back(std::move(rule));
      return;
    }
    NoteModes(given, place);
    const envoy::LimitVariant& variant = *ending.variant;
    if (!given.rate_limit->name.empty() && ending.variant_of.empty()) {
      rule.name = given.rate_limit->name;
    }
    if (variant.expires.has_value()) {
      rule.expires = rules::FormatTime(*variant.expires);
    }
    if (!variant.quota.has_value() && variant.requests_per_unit == 0) {
      rule.action = Action::kBlock;
    } else {
      rule.action = Action::kLimit;
      rule.limit = variant.quota.has_value() ? variant.quota->ToString()
                                             : std::to_string(variant.requests_per_unit) + "/" +
                                                   UnitText(units_[&variant]) + " fixed-window";
    }
    into_.rules.push_back(std::move(rule));
  }

  void NoteModes(const FileDescriptor& given, const Place& place) {
    if (given.quota_mode && !given.shadow_mode && CountQuotaModes() > 1) {
      into_.Note(Carry::kDropped, place,
                 "quota_mode: it refuses only where all limits in quota mode are over; here it is "
                 "counted and never refuses (shadow: true)");
    }
  }

  static std::string SourceText(const FileDescriptor& given) {
    std::string text = "key " + given.key;
    text += given.value.empty() ? "" : ", value " + given.value;
    if (given.rate_limit.has_value()) {
      text += given.rate_limit->unlimited
                  ? ", unlimited"
                  : ", " + std::to_string(given.rate_limit->requests_per_unit) + " per " +
                        given.rate_limit->unit;
    }
    return text;
  }

  AttributeNames names_;
  const bool several_domains_;
  Imported& into_;
  std::string domain_;
  std::string domain_attribute_;
  bool strict_ = false;
  std::map<Keys, std::vector<Ending>> endings_;
  std::vector<std::unique_ptr<envoy::LimitRule>> rules_;  // endings point into them
  std::map<const envoy::LimitVariant*, envoy::Unit> units_;
};

}  // namespace

void ReadEnvoy(std::span<const Source> sources, const ImportOptions& options, Imported& into) {
  std::vector<envoy::DescriptorFile> files;
  for (const Source& source : sources) {
    auto file = envoy::ReadDescriptorFile(source.name, source.text);
    if (!file) {
      throw Refused{{}, file.error().message};
    }
    files.push_back(*std::move(file));
  }
  const auto config =
      envoy::DescriptorConfig::Load(files, {.merge_domain_configs = options.merge_domains});
  if (!config) {
    throw Refused{{}, config.error().message};
  }
  std::vector<std::string> order;
  std::map<std::string, std::vector<const envoy::DescriptorFile*>> by_domain;
  for (const envoy::DescriptorFile& file : files) {
    auto [found, is_new] = by_domain.try_emplace(file.domain);
    found->second.push_back(&file);
    if (is_new) {
      order.push_back(file.domain);
    }
  }
  Reader reader(options, order.size() > 1, into);
  for (const std::string& domain : order) {
    reader.ReadDomain(domain, by_domain[domain], (*config)->FindDomain(domain)->strict_matching);
  }
}

}  // namespace weir::import
