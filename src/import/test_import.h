// Imports in tests: text in, rules that decide out.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "import/import.h"
#include "import/rule_writer.h"
#include "rules/test_rules.h"

namespace weir::import {

inline std::string MessageOf(const Result<Imported>& imported) {
  return imported ? "" : imported.error().message;
}

inline Imported MustImport(std::string_view text, Format format,
                           const ImportOptions& options = {}) {
  const std::vector<Source> sources = {{"in", std::string(text)}};
  auto imported = Import(sources, format, options);
  EXPECT_TRUE(imported.ok()) << MessageOf(imported) << "\n" << text;
  return imported ? *std::move(imported) : Imported();
}

inline std::string YamlOf(const Imported& imported, Format format) {
  return WriteRules(imported, ToString(format));
}

// Imported rules at work.
inline std::unique_ptr<rules::TestRules> Running(const Imported& imported, Format format) {
  return std::make_unique<rules::TestRules>(YamlOf(imported, format));
}

inline size_t Count(const Imported& imported, Carry carry) {
  size_t count = 0;
  for (const Finding& finding : imported.findings) {
    count += finding.carry == carry ? 1 : 0;
  }
  return count;
}

// Whether something of this kind was said with these words, at this line.
inline bool Says(const Imported& imported, Carry carry, uint32_t line, std::string_view words) {
  for (const Finding& finding : imported.findings) {
    if (finding.carry == carry && finding.place.line == line &&
        finding.what.find(words) != std::string::npos) {
      return true;
    }
  }
  return false;
}

// How many of `asked` requests at the same instant pass.
inline int Passed(rules::TestRules& rules, const std::vector<Attribute>& request, int asked) {
  int passed = 0;
  for (int i = 0; i < asked; ++i) {
    passed += rules.limiter->Check(request).allowed() ? 1 : 0;
  }
  return passed;
}

}  // namespace weir::import
