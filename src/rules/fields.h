// The values of a rule file, read one by one with errors that say what was expected.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/time.h"

#include "rules/issues.h"
#include "rules/yaml_reader.h"

namespace weir::rules {

// " did you mean \"limit\"?" with a leading space, or nothing.
[[nodiscard]] std::string DidYouMean(std::string_view found,
                                     std::span<const std::string_view> candidates);

// "a, b and c"
[[nodiscard]] std::string Listed(std::span<const std::string_view> words);

// A mapping with known keys. Unknown ones are reported when it is made.
class Fields {
 public:
  Fields(const YamlNode& map, std::span<const std::string_view> known, std::string_view what,
         Issues& issues);

  [[nodiscard]] const YamlNode* Find(std::string_view key) const;
  [[nodiscard]] bool Has(std::string_view key) const { return Find(key) != nullptr; }
  // Of the key itself; of the mapping if there is no such key.
  [[nodiscard]] Mark MarkOf(std::string_view key) const;

  // Each leaves `into` as it is if the key is not there or its value is wrong, which is reported.
  void Read(std::string_view key, std::string& into, size_t bytes_max = 1024) const;
  void Read(std::string_view key, bool& into) const;
  void Read(std::string_view key, int64_t& into, int64_t least, int64_t most) const;
  void Read(std::string_view key, WallTime& into) const;
  template <class Enum>
  void Read(std::string_view key, Enum& into,
            std::initializer_list<std::pair<std::string_view, Enum>> words) const {
    std::vector<std::string_view> names;
    for (const auto& [name, value] : words) {
      names.push_back(name);
    }
    if (const auto index = Choice(key, names)) {
      into = (words.begin() + *index)->second;
    }
  }

 private:
  [[nodiscard]] std::optional<size_t> Choice(std::string_view key,
                                             std::span<const std::string_view> words) const;
  [[nodiscard]] std::optional<std::string_view> Scalar(std::string_view key,
                                                       std::string_view expected) const;

  std::vector<std::pair<YamlNode, YamlNode>> pairs_;
  Mark mark_;
  Issues& issues_;
};

// The texts of a scalar or of a list of scalars; what else there is, is reported.
[[nodiscard]] std::vector<std::pair<std::string_view, Mark>> Texts(const YamlNode& node,
                                                                   std::string_view what,
                                                                   Issues& issues);

// 2027-01-31, 2027-01-31T12:00:00Z, 2027-01-31T12:00:00+01:00
[[nodiscard]] std::optional<WallTime> ParseTime(std::string_view text);
[[nodiscard]] std::string FormatTime(WallTime time);

[[nodiscard]] std::optional<uint64_t> ParseUnsigned(std::string_view text);

}  // namespace weir::rules
