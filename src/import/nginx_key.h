// What nginx counts by: variables, also those that `map` and `geo` make, as attributes of ours.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/attribute_names.h"
#include "import/imported.h"
#include "import/nginx_config.h"

namespace weir::import {

struct NginxKey {
  std::vector<std::string> per;
  bool needs_all = true;              // counted only where all parts are there
  std::vector<Condition> exceptions;  // requests that are not counted
  std::optional<Condition> only;      // or the only ones that are
};

class NginxKeys {
 public:
  NginxKeys(const std::map<std::string, std::string>& given, Imported& into)
      : given_(given), names_({}, {}), into_(into) {}

  // `map` and `geo`.
  void AddMap(const NginxDirective& directive);

  // nullopt: it cannot be said, and that was noted.
  std::optional<NginxKey> Read(const std::string& text, const Place& place);

 private:
  struct Cut {
    std::vector<std::string> variables;
    bool has_text = false;
  };

  [[nodiscard]] static Cut CutUp(std::string_view text);
  std::string AttributeOf(const std::string& variable, const Place& place);
  // What a variable that `map` makes is, if it is a key or nothing.
  std::optional<NginxKey> ReadMap(const NginxDirective& map, const Place& place);
  bool AddCases(const NginxDirective& map, const std::string& default_value, NginxKey& key,
                const Place& place);
  std::optional<std::vector<Test>> TestsOf(const std::string& source, const std::string& pattern,
                                           const Place& place);

  const std::map<std::string, std::string>& given_;
  AttributeNames names_;
  Imported& into_;
  std::map<std::string, const NginxDirective*> maps_;
};

// A regular expression of nginx, which matches anywhere, as one of ours, which matches whole.
// `of_path`: a query may follow, which nginx has cut off.
[[nodiscard]] std::string WholeRegex(std::string_view regex, bool ignore_case, bool of_path);

}  // namespace weir::import
