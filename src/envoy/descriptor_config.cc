#include "envoy/descriptor_config.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "envoy/go_yaml.h"
#include "envoy/own_quota.h"

namespace weir::envoy {

namespace {

// How a key and a value become the one text that children are found by. The original joins them by
// '_', so that (a_b, c) is (a, b_c); strictly, the key's length is told.
void SetComposite(std::string& out, bool strict, std::string_view key, std::string_view value) {
  out.clear();
  if (strict) {
    out = std::to_string(key.size());
    out += ':';
  }
  out += key;
  out += '_';
  out += value;
}

void SetBareComposite(std::string& out, bool strict, std::string_view key) {
  out.clear();
  if (strict) {
    out = ':';
  }
  out += key;
}

std::vector<std::string> Cut(std::string_view pattern) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t star = pattern.find('*'); star != std::string_view::npos;
       star = pattern.find('*', begin)) {
    parts.emplace_back(pattern.substr(begin, star - begin));
    begin = star + 1;
  }
  parts.emplace_back(pattern.substr(begin));
  return parts;
}

std::string_view WithoutPrefix(std::string_view text, std::string_view key) {
  return text.size() > key.size() && text.starts_with(key) && text[key.size()] == '_'
             ? text.substr(key.size() + 1)
             : text;
}

}  // namespace

struct Wildcard {
  std::string composite;           // as written: key_pattern, or the pattern alone
  std::vector<std::string> parts;  // what finds children, cut at each *
  DescriptorNode* node = nullptr;
};

// What a text's length says before it is made or hashed: whether a text of that length is there.
class LengthFilter {
 public:
  void Add(size_t length) { bits_ |= Bit(length); }
  [[nodiscard]] bool MayHave(size_t length) const { return (bits_ & Bit(length)) != 0; }

 private:
  static uint64_t Bit(size_t length) { return uint64_t{1} << (length % 64); }

  uint64_t bits_ = 0;
};

class DescriptorNode {
 public:
  void AddChild(std::string composite, DescriptorNode* node) {
    lengths.Add(composite.size());
    children.emplace(std::move(composite), node);
  }

  std::unique_ptr<LimitRule> limit;
  bool value_to_metric = false;
  bool share_threshold = false;
  std::vector<std::unique_ptr<DescriptorNode>> in_order;
  TextMap<DescriptorNode*> children;
  LengthFilter lengths;             // of the children's texts
  std::vector<Wildcard> wildcards;  // in the order of the file
};

Domain::~Domain() = default;
DescriptorConfig::DescriptorConfig() = default;
DescriptorConfig::~DescriptorConfig() = default;

// Joins files to a configuration. Throws YamlRefused, which Load turns into an error.
class ConfigLoader {
 public:
  ConfigLoader(DescriptorConfig& config, const ConfigOptions& options)
      : config_(config), options_(options) {}

  void Add(const DescriptorFile& file) {
    if (file.domain.empty()) {
      throw YamlRefused{"config file cannot have empty domain"};
    }
    Domain& domain = DomainOf(file);
    for (const FileDescriptor& descriptor : file.descriptors) {
      AddDescriptor(domain, *domain.root, {file.domain + ".", file.domain}, descriptor);
    }
  }

 private:
  Domain& DomainOf(const DescriptorFile& file) {
    const auto found = config_.domains_.find(file.domain);
    if (found == config_.domains_.end()) {
      auto made = std::make_unique<Domain>();
      made->name = file.domain;
      made->strict_matching = file.strict_matching.value_or(options_.strict_matching);
      made->all_or_nothing = file.all_or_nothing.value_or(options_.all_or_nothing);
      made->root = std::make_unique<DescriptorNode>();
      config_.domains_.emplace(file.domain, made.get());
      return *config_.in_order_.emplace_back(std::move(made));
    }
    if (!options_.merge_domain_configs) {
      throw YamlRefused{"duplicate domain '" + file.domain + "' in config file"};
    }
    Domain& domain = *found->second;
    if (file.strict_matching.value_or(domain.strict_matching) != domain.strict_matching ||
        file.all_or_nothing.value_or(domain.all_or_nothing) != domain.all_or_nothing) {
      throw YamlRefused{"strict_matching, all_or_nothing: another file of domain '" + file.domain +
                        "' says otherwise"};
    }
    return domain;
  }

  // How a node is called: in stat paths, and by what children are found by.
  struct Path {
    std::string full_key;
    std::string place;
  };

  void AddDescriptor(const Domain& domain, DescriptorNode& parent, const Path& parent_path,
                     const FileDescriptor& given) {
    const bool strict = domain.strict_matching;
    if (given.key.empty()) {
      throw YamlRefused{"descriptor has empty key"};
    }
    const std::string final_key = given.value.empty() ? given.key : given.key + "_" + given.value;
    const std::string full_key = parent_path.full_key + final_key;
    std::string composite;
    if (given.value.empty()) {
      SetBareComposite(composite, strict, given.key);
    } else {
      SetComposite(composite, strict, given.key, given.value);
    }
    if (parent.children.contains(composite)) {
      throw YamlRefused{"duplicate descriptor composite key '" + full_key + "'"};
    }
    const Path path{full_key + ".", parent_path.place + '\n' + composite};
    auto node = std::make_unique<DescriptorNode>();
    if (given.rate_limit.has_value()) {
      node->limit = MakeRule(given, full_key);
      node->limit->place = path.place;
    }
    // Strictly, a key is never a pattern.
    const bool is_wildcard = (strict ? given.value : final_key).find('*') != std::string::npos;
    if (given.share_threshold && !is_wildcard) {
      throw YamlRefused{
          "share_threshold can only be used with wildcard values (containing '*'), but found key "
          "'" +
          final_key + "'"};
    }
    node->value_to_metric = given.value_to_metric;
    node->share_threshold = given.share_threshold;
    if (is_wildcard) {
      parent.wildcards.push_back({final_key, WildcardParts(given, composite, strict), node.get()});
    }
    for (const FileDescriptor& child : given.descriptors) {
      AddDescriptor(domain, *node, path, child);
    }
    parent.AddChild(std::move(composite), node.get());
    parent.in_order.push_back(std::move(node));
  }

  static std::vector<std::string> WildcardParts(const FileDescriptor& given,
                                                const std::string& composite, bool strict) {
    if (!strict) {
      return Cut(composite);
    }
    std::vector<std::string> parts = Cut(given.value);
    std::string prefix;
    SetComposite(prefix, true, given.key, "");
    parts.front().insert(0, prefix);
    return parts;
  }

  std::unique_ptr<LimitRule> MakeRule(const FileDescriptor& given, const std::string& full_key) {
    const FileRateLimit& limit = *given.rate_limit;
    auto rule = std::make_unique<LimitRule>();
    const std::optional<Unit> unit = ParseUnit(limit.unit);
    const bool has_unit = unit.has_value() && *unit != Unit::kUnknown;
    if (limit.unlimited && has_unit) {
      throw YamlRefused{"should not specify rate limit unit when unlimited"};
    }
    if (!limit.unlimited && !has_unit && !(HasOwnWindow(limit) && limit.unit.empty())) {
      throw YamlRefused{"invalid rate limit unit '" + limit.unit + "'"};
    }
    rule->full_key = full_key;
    rule->unit = unit.value_or(Unit::kUnknown);
    rule->name = limit.name;
    rule->name_id = limit.name.empty() ? LimitRule::kNoName : IdOf(limit.name);
    for (const std::string& name : limit.replaces) {
      if (name.empty()) {
        throw YamlRefused{"should not have an empty replaces entry"};
      }
      if (name == limit.name) {
        throw YamlRefused{"replaces should not contain name of same descriptor"};
      }
      rule->replaces.push_back(IdOf(name));
    }
    rule->shadow_mode = given.shadow_mode;
    rule->quota_mode = given.quota_mode;
    rule->detailed_metric = given.detailed_metric;
    rule->metadata = given.metadata;
    if (auto read = ReadVariants(limit, *rule); !read) {
      throw YamlRefused{"rate_limit of '" + full_key + "': " + read.error().message};
    }
    return rule;
  }

  uint32_t IdOf(const std::string& name) {
    return ids_.try_emplace(name, static_cast<uint32_t>(ids_.size()) + 1).first->second;
  }

  DescriptorConfig& config_;
  const ConfigOptions options_;
  TextMap<uint32_t> ids_;
};

Result<std::unique_ptr<DescriptorConfig>> DescriptorConfig::Load(
    std::span<const DescriptorFile> files, const ConfigOptions& options) {
  std::unique_ptr<DescriptorConfig> config(new DescriptorConfig());
  ConfigLoader loader(*config, options);
  for (const DescriptorFile& file : files) {
    try {
      loader.Add(file);
    } catch (const YamlRefused& refused) {
      return Error::Invalid(file.name + ": " + refused.message);
    }
  }
  return config;
}

const Domain* DescriptorConfig::FindDomain(std::string_view name) const noexcept {
  const auto found = domains_.find(name);
  return found == domains_.end() ? nullptr : found->second;
}

namespace {

// How long SetComposite makes a text.
size_t CompositeLength(bool strict, const Entry& entry) {
  const size_t joined = entry.key.size() + 1 + entry.value.size();
  return strict ? std::to_string(entry.key.size()).size() + 1 + joined : joined;
}

// A child for an entry, and how it was found.
struct Step {
  const DescriptorNode* node = nullptr;
  const Wildcard* wildcard = nullptr;
  bool by_value = false;
};

Step StepTo(const DescriptorNode& parent, const Entry& entry, bool strict, std::string& composite) {
  const auto find = [&parent](std::string_view text) -> const DescriptorNode* {
    const auto found = parent.children.find(text);
    return found == parent.children.end() ? nullptr : found->second;
  };
  // Most keys have no values of their own in the configuration.
  const bool may_be_exact = parent.lengths.MayHave(CompositeLength(strict, entry));
  if (may_be_exact || !parent.wildcards.empty()) {
    SetComposite(composite, strict, entry.key, entry.value);
    if (may_be_exact) {
      if (const DescriptorNode* const exact = find(composite); exact != nullptr) {
        return {exact, nullptr, true};
      }
    }
    for (const Wildcard& wildcard : parent.wildcards) {
      if (MatchesWildcard(wildcard.parts, composite)) {
        return {wildcard.node, &wildcard, true};
      }
    }
  }
  if (!strict) {
    return {parent.lengths.MayHave(entry.key.size()) ? find(entry.key) : nullptr, nullptr, false};
  }
  SetBareComposite(composite, strict, entry.key);
  return {find(composite), nullptr, false};
}

// What an entry is called in the stat path.
std::string_view MetricValue(const Step& step, const Entry& entry, std::string_view pattern) {
  if (!pattern.empty()) {
    return pattern;
  }
  if (step.wildcard != nullptr && !step.node->value_to_metric) {
    return WithoutPrefix(step.wildcard->composite, entry.key);
  }
  return step.by_value || step.node->value_to_metric ? entry.value : std::string_view();
}

void AppendPart(std::string& out, std::string_view key, std::string_view value) {
  out += '.';
  out += key;
  if (!value.empty()) {
    out += '_';
    out += value;
  }
}

// All runtime values, but for those that share a pattern.
void SetDetailedPath(std::string_view domain, std::span<const Entry> entries, LookUp& found) {
  found.path_text.assign(domain);
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    if (found.shares) {
      const std::string_view pattern = found.share_patterns[i];
      AppendPart(found.path_text, entry.key, pattern.empty() ? entry.value : pattern);
    } else {
      // The original leaves the joining '_' of an empty value there.
      found.path_text.append(".").append(entry.key).append("_").append(entry.value);
    }
  }
}

std::string_view PatternOf(const Step& step, const Entry& entry) {
  return step.wildcard != nullptr && step.node->share_threshold
             ? WithoutPrefix(step.wildcard->composite, entry.key)
             : std::string_view();
}

// Where a step is not called what the configuration calls it. REQUIRES: every entry leads on.
void SetRuntimePath(const Domain& domain, std::span<const Entry> entries, LookUp& found) {
  found.path_text.assign(domain.name);
  const DescriptorNode* node = domain.root.get();
  for (const Entry& entry : entries) {
    const Step step = StepTo(*node, entry, domain.strict_matching, found.composite);
    AppendPart(found.path_text, entry.key, MetricValue(step, entry, PatternOf(step, entry)));
    node = step.node;
  }
}

}  // namespace

void DescriptorConfig::Find(const Domain& domain, std::span<const Entry> entries, LookUp& found) {
  found.rule = nullptr;
  found.shares = false;
  found.runtime_path = false;
  found.share_patterns.clear();
  const DescriptorNode* node = domain.root.get();
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    const Step step = StepTo(*node, entry, domain.strict_matching, found.composite);
    if (step.node == nullptr) {
      return;
    }
    const std::string_view pattern = PatternOf(step, entry);
    found.share_patterns.push_back(pattern);
    found.shares = found.shares || !pattern.empty();
    // Else it was found by the very text that the configuration has there.
    found.runtime_path = found.runtime_path || step.wildcard != nullptr ||
                         step.node->value_to_metric || (step.by_value && entry.value.empty());
    node = step.node;
    if (i + 1 < entries.size() && node->children.empty()) {
      return;  // more entries than the configuration is deep
    }
  }
  found.rule = node->limit.get();  // the root has none
  if (found.rule == nullptr) {
    return;
  }
  if (found.rule->detailed_metric) {
    found.runtime_path = true;
    SetDetailedPath(domain.name, entries, found);
  } else if (found.runtime_path) {
    SetRuntimePath(domain, entries, found);
  }
  found.stats_key = found.runtime_path ? found.path_text : found.rule->full_key;
}

namespace {

void VisitRules(const DescriptorNode& node, const std::function<void(LimitRule&)>& visit) {
  if (node.limit != nullptr) {
    visit(*node.limit);
  }
  for (const auto& child : node.in_order) {
    VisitRules(*child, visit);
  }
}

}  // namespace

void DescriptorConfig::ForEachRule(const std::function<void(LimitRule&)>& visit) {
  for (const auto& domain : in_order_) {
    VisitRules(*domain->root, visit);
  }
}

std::string DescriptorConfig::Dump() const {
  std::string text;
  const auto yes_no = [](bool truth) { return truth ? "true" : "false"; };
  for (const auto& domain : in_order_) {
    VisitRules(*domain->root, [&](const LimitRule& rule) {
      text += rule.full_key + ": unit=" + std::string(ToString(rule.unit)) +
              " requests_per_unit=" + std::to_string(rule.all.requests_per_unit) +
              ", shadow_mode: " + yes_no(rule.shadow_mode) +
              ", quota_mode: " + yes_no(rule.quota_mode);
      if (rule.all.quota.has_value()) {
        text += ", quota: " + rule.all.quota->ToString();
      }
      text += '\n';
    });
  }
  return text;
}

void AppendOverridePath(std::string& out, std::string_view domain, std::span<const Entry> entries) {
  out += domain;
  out += '.';
  bool first = true;
  for (const Entry& entry : entries) {
    if (!first) {
      out += '.';
    }
    out += entry.key;
    if (!entry.value.empty()) {
      out += '_';
      out += entry.value;
    }
    first = first && entry.key.empty() && entry.value.empty();
  }
}

void AppendCounterKey(std::string& out, std::string_view prefix, std::string_view domain,
                      std::span<const Entry> entries, std::span<const std::string_view> patterns,
                      bool strict) {
  const auto value_of = [&](size_t i) {
    return i < patterns.size() && !patterns[i].empty() ? patterns[i] : entries[i].value;
  };
  // Room for all of it at once: this is done for each descriptor.
  constexpr size_t kDigitsMax = 20;
  const size_t each = strict ? kDigitsMax + 2 : 1;
  size_t room = prefix.size() + domain.size() + each;
  for (size_t i = 0; i < entries.size(); ++i) {
    room += entries[i].key.size() + value_of(i).size() + 2 * each;
  }
  const size_t begin = out.size();
  out.resize(begin + room);
  char* to = out.data() + begin;
  const auto put = [&to](std::string_view text) {
    to = std::copy(text.begin(), text.end(), to);  // memcpy may not be given an empty view
  };
  const auto append = [&](std::string_view text) {
    if (strict) {
      to = std::to_chars(to, to + kDigitsMax, text.size()).ptr;
      *to++ = ':';
    }
    put(text);
    *to++ = '_';
  };
  put(prefix);
  append(domain);
  for (size_t i = 0; i < entries.size(); ++i) {
    append(entries[i].key);
    append(value_of(i));
  }
  out.resize(static_cast<size_t>(to - out.data()));
}

bool MatchesWildcard(std::span<const std::string> parts, std::string_view text) {
  const std::string& first = parts.front();
  const std::string& last = parts.back();
  if (text.size() < first.size() + last.size() || !text.starts_with(first) ||
      !text.ends_with(last)) {
    return false;
  }
  text = text.substr(first.size(), text.size() - first.size() - last.size());
  // Each part as early as it can be: that leaves the most for those behind it.
  for (size_t i = 1; i + 1 < parts.size(); ++i) {
    const size_t at = text.find(parts[i]);
    if (at == std::string_view::npos) {
      return false;
    }
    text.remove_prefix(at + parts[i].size());
  }
  return true;
}

}  // namespace weir::envoy
