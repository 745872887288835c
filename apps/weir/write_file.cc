#include "apps/weir/write_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace weir::app {
namespace {

Error CannotWrite(const std::string& path, const std::string& why) {
  return Error{ErrorCode::kUnavailable, "cannot write '" + path + "': " + why};
}

// 0, or the errno of what failed.
int WriteAll(const std::string& path, std::string_view content) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr)
    return errno;
  errno = EIO;
  const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  const int error = written ? 0 : errno;
  errno = EIO;
  // A full disk may show only here.
  return std::fclose(file) != 0 && error == 0 ? errno : error;
}

}  // namespace

Result<void> WriteFile(const std::string& path, std::string_view content) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  const bool in_place =
      std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  const std::string target = in_place ? path : path + ".part";
  if (const int failed = WriteAll(target, content); failed != 0) {
    if (!in_place)
      std::filesystem::remove(target, error);
    return CannotWrite(path, std::strerror(failed));
  }
  if (in_place)
    return {};
  std::filesystem::rename(target, path, error);
  if (error) {
    const std::string why = error.message();
    std::filesystem::remove(target, error);
    return CannotWrite(path, why);
  }
  return {};
}

}  // namespace weir::app
