#include "testing/vectors.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace weir::testing {

namespace {

std::filesystem::path VectorFolder() {
  const char* const shared = std::getenv("WEIR_SHARED");
  return std::filesystem::path(shared != nullptr ? shared : "../shared") / "vectors";
}

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

std::vector<VectorFile> ReadVectors(std::string_view prefix, std::string_view suite) {
  std::vector<VectorFile> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(VectorFolder(), error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(prefix, 0) == 0 && entry.path().extension() == ".json") {
      files.push_back({name, ReadAll(entry.path())});
    }
  }
  std::sort(files.begin(), files.end(),
            [](const VectorFile& a, const VectorFile& b) { return a.name < b.name; });
  if (files.empty()) {
    std::printf("no outside data: %.*s\n", static_cast<int>(suite.size()), suite.data());
  }
  return files;
}

}  // namespace weir::testing
