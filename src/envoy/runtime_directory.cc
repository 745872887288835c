#include "envoy/runtime_directory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace weir::envoy {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMaxDepth = 16;

bool IsSkipped(const std::string& name, bool ignore_dot_files) {
  return name.starts_with("..") || (ignore_dot_files && name.starts_with('.'));
}

class Reader {
 public:
  Reader(const RuntimeDirectory& directory, std::vector<ConfigFile>& files)
      : directory_(directory), files_(files) {}

  Result<void> Walk(const fs::path& folder, const std::string& prefix, size_t depth) {
    std::error_code error;
    std::vector<fs::path> entries;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      entries.push_back(at->path());
    }
    if (error) {
      return depth == 0 && error == std::errc::no_such_file_or_directory
                 ? Result<void>()
                 : Error::Invalid(folder.string() + ": " + error.message());
    }
    std::sort(entries.begin(), entries.end());
    for (const fs::path& entry : entries) {
      const std::string name = entry.filename().string();
      if (IsSkipped(name, directory_.ignore_dot_files)) {
        continue;
      }
      // Links are followed: a ConfigMap has nothing else.
      Result<void> read;
      if (fs::is_directory(entry, error)) {
        if (depth < kMaxDepth) {
          read = Walk(entry, prefix + name + ".", depth + 1);
        }
      } else if (entry.extension() == ".yaml" || entry.extension() == ".yml") {
        read = ReadFile(entry, prefix + name);
      }
      if (!read) {
        return read;
      }
    }
    return {};
  }

 private:
  Result<void> ReadFile(const fs::path& path, std::string name) {
    if (files_.size() == RuntimeDirectory::kMaxFiles) {
      return Error::Invalid(directory_.path() + ": more than " +
                            std::to_string(RuntimeDirectory::kMaxFiles) + " files");
    }
    std::error_code error;
    const uintmax_t size = fs::file_size(path, error);
    if (error || (bytes_ += size) > RuntimeDirectory::kMaxBytes) {
      return Error::Invalid(path.string() + ": " +
                            (error ? error.message() : "more than 64 MiB of files"));
    }
    std::ifstream stream(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(stream), {}};
    if (!stream.good() && !stream.eof()) {
      return Error::Invalid(path.string() + ": cannot be read");
    }
    files_.push_back({std::move(name), std::move(text)});
    return {};
  }

  const RuntimeDirectory& directory_;
  std::vector<ConfigFile>& files_;
  uintmax_t bytes_ = 0;
};

}  // namespace

std::string RuntimeDirectory::path() const {
  return (fs::path(root) / subdirectory / app_directory).lexically_normal().string();
}

Result<std::vector<ConfigFile>> RuntimeDirectory::Read() const {
  std::vector<ConfigFile> files;
  if (auto walked = Reader(*this, files).Walk(path(), app_directory + ".", 0); !walked) {
    return walked.error();
  }
  return files;
}

}  // namespace weir::envoy
