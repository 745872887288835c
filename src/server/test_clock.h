// A clock that somebody else sets: eight bytes of a mapped file, a little-endian int64, nanoseconds
// since 1970. For tests of what the server answers; it replaces every clock of the decisions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "weir/result.h"
#include "weir/time.h"

namespace weir::server {

class TestClock final : public Clock {
 public:
  // The file must exist, with at least eight bytes.
  static Result<std::unique_ptr<TestClock>> Open(const std::string& path);

  ~TestClock() override;

  [[nodiscard]] Timestamp Now() const noexcept override { return Timestamp(Read()); }
  [[nodiscard]] WallTime WallNow() const noexcept override { return WallTime(Read()); }

 private:
  explicit TestClock(const void* bytes) noexcept : bytes_(bytes) {}

  [[nodiscard]] Duration Read() const noexcept;

  const void* const bytes_;
};

}  // namespace weir::server
