#include "envoy/go_yaml.h"

#include <yaml.h>

#include <algorithm>
#include <map>
#include <memory>

namespace weir::envoy {

namespace {

// Past these a document is refused if more than a share of what is decoded comes from aliases: 99 %
// of a small one, 10 % of a large one.
constexpr size_t kAliasedMin = 100;
constexpr size_t kDecodesMin = 1000;
constexpr double kSmallDocument = 400'000;
constexpr double kLargeDocument = 4'000'000;

double AllowedAliasShare(double decodes) {
  if (decodes <= kSmallDocument) {
    return 0.99;
  }
  if (decodes >= kLargeDocument) {
    return 0.10;
  }
  return 0.99 - 0.89 * ((decodes - kSmallDocument) / (kLargeDocument - kSmallDocument));
}

std::string Text(const yaml_char_t* text) {
  return text == nullptr ? std::string() : reinterpret_cast<const char*>(text);
}

[[noreturn]] void Fail(std::string_view message) {
  throw YamlRefused{"yaml: " + std::string(message)};
}

}  // namespace

// Events to nodes.
class GoTreeBuilder {
 public:
  GoTreeBuilder(GoDocument& document, std::string_view text) : document_(document) {
    if (yaml_parser_initialize(&parser_) == 0) {
      throw std::bad_alloc();
    }
    // An empty text is no input at all for libyaml.
    const std::string_view input = text.empty() ? std::string_view("\n") : text;
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(input.data()),
                                 input.size());
  }
  ~GoTreeBuilder() {
    DropEvent();
    yaml_parser_delete(&parser_);
  }
  GoTreeBuilder(const GoTreeBuilder&) = delete;
  GoTreeBuilder& operator=(const GoTreeBuilder&) = delete;

  void Build() {
    Next();  // the stream begins
    Next();
    if (event_.type == YAML_STREAM_END_EVENT) {
      return;
    }
    Next();  // past the document's start
    document_.root_ = Node(0);
    // A second document is not looked at, but what stands where this one should end is.
    Next();
  }

 private:
  void DropEvent() {
    if (has_event_) {
      yaml_event_delete(&event_);
      has_event_ = false;
    }
  }

  void Next() {
    DropEvent();
    if (yaml_parser_parse(&parser_, &event_) == 0) {
      FailParse();
    }
    has_event_ = true;
  }

  [[noreturn]] void FailParse() {
    size_t line = parser_.problem_mark.line;
    if (line != 0) {
      line += parser_.error == YAML_SCANNER_ERROR ? 1 : 0;
    } else {
      line = parser_.context_mark.line;
    }
    std::string where;
    if (line != 0) {
      where = "line " + std::to_string(line) + ": ";
    }
    Fail(where +
         (parser_.problem == nullptr ? "unknown problem parsing YAML content" : parser_.problem));
  }

  GoNode& Add(GoNodeKind kind) {
    if (document_.nodes_.size() == GoDocument::kMaxNodes) {
      Fail("more than " + std::to_string(GoDocument::kMaxNodes) + " nodes");
    }
    GoNode& node = document_.nodes_.emplace_back();
    node.kind = kind;
    node.line = static_cast<uint32_t>(event_.start_mark.line) + 1;
    return node;
  }

  void Remember(const yaml_char_t* anchor, const GoNode& node) {
    if (anchor != nullptr) {
      anchors_[Text(anchor)] = &node;
    }
  }

  // The node that begins with the present event; leaves its last one present.
  const GoNode* Node(size_t depth) {
    if (depth > GoDocument::kMaxDepth) {
      Fail("exceeded max depth of " + std::to_string(GoDocument::kMaxDepth));
    }
    switch (event_.type) {
      case YAML_SCALAR_EVENT: {
        GoNode& node = Add(GoNodeKind::kScalar);
        const auto& scalar = event_.data.scalar;
        node.value.assign(reinterpret_cast<const char*>(scalar.value), scalar.length);
        node.tag = Text(scalar.tag);
        node.implicit = scalar.plain_implicit != 0;
        Remember(scalar.anchor, node);
        return &node;
      }
      case YAML_SEQUENCE_START_EVENT: {
        GoNode& node = Add(GoNodeKind::kSequence);
        Remember(event_.data.sequence_start.anchor, node);
        AddChildren(node, YAML_SEQUENCE_END_EVENT, depth);
        return &node;
      }
      case YAML_MAPPING_START_EVENT: {
        GoNode& node = Add(GoNodeKind::kMap);
        Remember(event_.data.mapping_start.anchor, node);
        AddChildren(node, YAML_MAPPING_END_EVENT, depth);
        return &node;
      }
      case YAML_ALIAS_EVENT: {
        GoNode& node = Add(GoNodeKind::kAlias);
        node.value = Text(event_.data.alias.anchor);
        const auto found = anchors_.find(node.value);
        if (found == anchors_.end()) {
          Fail("unknown anchor '" + node.value + "' referenced");
        }
        node.target = found->second;
        return &node;
      }
      default:
        Fail("attempted to parse unknown event");
    }
  }

  void AddChildren(GoNode& node, yaml_event_type_t end, size_t depth) {
    for (Next(); event_.type != end; Next()) {
      node.children.push_back(Node(depth + 1));
    }
  }

  GoDocument& document_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
  bool has_event_ = false;
  std::map<std::string, const GoNode*, std::less<>> anchors_;
};

void GoDocument::Parse(std::string_view text) {
  if (text.size() > kMaxBytes) {
    Fail("the file has " + std::to_string(text.size()) + " bytes; the most is " +
         std::to_string(kMaxBytes));
  }
  GoTreeBuilder(*this, text).Build();
}

void GoPass::Spend() {
  ++decodes_;
  aliased_ += inside_.empty() ? 0 : 1;
  const auto decodes = static_cast<double>(decodes_);
  if (aliased_ > kAliasedMin && decodes_ > kDecodesMin &&
      static_cast<double>(aliased_) / decodes > AllowedAliasShare(decodes)) {
    Fail("document contains excessive aliasing");
  }
}

void GoPass::Enter(const GoNode& alias) {
  if (!inside_.insert(&alias).second) {
    Fail("anchor '" + alias.value + "' value contains itself");
  }
}

void GoPass::Leave(const GoNode& alias) {
  inside_.erase(&alias);
}

void GoPass::RequireMaps(const GoNode& node) {
  const auto is_map = [](const GoNode& one) {
    return one.kind == GoNodeKind::kMap ||
           (one.kind == GoNodeKind::kAlias && one.target->kind == GoNodeKind::kMap);
  };
  if (!is_map(node) && !(node.kind == GoNodeKind::kSequence &&
                         std::all_of(node.children.begin(), node.children.end(),
                                     [&](const GoNode* child) { return is_map(*child); }))) {
    Fail("map merge requires map or sequence of maps as the value");
  }
}

GoValue GoPass::Decode(const GoNode& node) {
  GoValue result;
  Follow(node, [&](const GoNode& real) {
    if (real.kind == GoNodeKind::kScalar) {
      result = ResolveScalar(real).value;
    } else if (real.kind == GoNodeKind::kSequence) {
      GoValue::List list;
      list.reserve(real.children.size());
      for (const GoNode* const child : real.children) {
        list.push_back(Decode(*child));
      }
      result.value = std::move(list);
    } else {
      GoValue::Map map;
      DecodePairs(real, false, map);
      result.value = std::move(map);
    }
  });
  return result;
}

GoValue GoPass::DecodeMap(const GoNode& node, bool names, std::string_view type,
                          std::vector<std::string>& problems) {
  GoValue::Map map;
  Follow(node, [&](const GoNode& real) {
    if (real.kind == GoNodeKind::kMap) {
      DecodePairs(real, names, map);
    } else if (real.kind == GoNodeKind::kSequence) {
      problems.push_back(CannotUnmarshal(real, "!!seq", type));
    } else if (const GoScalar scalar = ResolveScalar(real); !scalar.value.IsNull()) {
      problems.push_back(CannotUnmarshal(real, scalar.tag, type));
    }
  });
  return {std::move(map)};
}

void GoPass::DecodePairs(const GoNode& map, bool names, GoValue::Map& into) {
  // Where a key stands, so that many of them do not take long.
  std::map<std::string, size_t, std::less<>> places;
  const auto slot = [&](GoValue key) -> GoValue& {
    const std::string place = std::to_string(key.value.index()) + GoText(key);
    const auto found = places.find(place);
    if (found != places.end()) {
      return into[found->second].second;
    }
    places.emplace(place, into.size());
    return into.emplace_back(std::move(key), GoValue{}).second;
  };
  for (size_t i = 0; i < into.size(); ++i) {
    places.emplace(std::to_string(into[i].first.value.index()) + GoText(into[i].first), i);
  }
  for (size_t i = 0; i + 1 < map.children.size(); i += 2) {
    const GoNode& key_node = *map.children[i];
    if (IsMergeKey(key_node)) {
      Merge(*map.children[i + 1], [&](const GoNode& merged) {
        GoValue::Map more;
        DecodePairs(merged, names, more);
        for (auto& [key, value] : more) {
          slot(std::move(key)) = std::move(value);
        }
      });
      continue;
    }
    GoValue key = Decode(key_node);
    if (key.map() != nullptr || key.list() != nullptr) {
      Fail("invalid map key: " + GoText(key));
    }
    if (names && key.text() == nullptr) {
      Follow(key_node,
             [&](const GoNode& real) { key.value = key.IsNull() ? std::string() : real.value; });
    }
    GoValue value = Decode(*map.children[i + 1]);
    slot(std::move(key)) = std::move(value);
  }
}

std::string CannotUnmarshal(const GoNode& node, std::string_view tag, std::string_view type) {
  constexpr size_t kShown = 10;
  std::string text = "line " + std::to_string(node.line) + ": cannot unmarshal " + std::string(tag);
  if (node.kind == GoNodeKind::kScalar) {
    text +=
        " `" + (node.value.size() > kShown ? node.value.substr(0, 7) + "..." : node.value) + "`";
  }
  return text + " into " + std::string(type);
}

}  // namespace weir::envoy
