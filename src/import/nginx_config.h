// nginx's configuration language: directives, each with words and perhaps a block. Also parts of a
// configuration, as one finds them in an included file.
#pragma once

#include <string>
#include <vector>

#include "import/imported.h"

namespace weir::import {

struct NginxDirective {
  Place place;
  std::vector<std::string> words;  // the name first
  std::vector<NginxDirective> block;
  bool has_block = false;

  [[nodiscard]] const std::string& name() const { return words.front(); }
};

// Throws Refused.
[[nodiscard]] std::vector<NginxDirective> ReadNginxConfig(const Source& source);

}  // namespace weir::import
