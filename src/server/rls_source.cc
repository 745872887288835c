#include "server/rls_source.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

namespace weir::server {

namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kFileBytesMax = uintmax_t{4} << 20;

Result<void> ReadFile(const fs::path& path, std::vector<envoy::ConfigFile>& into) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error) {
    return Error{ErrorCode::kUnavailable, path.string() + ": " + error.message()};
  }
  if (size > kFileBytesMax) {
    return Error::Invalid(path.string() + ": " + std::to_string(size) + " bytes; at most " +
                          std::to_string(kFileBytesMax));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (file.bad()) {
    return Error{ErrorCode::kUnavailable, path.string() + ": cannot be read"};
  }
  into.push_back({path.string(), std::move(text)});
  return {};
}

}  // namespace

Result<void> LoadDescriptors(envoy::RlsService& service, const std::vector<std::string>& paths) {
  std::vector<fs::path> found;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      found.emplace_back(path);
      continue;
    }
    std::vector<fs::path> within;
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
      const std::string extension = entry.path().extension().string();
      if ((extension == ".yaml" || extension == ".yml") &&
          !entry.path().filename().string().starts_with('.')) {
        within.push_back(entry.path());
      }
    }
    if (error) {
      return Error{ErrorCode::kUnavailable, path + ": " + error.message()};
    }
    std::sort(within.begin(), within.end());
    found.insert(found.end(), within.begin(), within.end());
  }
  std::vector<envoy::ConfigFile> files;
  for (const fs::path& path : found) {
    if (Result<void> read = ReadFile(path, files); !read) {
      return read;
    }
  }
  return service.Load(files);
}

}  // namespace weir::server
