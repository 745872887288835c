// Conditions and variables of limitador: the part of CEL that compares attributes with texts, and
// the older form `name == "text"`.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "import/predicate.h"

namespace weir::import {

// What is not understood, and at which byte of the expression it stands.
struct CelRefused {
  std::string message;
  size_t at = 0;
};

// Called with what an expression calls an attribute (user_id for descriptors[0].user_id); returns
// the name of our attribute.
using CelAttribute = std::function<std::string(const std::string& name, size_t descriptor)>;

// Throws CelRefused.
[[nodiscard]] Predicate ReadCelCondition(std::string_view text, const CelAttribute& attribute);
[[nodiscard]] std::string ReadCelVariable(std::string_view text, const CelAttribute& attribute);

}  // namespace weir::import
