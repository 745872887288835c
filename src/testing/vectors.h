// Test data from outside the project: read where it lies, never copied. The folder is named by
// WEIR_SHARED, or is ../shared beside the source tree, from whose root tests run. A clone without
// it passes on the project's own cases, and says so.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::testing {

struct OutsideFile {
  std::string name;  // without folders
  std::string path;

  [[nodiscard]] std::string Read() const;
};

// All files of a folder of the shared ones, such as "vectors", by name, but for its README.md.
[[nodiscard]] std::vector<OutsideFile> OutsideFiles(std::string_view folder);

// Prints `no outside data: <suite>`, which the summary of a test run picks up.
void SayNoOutsideData(std::string_view suite);

}  // namespace weir::testing
