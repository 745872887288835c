#include "codec/http/request.h"

#include <algorithm>

#include "codec/http/syntax.h"

namespace weir::codec::http {

const Field* Request::Find(std::string_view name) const noexcept {
  const auto found = std::find_if(fields.begin(), fields.end(), [name](const Field& field) {
    return EqualsIgnoringCase(field.name, name);
  });
  return found == fields.end() ? nullptr : &*found;
}

bool EqualsIgnoringCase(std::string_view left, std::string_view right) noexcept {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](char a, char b) { return ToLower(a) == ToLower(b); });
}

}  // namespace weir::codec::http
