// Thousands of configuration files, good ones and mutated ones, judged by a model that was written
// from the description of envoyproxy/ratelimit's format and shares no code with the loader: what
// the one accepts the other must accept, and what the one refuses the other must refuse. Where both
// accept, both are asked for limits.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "envoy/descriptor_config.h"
#include "envoy/descriptor_file.h"

namespace weir::envoy {
namespace {

// ---- Files as trees.

struct Value {
  enum class Kind : uint8_t { kScalar, kList, kMap };
  Kind kind = Kind::kScalar;
  std::string text{};
  bool quoted = false;
  std::vector<Value> items{};
  std::vector<std::pair<std::string, Value>> fields{};

  static Value Plain(std::string text) { return {.text = std::move(text)}; }
  static Value Quoted(std::string text) { return {.text = std::move(text), .quoted = true}; }
  static Value List() { return {.kind = Kind::kList}; }
  static Value Map() { return {.kind = Kind::kMap}; }

  [[nodiscard]] const Value* Find(std::string_view name) const {
    for (const auto& [field, value] : fields) {
      if (field == name) {
        return &value;
      }
    }
    return nullptr;
  }
};

// In flow style, so that nothing depends on how far something is indented.
void Write(const Value& value, std::string& out) {
  if (value.kind == Value::Kind::kScalar) {
    // Nothing at all would be null in a map, and in a list no item.
    out += value.quoted ? "\"" + value.text + "\"" : value.text.empty() ? "~" : value.text;
    return;
  }
  const bool is_map = value.kind == Value::Kind::kMap;
  out += is_map ? "{" : "[";
  bool first = true;
  for (const Value& item : value.items) {
    out += first ? "" : ", ";
    first = false;
    Write(item, out);
  }
  for (const auto& [name, field] : value.fields) {
    out += first ? "" : ", ";
    first = false;
    out += name + ": ";
    Write(field, out);
  }
  out += is_map ? "}" : "]";
}

// ---- The model.

enum class Type : uint8_t { kNull, kBool, kInt, kFloat, kText, kList, kMap };

bool AreDigits(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

Type TypeOf(const Value& value) {
  if (value.kind != Value::Kind::kScalar) {
    return value.kind == Value::Kind::kList ? Type::kList : Type::kMap;
  }
  static const std::set<std::string> kNulls = {"", "~", "null"};
  static const std::set<std::string> kBools = {"true", "false", "yes", "no", "on", "off"};
  if (value.quoted) {
    return Type::kText;
  }
  if (kNulls.contains(value.text)) {
    return Type::kNull;
  }
  if (kBools.contains(value.text)) {
    return Type::kBool;
  }
  const bool is_signed = value.text.starts_with('-') || value.text.starts_with('+');
  const std::string digits = value.text.substr(is_signed ? 1 : 0);
  const size_t point = digits.find('.');
  if (point == std::string::npos) {
    const bool whole = AreDigits(digits) && (digits == "0" || digits[0] != '0');
    return whole ? Type::kInt : Type::kText;
  }
  const bool fraction = AreDigits(digits.substr(0, point)) && AreDigits(digits.substr(point + 1));
  return fraction ? Type::kFloat : Type::kText;
}

class Model {
 public:
  struct Node {
    std::string key{};
    std::string value{};
    std::optional<uint64_t> limit{};  // requests per unit; none: no limit, or an unlimited one
    bool unlimited = false;
    std::vector<Node> children{};

    [[nodiscard]] std::string Composite() const { return value.empty() ? key : key + "_" + value; }
  };

  // False: refused.
  bool Load(const std::vector<Value>& files, bool merge) {
    for (const Value& file : files) {
      if (TypeOf(file) != Type::kMap || !KeysAreKnown(file) || !TypesFit(file)) {
        return false;
      }
    }
    for (const Value& file : files) {
      const std::string domain = Text(file.Find("domain"));
      if (domain.empty() || (domains_.contains(domain) && !merge)) {
        return false;
      }
      if (!AddAll(file.Find("descriptors"), domains_[domain])) {
        return false;
      }
    }
    return true;
  }

  // The limit of these entries; nullptr: none.
  [[nodiscard]] const Node* Find(const std::string& domain, std::span<const Entry> entries) const {
    const auto found = domains_.find(domain);
    const std::vector<Node>* level = found == domains_.end() ? nullptr : &found->second;
    const Node* node = nullptr;
    for (const Entry& entry : entries) {
      node = level == nullptr ? nullptr : Choose(*level, entry);
      if (node == nullptr) {
        return nullptr;
      }
      level = &node->children;
    }
    return node != nullptr && (node->limit.has_value() || node->unlimited) ? node : nullptr;
  }

 private:
  static std::string Text(const Value* value) {
    return value == nullptr || TypeOf(*value) == Type::kNull ? std::string() : value->text;
  }

  static bool IsTrue(const Value* value) {
    return value != nullptr &&
           (value->text == "true" || value->text == "yes" || value->text == "on");
  }

  static bool KeysAreKnown(const Value& map) {
    static const std::set<std::string> kKnown = {"domain",          "key",
                                                 "value",           "descriptors",
                                                 "rate_limit",      "unit",
                                                 "unlimited",       "name",
                                                 "replaces",        "shadow_mode",
                                                 "quota_mode",      "metadata",
                                                 "detailed_metric", "value_to_metric",
                                                 "share_threshold", "requests_per_unit"};
    for (const auto& [name, value] : map.fields) {
      if (!kKnown.contains(name)) {
        return false;
      }
      if (name == "metadata") {
        continue;
      }
      const Type type = TypeOf(value);
      if (type == Type::kFloat || (type == Type::kMap && !KeysAreKnown(value))) {
        return false;
      }
      for (const Value& item : value.items) {
        if (TypeOf(item) != Type::kMap || !KeysAreKnown(item)) {
          return false;
        }
      }
    }
    return true;
  }

  static bool IsText(const Value* value) {
    return value == nullptr || value->kind == Value::Kind::kScalar;
  }
  static bool IsBool(const Value* value) {
    return value == nullptr || TypeOf(*value) == Type::kBool || TypeOf(*value) == Type::kNull;
  }
  static bool IsCount(const Value* value) {
    if (value == nullptr || TypeOf(*value) == Type::kNull) {
      return true;
    }
    return TypeOf(*value) == Type::kInt && value->text[0] != '-' && value->text.size() <= 11 &&
           std::stoull(value->text) <= 4294967295ULL;
  }
  static bool IsListOrNothing(const Value* value) {
    return value == nullptr || TypeOf(*value) == Type::kList || TypeOf(*value) == Type::kNull;
  }

  static bool TypesFit(const Value& file) {
    return IsText(file.Find("domain")) && DescriptorsFit(file.Find("descriptors"));
  }

  static bool DescriptorsFit(const Value* list) {
    if (!IsListOrNothing(list)) {
      return false;
    }
    for (size_t i = 0; list != nullptr && i < list->items.size(); ++i) {
      const Value& one = list->items[i];
      const Value* const metadata = one.Find("metadata");
      if (!IsText(one.Find("key")) || !IsText(one.Find("value")) ||
          !IsBool(one.Find("shadow_mode")) || !IsBool(one.Find("quota_mode")) ||
          !IsBool(one.Find("detailed_metric")) || !IsBool(one.Find("value_to_metric")) ||
          !IsBool(one.Find("share_threshold")) || !LimitFits(one.Find("rate_limit")) ||
          !DescriptorsFit(one.Find("descriptors")) ||
          (metadata != nullptr && TypeOf(*metadata) != Type::kMap &&
           TypeOf(*metadata) != Type::kNull)) {
        return false;
      }
    }
    return true;
  }

  static bool LimitFits(const Value* limit) {
    if (limit == nullptr || TypeOf(*limit) == Type::kNull) {
      return true;
    }
    if (TypeOf(*limit) != Type::kMap || !IsText(limit->Find("unit")) ||
        !IsText(limit->Find("name")) || !IsBool(limit->Find("unlimited")) ||
        !IsCount(limit->Find("requests_per_unit")) || !IsListOrNothing(limit->Find("replaces"))) {
      return false;
    }
    const Value* const replaces = limit->Find("replaces");
    return replaces == nullptr ||
           std::all_of(replaces->items.begin(), replaces->items.end(),
                       [](const Value& item) { return IsText(item.Find("name")); });
  }

  bool AddAll(const Value* list, std::vector<Node>& into) {
    for (size_t i = 0; list != nullptr && i < list->items.size(); ++i) {
      const Value& given = list->items[i];
      Node node{.key = Text(given.Find("key")), .value = Text(given.Find("value"))};
      if (node.key.empty() ||
          std::any_of(into.begin(), into.end(),
                      [&](const Node& one) { return one.Composite() == node.Composite(); }) ||
          (IsTrue(given.Find("share_threshold")) &&
           node.Composite().find('*') == std::string::npos)) {
        return false;
      }
      const Value* const limit = given.Find("rate_limit");
      if (limit != nullptr && TypeOf(*limit) == Type::kMap && !AddLimit(*limit, node)) {
        return false;
      }
      if (!AddAll(given.Find("descriptors"), node.children)) {
        return false;
      }
      into.push_back(std::move(node));
    }
    return true;
  }

  static bool AddLimit(const Value& limit, Node& node) {
    static const std::set<std::string> kUnits = {"second", "minute", "hour", "day",
                                                 "week",   "month",  "year"};
    std::string unit = Text(limit.Find("unit"));
    std::transform(unit.begin(), unit.end(), unit.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const bool unlimited = IsTrue(limit.Find("unlimited"));
    if (unlimited == kUnits.contains(unit)) {
      return false;
    }
    const Value* const replaces = limit.Find("replaces");
    for (size_t i = 0; replaces != nullptr && i < replaces->items.size(); ++i) {
      const std::string name = Text(replaces->items[i].Find("name"));
      if (name.empty() || name == Text(limit.Find("name"))) {
        return false;
      }
    }
    node.unlimited = unlimited;
    if (!unlimited) {
      const std::string count = Text(limit.Find("requests_per_unit"));
      node.limit = count.empty() ? 0 : std::stoull(count);
    }
    return true;
  }

  static bool Glob(std::string_view pattern, std::string_view text) {
    if (pattern.empty()) {
      return text.empty();
    }
    if (pattern[0] == '*') {
      return Glob(pattern.substr(1), text) || (!text.empty() && Glob(pattern, text.substr(1)));
    }
    return !text.empty() && pattern[0] == text[0] && Glob(pattern.substr(1), text.substr(1));
  }

  static const Node* Choose(const std::vector<Node>& level, const Entry& entry) {
    const std::string asked = std::string(entry.key) + "_" + std::string(entry.value);
    for (const Node& node : level) {
      if (node.Composite() == asked) {
        return &node;
      }
    }
    for (const Node& node : level) {
      if (node.Composite().find('*') != std::string::npos && Glob(node.Composite(), asked)) {
        return &node;
      }
    }
    for (const Node& node : level) {
      if (node.Composite() == entry.key) {
        return &node;
      }
    }
    return nullptr;
  }

  std::map<std::string, std::vector<Node>> domains_;
};

// ---- Where files come from.

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  uint64_t Below(uint64_t end) { return random_() % end; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  template <class Item>
  const Item& Any(const std::vector<Item>& items) {
    return items[Below(items.size())];
  }

  Value File() {
    Value file = Value::Map();
    file.fields.emplace_back("domain", Value::Plain(Any(domains)));
    file.fields.emplace_back("descriptors", Descriptors(0));
    return file;
  }

  // One change somewhere, which may or may not make it a bad file.
  void Mutate(Value& root) {
    std::vector<Value*> all;
    Collect(root, all);
    Value& value = *all[Below(all.size())];
    if (value.kind == Value::Kind::kMap && !value.fields.empty() && OneIn(2)) {
      const auto at = value.fields.begin() + static_cast<ptrdiff_t>(Below(value.fields.size()));
      if (OneIn(3)) {
        value.fields.erase(at);
      } else if (OneIn(2)) {
        at->first = Any(keys);
        Unique(value);
      } else {
        at->second = Odd();
      }
    } else if (value.kind == Value::Kind::kMap) {
      value.fields.emplace_back(Any(keys), Odd());
      Unique(value);
    } else if (value.kind == Value::Kind::kList && !value.items.empty()) {
      const Value copy = value.items[Below(value.items.size())];
      if (OneIn(3)) {
        value.items.push_back(copy);
      } else {
        value.items[Below(value.items.size())] = OneIn(2) ? copy : Odd();
      }
    } else {
      value = Odd();
    }
  }

  const std::vector<std::string> domains = {"one", "two", "3", "null"};
  const std::vector<std::string> names = {"a", "b", "a_b", "c", "b_c", "a*"};
  const std::vector<std::string> values = {"b", "c", "b_c", "x*", "*", "b*c", "*x*y", "12", "true"};

 private:
  Value Descriptors(unsigned depth) {
    Value list = Value::List();
    for (uint64_t i = Below(3) + (depth == 0 ? 1 : 0); i > 0; --i) {
      list.items.push_back(Descriptor(depth));
    }
    return list;
  }

  Value Descriptor(unsigned depth) {
    Value one = Value::Map();
    one.fields.emplace_back("key", Value::Quoted(Any(names)));
    if (OneIn(2)) {
      one.fields.emplace_back("value", Value::Quoted(Any(values)));
    }
    if (!OneIn(4)) {
      one.fields.emplace_back("rate_limit", Limit());
    }
    for (const char* const flag :
         {"shadow_mode", "quota_mode", "detailed_metric", "value_to_metric", "share_threshold"}) {
      if (OneIn(8)) {
        one.fields.emplace_back(flag, Value::Plain(OneIn(2) ? "true" : "no"));
      }
    }
    if (OneIn(6)) {
      Value metadata = Value::Map();
      metadata.fields.emplace_back("anything", Value::Plain("1.5"));
      one.fields.emplace_back("metadata", metadata);
    }
    if (depth < 2 && OneIn(3)) {
      one.fields.emplace_back("descriptors", Descriptors(depth + 1));
    }
    return one;
  }

  Value Limit() {
    Value limit = Value::Map();
    if (OneIn(8)) {
      limit.fields.emplace_back("unlimited", Value::Plain("true"));
    } else {
      limit.fields.emplace_back("unit", Value::Plain(Any(units)));
      limit.fields.emplace_back("requests_per_unit", Value::Plain(std::to_string(Below(100))));
    }
    if (OneIn(3)) {
      limit.fields.emplace_back("name", Value::Plain(Any(names_of_limits)));
    }
    if (OneIn(4)) {
      Value replaced = Value::Map();
      replaced.fields.emplace_back("name", Value::Plain(Any(names_of_limits)));
      limit.fields.emplace_back("replaces", Value::List());
      limit.fields.back().second.items.push_back(replaced);
    }
    return limit;
  }

  Value Odd() {
    switch (Below(5)) {
      case 0:
        return Value::Quoted(Any(odd_texts));
      case 1:
        return OneIn(2) ? Value::List() : Value::Map();
      case 2: {
        Value list = Value::List();
        list.items.push_back(OneIn(2) ? Value::Plain("word") : Descriptor(2));
        return list;
      }
      default:
        return Value::Plain(Any(odd_texts));
    }
  }

  static void Collect(Value& value, std::vector<Value*>& into) {
    into.push_back(&value);
    for (Value& item : value.items) {
      Collect(item, into);
    }
    for (auto& [name, field] : value.fields) {
      Collect(field, into);
    }
  }

  // The last of two equal keys wins in the original; which says nothing new, so there are none.
  static void Unique(Value& map) {
    std::set<std::string> seen;
    std::erase_if(map.fields, [&](const auto& field) { return !seen.insert(field.first).second; });
  }

  const std::vector<std::string> units = {"second", "minute", "HOUR",   "Day",  "week", "month",
                                          "year",   "second", "minute", "Hour", "day",  "moon"};
  const std::vector<std::string> names_of_limits = {"red", "blue", "green"};
  const std::vector<std::string> keys = {"domain",
                                         "key",
                                         "value",
                                         "descriptors",
                                         "rate_limit",
                                         "unit",
                                         "unlimited",
                                         "name",
                                         "replaces",
                                         "shadow_mode",
                                         "quota_mode",
                                         "metadata",
                                         "ratelimit",
                                         "Key",
                                         "requests_per_second",
                                         "burst_size",
                                         "unit_count",
                                         "value_metric",
                                         "share_threshold",
                                         "requests_per_unit"};
  const std::vector<std::string> odd_texts = {
      "",   "~",   "null", "true", "no",         "on",         "0",    "7",  "-1",
      "+3", "1.5", "-0.5", "hour", "4294967295", "4294967296", "word", "x*", "99999999999"};
  std::mt19937_64 random_;
};

std::vector<DescriptorFile> ReadAll(const std::vector<std::string>& texts, std::string& error) {
  std::vector<DescriptorFile> files;
  for (const std::string& text : texts) {
    auto file = ReadDescriptorFile("file.yaml", text);
    if (!file) {
      error = file.error().message;
      return {};
    }
    files.push_back(*std::move(file));
  }
  return files;
}

void CompareLookUps(Generator& generator, const Model& model, const DescriptorConfig& config) {
  const std::vector<std::string> asked = {"b", "c", "b_c", "x1", "", "bc", "1x2y", "12", "true"};
  for (int i = 0; i < 20; ++i) {
    const std::string domain = generator.Any(generator.domains);
    std::vector<Entry> entries;
    for (uint64_t n = generator.Below(3) + 1; n > 0; --n) {
      entries.push_back({generator.Any(generator.names), generator.Any(asked)});
    }
    const Model::Node* const expected = model.Find(domain, entries);
    LookUp found;
    if (const Domain* const known = config.FindDomain(domain)) {
      DescriptorConfig::Find(*known, entries, found);
    }
    ASSERT_EQ(found.rule != nullptr, expected != nullptr);
    if (expected != nullptr) {
      EXPECT_EQ(found.rule->all.unlimited, expected->unlimited);
      EXPECT_EQ(found.rule->all.requests_per_unit, expected->limit.value_or(0));
    }
  }
}

TEST(EnvoyDifferential, TheLoaderAndTheModelAgreeOnEveryFile) {
  constexpr int kRuns = 6000;
  Generator generator(20'261'116);
  int accepted = 0;
  int refused = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<Value> files = {generator.File()};
    if (generator.OneIn(5)) {
      files.push_back(generator.File());
    }
    for (uint64_t changes = generator.Below(4); changes > 0; --changes) {
      generator.Mutate(files[generator.Below(files.size())]);
    }
    const bool merge = generator.OneIn(3);
    std::vector<std::string> texts;
    for (const Value& file : files) {
      Write(file, texts.emplace_back());
    }
    SCOPED_TRACE(texts.front() + (texts.size() > 1 ? "\n" + texts.back() : ""));
    Model model;
    const bool expected = model.Load(files, merge);
    std::string error;
    const std::vector<DescriptorFile> read = ReadAll(texts, error);
    std::unique_ptr<DescriptorConfig> config;
    if (error.empty()) {
      auto loaded = DescriptorConfig::Load(read, {.merge_domain_configs = merge});
      if (loaded) {
        config = *std::move(loaded);
      } else {
        error = loaded.error().message;
      }
    }
    ASSERT_EQ(config != nullptr, expected) << error;
    (expected ? accepted : refused) += 1;
    if (expected) {
      CompareLookUps(generator, model, *config);
    }
  }
  // Neither side may have had it easy.
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace weir::envoy
