// Patterns of paths: "/users/{id}/posts", "/files/*/raw", "/static/**".
//
// A path is compared by its segments. The query is left off, several slashes are as one, and so is
// a slash at the end as none: for who limits, the safe side is to match what a server might take
// for the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

#include "base/room.h"

namespace weir::rules {

struct PatternSegment {
  enum class Kind : uint8_t { kText, kParameter, kAny };
  Kind kind = Kind::kText;
  std::string text;  // the parameter's name; empty for *
};

struct PathPattern {
  static constexpr size_t kMaxSegments = 32;

  std::string text;
  std::vector<PatternSegment> segments;
  bool rest = false;  // ends with **: any number of segments more

  static Result<PathPattern> Parse(std::string_view text);

  // Position of the segment that the parameter stands for; npos: there is none.
  [[nodiscard]] size_t PositionOf(std::string_view parameter) const noexcept;

  // How much is said, for the order of rules; a greater one is more specific. Compared as text: the
  // class (exact, parameters, wildcards), then segment by segment.
  [[nodiscard]] std::string Specificity() const;
};

// A path cut into segments, without allocation.
class PathSegments {
 public:
  PathSegments() noexcept = default;
  explicit PathSegments(std::string_view path) noexcept { Cut(path); }

  void Cut(std::string_view path) noexcept;

  // How many there are; more than a pattern can have counts as one more than that.
  [[nodiscard]] size_t size() const noexcept { return size_; }
  // REQUIRES: i < PathPattern::kMaxSegments.
  [[nodiscard]] std::string_view operator[](size_t i) const noexcept { return parts_[i]; }

 private:
  size_t size_ = 0;
  base::Room<std::string_view, PathPattern::kMaxSegments> parts_;
};

// One pattern against one path; the compiled trie answers the same for all patterns at once.
[[nodiscard]] bool Matches(const PathPattern& pattern, const PathSegments& path) noexcept;

}  // namespace weir::rules
