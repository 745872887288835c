// All files of a configuration, joined and compiled: which limit a descriptor meets, under which
// stat path, counted by what.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weir/result.h"

#include "envoy/descriptor_file.h"
#include "envoy/limit_rule.h"
#include "envoy/rls_types.h"

namespace weir::envoy {

// Text as a key that a view of text finds.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>{}(text);
  }
};
template <class Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

// What a look-up found, and memory that it uses again.
struct LookUp {
  const LimitRule* rule = nullptr;  // nullptr: no limit
  // The stat path; runtime_path: it is another than the rule's own. Only with a rule.
  std::string_view stats_key;
  bool runtime_path = false;
  // For each entry the pattern that stands for its value in counters; empty: its own value.
  std::vector<std::string_view> share_patterns;
  bool shares = false;  // whether any of these is not empty

  std::string composite;  // scratch
  std::string path_text;  // what stats_key may view
};

class DescriptorNode;

struct Domain {
  ~Domain();

  std::string name;
  bool strict_matching = false;
  bool all_or_nothing = false;
  std::unique_ptr<DescriptorNode> root;
};

struct ConfigOptions {
  bool merge_domain_configs = false;
  bool strict_matching = false;
  bool all_or_nothing = false;
};

class DescriptorConfig {
 public:
  // The error is the text of envoyproxy/ratelimit, with the file's name first.
  static Result<std::unique_ptr<DescriptorConfig>> Load(std::span<const DescriptorFile> files,
                                                        const ConfigOptions& options);

  ~DescriptorConfig();
  DescriptorConfig(const DescriptorConfig&) = delete;
  DescriptorConfig& operator=(const DescriptorConfig&) = delete;

  // nullptr: not configured.
  [[nodiscard]] const Domain* FindDomain(std::string_view name) const noexcept;
  // The limit of the last entry, if every entry leads there.
  static void Find(const Domain& domain, std::span<const Entry> entries, LookUp& found);

  // In the order of the files.
  void ForEachRule(const std::function<void(LimitRule&)>& visit);
  [[nodiscard]] std::string Dump() const;
  [[nodiscard]] bool empty() const noexcept { return domains_.empty(); }

 private:
  friend class ConfigLoader;
  DescriptorConfig();

  std::vector<std::unique_ptr<Domain>> in_order_;
  TextMap<Domain*> domains_;
};

// The stat path of a limit that the client brought along.
void AppendOverridePath(std::string& out, std::string_view domain, std::span<const Entry> entries);

// `<prefix><domain>_<key>_<value>_..._`, what the original counts under, up to the window's start.
// Strict: with lengths, so that no two descriptors have the same. `patterns` as in LookUp; empty:
// none.
void AppendCounterKey(std::string& out, std::string_view prefix, std::string_view domain,
                      std::span<const Entry> entries, std::span<const std::string_view> patterns,
                      bool strict);

// Whether `*`s in a pattern, any number of bytes each, can make it this text. `parts` is the
// pattern cut at each `*`.
[[nodiscard]] bool MatchesWildcard(std::span<const std::string> parts, std::string_view text);

}  // namespace weir::envoy
