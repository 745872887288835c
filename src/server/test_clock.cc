#include "server/test_clock.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

namespace weir::server {

namespace {

constexpr size_t kBytes = sizeof(int64_t);

Error Unusable(const std::string& path, const std::string& why) {
  return Error::Invalid("--test-clock " + path + ": " + why +
                        "; expected a file of 8 bytes, a little-endian int64, nanoseconds since "
                        "1970");
}

}  // namespace

Result<std::unique_ptr<TestClock>> TestClock::Open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return Unusable(path, std::strerror(errno));
  }
  struct stat found{};
  if (::fstat(file, &found) != 0 || found.st_size < static_cast<off_t>(kBytes)) {
    ::close(file);
    return Unusable(path, "it has " + std::to_string(found.st_size) + " bytes");
  }
  const void* const bytes = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file, 0);
  const int problem = errno;
  ::close(file);
  if (bytes == MAP_FAILED) {
    return Unusable(path, std::strerror(problem));
  }
  return std::unique_ptr<TestClock>(new TestClock(bytes));
}

TestClock::~TestClock() {
  ::munmap(const_cast<void*>(bytes_), kBytes);
}

Duration TestClock::Read() const noexcept {
  // Another process writes it; an aligned word is read in one piece. Acquire: what that process
  // sends us after it has set the clock is decided by the new time.
  static_assert(std::endian::native == std::endian::little, "the file is little-endian");
  return Duration(__atomic_load_n(static_cast<const int64_t*>(bytes_), __ATOMIC_ACQUIRE));
}

}  // namespace weir::server
