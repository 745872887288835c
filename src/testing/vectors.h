// Test data from outside the project: read where it lies, never copied. The folder is named by
// WEIR_SHARED, or is ../shared beside the source tree, from whose root tests run. A clone without
// it passes on the project's own cases, and says so.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::testing {

struct VectorFile {
  std::string name;
  std::string text;
};

// All files <folder>/vectors/<prefix>*.json, by name; none if there is no such folder. When there
// is none, prints `no outside data: <suite>`, which the summary of a test run picks up.
[[nodiscard]] std::vector<VectorFile> ReadVectors(std::string_view prefix, std::string_view suite);

}  // namespace weir::testing
