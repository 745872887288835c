// Text from outside as a JSON string.
#pragma once

#include <string_view>

#include "base/byte_buffer.h"

namespace weir::codec::http {

// With its quotes. What is not UTF-8 becomes U+FFFD, so that the answer always is.
void AppendJsonText(base::ByteBuffer& out, std::string_view text);

}  // namespace weir::codec::http
