// A file is read twice, as the original does: once as anything at all, to find keys that nobody
// knows, and once into the fields that are known.
#include "envoy/descriptor_file.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "envoy/go_yaml.h"
#include "envoy/json_writing.h"
#include "rules/fields.h"

namespace weir::envoy {

namespace {

// Allowed anywhere outside metadata.
constexpr std::array<std::string_view, 16> kKeys = {"domain",
                                                    "key",
                                                    "value",
                                                    "descriptors",
                                                    "rate_limit",
                                                    "unit",
                                                    "requests_per_unit",
                                                    "unlimited",
                                                    "shadow_mode",
                                                    "quota_mode",
                                                    "name",
                                                    "replaces",
                                                    "detailed_metric",
                                                    "value_to_metric",
                                                    "share_threshold",
                                                    "metadata"};

// weir's own, each where it belongs and nowhere else: under this key, or in the file itself.
struct OwnKey {
  std::string_view parent;
  std::string_view key;
};
constexpr std::array<OwnKey, 12> kOwnKeys = {{{"", "strict_matching"},
                                              {"", "all_or_nothing"},
                                              {"rate_limit", "algorithm"},
                                              {"rate_limit", "window"},
                                              {"rate_limit", "calendar"},
                                              {"rate_limit", "time_zone"},
                                              {"rate_limit", "burst"},
                                              {"rate_limit", "count_refused"},
                                              {"rate_limit", "by"},
                                              {"rate_limit", "tiers"},
                                              {"rate_limit", "overrides"},
                                              {"overrides", "expires"}}};

bool IsKnown(std::string_view parent, std::string_view key) {
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end() ||
         std::any_of(kOwnKeys.begin(), kOwnKeys.end(),
                     [&](const OwnKey& own) { return own.parent == parent && own.key == key; });
}

void CheckKeys(const GoValue::Map& map, std::string_view parent) {
  for (const auto& [key, value] : map) {
    const std::string* const name = key.text();
    if (name == nullptr) {
      throw YamlRefused{"config error, key is not of type string: " + GoText(key)};
    }
    if (!IsKnown(parent, *name)) {
      throw YamlRefused{"config error, unknown key '" + *name + "'"};
    }
    if (*name == "metadata") {
      continue;  // anything goes in there
    }
    if (const auto* const list = value.list()) {
      for (const GoValue& item : *list) {
        if (item.map() == nullptr) {
          throw YamlRefused{"config error, yaml file contains list of type other than map: " +
                            GoText(item)};
        }
        CheckKeys(*item.map(), *name);
      }
    } else if (value.map() != nullptr) {
      CheckKeys(*value.map(), *name);
    } else if (std::holds_alternative<double>(value.value) ||
               std::holds_alternative<uint64_t>(value.value)) {
      throw YamlRefused{"error checking config"};
    }
  }
}

MetadataValue ToMetadata(const GoValue& value) {
  struct Converter {
    MetadataValue operator()(std::monostate) const { return {}; }
    MetadataValue operator()(bool truth) const { return {truth}; }
    MetadataValue operator()(int64_t number) const { return {static_cast<double>(number)}; }
    MetadataValue operator()(uint64_t number) const { return {static_cast<double>(number)}; }
    MetadataValue operator()(double number) const { return {number}; }
    MetadataValue operator()(const std::string& text) const {
      RequireUtf8(text);
      return {text};
    }
    MetadataValue operator()(const GoValue::List& list) const {
      MetadataValue::List items;
      for (const GoValue& item : list) {
        items.push_back(ToMetadata(item));
      }
      return {std::move(items)};
    }
    MetadataValue operator()(const GoValue::Map& map) const {
      MetadataValue result = MetadataValue::Struct();
      for (const auto& [key, item] : map) {
        const std::string name = GoText(key);
        RequireUtf8(name);
        result[name] = ToMetadata(item);
      }
      return result;
    }
    static void RequireUtf8(std::string_view text) {
      while (!text.empty()) {
        const size_t length = Utf8Length(text);
        if (length == 0) {
          throw YamlRefused{"error parsing metadata: invalid UTF-8 in string"};
        }
        text.remove_prefix(length);
      }
    }
  };
  return std::visit(Converter{}, value.value);
}

// The second reading: nodes into fields. Wrong types are collected, since the original tells them
// all at once.
class Decoder {
 public:
  void ReadRoot(const GoNode& node, DescriptorFile& into) {
    Fields(node, "config.YamlRoot", [&](std::string_view key, const GoNode& value) {
      if (key == "domain") {
        Text(value, into.domain);
      } else if (key == "descriptors") {
        List(value, into.descriptors, "[]config.YamlDescriptor",
             [&](const GoNode& item, FileDescriptor& one) { ReadDescriptor(item, one); });
      } else if (key == "strict_matching") {
        Truth(value, into.strict_matching.emplace());
      } else if (key == "all_or_nothing") {
        Truth(value, into.all_or_nothing.emplace());
      }
    });
    if (!problems_.empty()) {
      std::string message = "yaml: unmarshal errors:";
      for (const std::string& problem : problems_) {
        message += "\n  " + problem;
      }
      throw YamlRefused{"error loading config file: " + message};
    }
  }

 private:
  void ReadDescriptor(const GoNode& node, FileDescriptor& into) {
    into.line = node.line;
    Fields(node, "config.YamlDescriptor", [&](std::string_view key, const GoNode& value) {
      if (key == "key") {
        Text(value, into.key);
      } else if (key == "value") {
        Text(value, into.value);
      } else if (key == "rate_limit") {
        ReadOptionalLimit(value, into.rate_limit);
      } else if (key == "descriptors") {
        List(value, into.descriptors, "[]config.YamlDescriptor",
             [&](const GoNode& item, FileDescriptor& one) { ReadDescriptor(item, one); });
      } else if (key == "shadow_mode") {
        Truth(value, into.shadow_mode);
      } else if (key == "quota_mode") {
        Truth(value, into.quota_mode);
      } else if (key == "detailed_metric") {
        Truth(value, into.detailed_metric);
      } else if (key == "value_to_metric") {
        Truth(value, into.value_to_metric);
      } else if (key == "share_threshold") {
        Truth(value, into.share_threshold);
      } else if (key == "metadata") {
        into.metadata =
            ToMetadata(pass_.DecodeMap(value, true, "map[string]interface {}", problems_));
      }
    });
  }

  // Nothing, written as such, is no limit; a second mapping adds to the first.
  void ReadOptionalLimit(const GoNode& value, std::optional<FileRateLimit>& into) {
    pass_.Follow(value, [&](const GoNode& node) {
      const bool is_scalar = node.kind == GoNodeKind::kScalar;
      if (is_scalar && node.tag.empty() &&
          (node.value == "null" || node.value == "~" || (node.value.empty() && node.implicit))) {
        if (node.implicit) {
          into.reset();
        } else {
          problems_.push_back(CannotUnmarshal(node, "!!str", "config.YamlRateLimit"));
        }
        return;
      }
      if (!into.has_value()) {
        into.emplace();
      }
      if (is_scalar && ResolveScalar(node).value.IsNull()) {
        into.emplace();
        return;
      }
      ReadLimit(node, *into);
    });
  }

  void ReadLimit(const GoNode& node, FileRateLimit& into) {
    Fields(node, "config.YamlRateLimit", [&](std::string_view key, const GoNode& value) {
      if (key == "requests_per_unit") {
        Number(value, into.requests_per_unit);
      } else if (key == "unit") {
        Text(value, into.unit);
      } else if (key == "unlimited") {
        Truth(value, into.unlimited);
      } else if (key == "name") {
        Text(value, into.name);
      } else if (key == "replaces") {
        List(value, into.replaces, "[]config.yamlReplaces",
             [&](const GoNode& item, std::string& name) { ReadReplaces(item, name); });
      } else {
        ReadOwn(key, value, into);
      }
    });
  }

  void ReadReplaces(const GoNode& node, std::string& into) {
    Fields(node, "config.yamlReplaces", [&](std::string_view key, const GoNode& value) {
      if (key == "name") {
        Text(value, into);
      }
    });
  }

  void ReadOwn(std::string_view key, const GoNode& value, FileRateLimit& into) {
    if (key == "algorithm") {
      Text(value, into.algorithm);
    } else if (key == "window") {
      Text(value, into.window);
    } else if (key == "calendar") {
      Text(value, into.calendar);
    } else if (key == "time_zone") {
      Text(value, into.time_zone);
    } else if (key == "burst") {
      Number(value, into.burst);
    } else if (key == "count_refused") {
      Truth(value, into.count_refused.emplace());
    } else if (key == "by") {
      Text(value, into.by);
    } else if (key == "tiers") {
      List(value, into.tiers, "a list of tiers",
           [&](const GoNode& item, FileVariant& one) { ReadVariant(item, "name", one); });
    } else if (key == "overrides") {
      List(value, into.overrides, "a list of overrides",
           [&](const GoNode& item, FileVariant& one) { ReadVariant(item, "value", one); });
    }
  }

  void ReadVariant(const GoNode& node, std::string_view of, FileVariant& into) {
    Fields(node, "a limit", [&](std::string_view key, const GoNode& value) {
      if (key == of) {
        Text(value, into.of);
      } else if (key == "requests_per_unit") {
        Number(value, into.requests_per_unit);
      } else if (key == "unlimited") {
        Truth(value, into.unlimited);
      } else if (key == "expires") {
        std::string text;
        Text(value, text);
        into.expires = rules::ParseTime(text);
        if (!into.expires.has_value()) {
          problems_.push_back(CannotUnmarshal(value, "!!str", "a time such as 2027-01-31"));
        }
      }
    });
  }

  // Calls `field` with each key and value of a mapping, merged ones included.
  void Fields(const GoNode& node, std::string_view type,
              const std::function<void(std::string_view, const GoNode&)>& field) {
    pass_.Follow(node, [&](const GoNode& real) {
      if (real.kind == GoNodeKind::kSequence) {
        problems_.push_back(CannotUnmarshal(real, "!!seq", type));
        return;
      }
      if (real.kind == GoNodeKind::kScalar) {
        if (const GoScalar scalar = ResolveScalar(real); !scalar.value.IsNull()) {
          problems_.push_back(CannotUnmarshal(real, scalar.tag, type));
        }
        return;
      }
      for (size_t i = 0; i + 1 < real.children.size(); i += 2) {
        const GoNode& key = *real.children[i];
        const GoNode& value = *real.children[i + 1];
        if (IsMergeKey(key)) {
          pass_.Merge(value, [&](const GoNode& merged) { Fields(merged, type, field); });
          continue;
        }
        std::string name;
        Text(key, name);
        field(name, value);
      }
    });
  }

  template <class Item, class ReadItem>
  void List(const GoNode& node, std::vector<Item>& into, std::string_view type, ReadItem read) {
    pass_.Follow(node, [&](const GoNode& real) {
      if (real.kind == GoNodeKind::kSequence) {
        into.clear();
        for (const GoNode* const item : real.children) {
          read(*item, into.emplace_back());
        }
      } else if (real.kind == GoNodeKind::kMap) {
        problems_.push_back(CannotUnmarshal(real, "!!map", type));
      } else if (const GoScalar scalar = ResolveScalar(real); scalar.value.IsNull()) {
        into.clear();
      } else {
        problems_.push_back(CannotUnmarshal(real, scalar.tag, type));
      }
    });
  }

  // Calls `take` with a scalar's value; false from it: not of that type.
  template <class Take>
  void Scalar(const GoNode& node, std::string_view type, Take take) {
    pass_.Follow(node, [&](const GoNode& real) {
      if (real.kind != GoNodeKind::kScalar) {
        problems_.push_back(
            CannotUnmarshal(real, real.kind == GoNodeKind::kMap ? "!!map" : "!!seq", type));
      } else if (const GoScalar scalar = ResolveScalar(real); !take(real, scalar.value)) {
        problems_.push_back(CannotUnmarshal(real, scalar.tag, type));
      }
    });
  }

  void Text(const GoNode& node, std::string& into) {
    Scalar(node, "string", [&](const GoNode& real, const GoValue& value) {
      into = value.IsNull() ? std::string() : value.text() != nullptr ? *value.text() : real.value;
      return true;
    });
  }

  void Truth(const GoNode& node, bool& into) {
    Scalar(node, "bool", [&](const GoNode& /*real*/, const GoValue& value) {
      const bool* const truth = std::get_if<bool>(&value.value);
      into = truth != nullptr && *truth;
      return truth != nullptr || value.IsNull();
    });
  }

  void Number(const GoNode& node, uint32_t& into) {
    Scalar(node, "uint32", [&](const GoNode& /*real*/, const GoValue& value) {
      const int64_t* const whole = std::get_if<int64_t>(&value.value);
      into = 0;
      if (whole != nullptr && *whole >= 0 && *whole <= UINT32_MAX) {
        into = static_cast<uint32_t>(*whole);
        return true;
      }
      return value.IsNull();
    });
  }

  GoPass pass_;
  std::vector<std::string> problems_;
};

// Both readings of the text itself.
DescriptorFile Read(std::string_view yaml) {
  DescriptorFile file;
  try {
    GoDocument document;
    document.Parse(yaml);
    if (document.root() == nullptr) {
      return file;
    }
    std::vector<std::string> problems;
    const GoValue all =
        GoPass().DecodeMap(*document.root(), false, "map[interface {}]interface {}", problems);
    if (!problems.empty()) {
      throw YamlRefused{"yaml: unmarshal errors:\n  " + problems.front()};
    }
    CheckKeys(*all.map(), "");
    Decoder().ReadRoot(*document.root(), file);
  } catch (YamlRefused& refused) {
    // What the YAML library says comes with a word of whose it is.
    if (refused.message.starts_with("yaml: ")) {
      refused.message = "error loading config file: " + refused.message;
    }
    throw;
  }
  return file;
}

}  // namespace

Result<DescriptorFile> ReadDescriptorFile(std::string_view name, std::string_view yaml) {
  try {
    DescriptorFile file = Read(yaml);
    file.name = name;
    return file;
  } catch (const YamlRefused& refused) {
    return Error::Invalid(std::string(name) + ": " + refused.message);
  }
}

}  // namespace weir::envoy
