// YAML read as the library behind envoyproxy/ratelimit reads it (go-yaml 2, itself a port of
// libyaml), so that files mean the same here: YAML 1.1 scalars (`yes` is true, 010 is eight), the
// last of two equal keys wins, `<<` merges, aliases are followed, documents after the first are not
// looked at. What an alias may blow up to is bounded as it is there, and more tightly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace weir::envoy {

// Thrown by all that reads files; caught where a file's reading began.
struct YamlRefused {
  std::string message;
};

enum class GoNodeKind : uint8_t { kScalar, kSequence, kMap, kAlias };

struct GoNode {
  GoNodeKind kind = GoNodeKind::kScalar;
  uint32_t line = 0;                    // from 1
  bool implicit = false;                // a plain scalar, whose text decides its type
  std::string tag;                      // empty: none
  std::string value;                    // of a scalar; of an alias its anchor's name
  std::vector<const GoNode*> children;  // of a map key, value, key, value
  const GoNode* target = nullptr;       // of an alias
};

class GoDocument {
 public:
  static constexpr size_t kMaxBytes = size_t{16} << 20;
  static constexpr size_t kMaxNodes = 1'000'000;
  static constexpr size_t kMaxDepth = 1000;

  // The error has the words of the original: "yaml: line 2: found unexpected end of stream".
  void Parse(std::string_view text);

  // nullptr: an empty document.
  [[nodiscard]] const GoNode* root() const noexcept { return root_; }

 private:
  friend class GoTreeBuilder;

  std::deque<GoNode> nodes_;
  const GoNode* root_ = nullptr;
};

// Anything that can be in a file, without regard to what is expected there.
struct GoValue {
  using List = std::vector<GoValue>;
  struct Entry;
  using Map = std::vector<Entry>;  // a key once

  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, List, Map> value;

  [[nodiscard]] bool IsNull() const noexcept { return value.index() == 0; }
  [[nodiscard]] const std::string* text() const noexcept {
    return std::get_if<std::string>(&value);
  }
  [[nodiscard]] const Map* map() const noexcept { return std::get_if<Map>(&value); }
  [[nodiscard]] const List* list() const noexcept { return std::get_if<List>(&value); }

  bool operator==(const GoValue& other) const;
};

// A type of its own: std::pair asks what its parts can do before they are complete.
struct GoValue::Entry {
  GoValue first;
  GoValue second;

  bool operator==(const Entry& other) const = default;
};

// As Go's %v prints it, for error texts.
[[nodiscard]] std::string GoText(const GoValue& value);

struct GoScalar {
  GoValue value;
  std::string_view tag;  // !!null, !!bool, !!int, !!float, !!str, or the one that was given
};

// The YAML 1.1 type of a scalar, and its value. A date is text.
[[nodiscard]] GoScalar ResolveScalar(const GoNode& node);

[[nodiscard]] bool IsMergeKey(const GoNode& node) noexcept;

// One pass over a document: follows aliases, and refuses documents that are mostly these.
class GoPass {
 public:
  // Calls `visit` with the node, or with what it is an alias of.
  template <class Visit>
  void Follow(const GoNode& node, Visit visit) {
    Spend();
    if (node.kind != GoNodeKind::kAlias) {
      visit(node);
      return;
    }
    Enter(node);
    Follow(*node.target, visit);
    Leave(node);
  }

  // Calls `visit` with each mapping that a merge key brings in, the one that wins last.
  template <class Visit>
  void Merge(const GoNode& node, Visit visit) {
    RequireMaps(node);
    if (node.kind == GoNodeKind::kSequence) {
      for (size_t i = node.children.size(); i > 0; --i) {
        Follow(*node.children[i - 1], visit);
      }
    } else {
      Follow(node, visit);
    }
  }

  // The node as it is. Throws for a mapping or a list as a key.
  [[nodiscard]] GoValue Decode(const GoNode& node);
  // As the map that a whole file is, or as one with names for keys. `problems` gets what is no map.
  [[nodiscard]] GoValue DecodeMap(const GoNode& node, bool names, std::string_view type,
                                  std::vector<std::string>& problems);

 private:
  void Spend();
  void Enter(const GoNode& alias);
  void Leave(const GoNode& alias);
  static void RequireMaps(const GoNode& node);
  void DecodePairs(const GoNode& map, bool names, GoValue::Map& into);

  size_t decodes_ = 0;
  size_t aliased_ = 0;
  std::unordered_set<const GoNode*> inside_;  // the aliases being followed
};

// "line 3: cannot unmarshal !!str `abc` into uint32"
[[nodiscard]] std::string CannotUnmarshal(const GoNode& node, std::string_view tag,
                                          std::string_view type);

}  // namespace weir::envoy
