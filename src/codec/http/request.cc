#include "codec/http/request.h"

#include <algorithm>

#include "base/same_text.h"

namespace weir::codec::http {

const Field* Request::Find(std::string_view name) const noexcept {
  const auto found = std::find_if(fields.begin(), fields.end(), [name](const Field& field) {
    return base::SameText(field.name, name);
  });
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace weir::codec::http
