#include "rules/path_pattern.h"

#include <algorithm>

#include "base/spelling.h"

namespace weir::rules {

namespace {

using Kind = PatternSegment::Kind;

Error Bad(std::string_view text, std::string_view why) {
  return Error::Invalid("the path pattern " + base::Quoted(text) + ": " + std::string(why));
}

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

}  // namespace

Result<PathPattern> PathPattern::Parse(std::string_view text) {
  PathPattern pattern;
  pattern.text = text;
  if (!text.starts_with('/')) {
    return Bad(text, "expected a path that begins with \"/\"");
  }
  if (text.find_first_of("?#") != std::string_view::npos) {
    return Bad(text, "a query is not part of a path; expected none");
  }
  std::string_view left = text;
  while (!left.empty()) {
    left.remove_prefix(1);  // the slash
    const std::string_view part = left.substr(0, left.find('/'));
    left.remove_prefix(part.size());
    if (part.empty()) {
      continue;
    }
    if (pattern.rest) {
      return Bad(text, "\"**\" stands for all that follows; expected nothing behind it");
    }
    if (part == "**") {
      pattern.rest = true;
    } else if (part == "*") {
      pattern.segments.push_back({Kind::kAny, ""});
    } else if (part.starts_with('{') && part.ends_with('}')) {
      const std::string_view name = part.substr(1, part.size() - 2);
      if (name.empty() || name.size() > 64 || !std::all_of(name.begin(), name.end(), IsNameByte)) {
        return Bad(text, "expected a parameter's name of letters, digits, _ and -, as in {id}");
      }
      if (pattern.PositionOf(name) != std::string_view::npos) {
        return Bad(text, "the parameter {" + std::string(name) + "} is there twice; expected once");
      }
      pattern.segments.push_back({Kind::kParameter, std::string(name)});
    } else if (part.find_first_of("*{}") != std::string_view::npos) {
      return Bad(text,
                 "\"*\", \"**\" and {name} stand for whole segments; for parts of one use "
                 "path: {glob: ...}");
    } else {
      pattern.segments.push_back({Kind::kText, std::string(part)});
    }
  }
  if (pattern.segments.size() > kMaxSegments) {
    return Bad(text, "it has " + std::to_string(pattern.segments.size()) +
                         " segments; the most is " + std::to_string(kMaxSegments));
  }
  return pattern;
}

size_t PathPattern::PositionOf(std::string_view parameter) const noexcept {
  for (size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].kind == Kind::kParameter && segments[i].text == parameter) {
      return i;
    }
  }
  return std::string_view::npos;
}

std::string PathPattern::Specificity() const {
  const auto has = [this](Kind kind) {
    return std::any_of(segments.begin(), segments.end(),
                       [kind](const PatternSegment& segment) { return segment.kind == kind; });
  };
  std::string result(1, rest || has(Kind::kAny) ? '1' : has(Kind::kParameter) ? '2' : '3');
  for (const PatternSegment& segment : segments) {
    result += segment.kind == Kind::kText ? '3' : segment.kind == Kind::kParameter ? '2' : '1';
  }
  return result;
}

void PathSegments::Cut(std::string_view path) noexcept {
  size_ = 0;
  const char* at = path.data();
  const char* const end = at + path.size();
  while (at != end && *at != '?' && *at != '#') {
    const char* const begin = at;
    while (at != end && *at != '/' && *at != '?' && *at != '#') {
      ++at;
    }
    if (at != begin) {
      if (size_ == PathPattern::kMaxSegments) {
        ++size_;
        return;
      }
      parts_[size_++] = std::string_view(begin, static_cast<size_t>(at - begin));
    }
    if (at != end && *at == '/') {
      ++at;
    }
  }
}

bool Matches(const PathPattern& pattern, const PathSegments& path) noexcept {
  const size_t size = pattern.segments.size();
  if (pattern.rest ? path.size() < size : path.size() != size) {
    return false;
  }
  for (size_t i = 0; i < size; ++i) {
    const PatternSegment& segment = pattern.segments[i];
    if (segment.kind == Kind::kText && segment.text != path[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace weir::rules
