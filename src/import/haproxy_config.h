// HAProxy's configuration: lines of words, in sections.
#pragma once

#include <string>
#include <vector>

#include "import/imported.h"

namespace weir::import {

struct HaproxyLine {
  Place place;
  std::vector<std::string> words;

  // The words, as they were.
  [[nodiscard]] std::string Text() const;
};

struct HaproxySection {
  std::string kind;  // frontend, backend, listen, ...; empty: before any
  std::string name;
  std::vector<HaproxyLine> lines;
};

// Throws Refused.
[[nodiscard]] std::vector<HaproxySection> ReadHaproxyConfig(const Source& source);

}  // namespace weir::import
