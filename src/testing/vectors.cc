#include "testing/vectors.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace weir::testing {

std::string OutsideFile::Read() const {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<OutsideFile> OutsideFiles(std::string_view folder) {
  const char* const shared = std::getenv("WEIR_SHARED");
  std::vector<OutsideFile> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(shared != nullptr ? shared : "../shared") / folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name != "README.md") {
      files.push_back({name, entry.path().string()});
    }
  }
  std::sort(files.begin(), files.end(),
            [](const OutsideFile& a, const OutsideFile& b) { return a.name < b.name; });
  return files;
}

void SayNoOutsideData(std::string_view suite) {
  std::printf("no outside data: %.*s\n", static_cast<int>(suite.size()), suite.data());
}

}  // namespace weir::testing
