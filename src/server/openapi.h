// The OpenAPI document that the server shows: docs/reference/openapi.json, put in at build time.
#pragma once

#include <string_view>

namespace weir::server {

[[nodiscard]] std::string_view OpenApiDocument() noexcept;

}  // namespace weir::server
