#include "import/attribute_names.h"

#include <cctype>

#include "base/spelling.h"

namespace weir::import {

namespace {

constexpr size_t kMaxBytes = 64;

std::string Clean(std::string_view name) {
  std::string clean;
  for (const char c : name.substr(0, kMaxBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool fits =
        byte < 0x80 && (std::isalnum(byte) != 0 || c == '_' || c == '-' || c == '.' || c == ':');
    clean += fits ? c : '_';
  }
  return clean;
}

}  // namespace

std::string AttributeNames::Choose(const std::string& name) const {
  if (const auto given = given_.find(name); given != given_.end()) {
    return given->second;
  }
  if (const auto known = known_.find(name); known != known_.end()) {
    return known->second;
  }
  // Both can be counted by, not matched; "all" is everybody.
  if (name == "route" || name == "all" || name.starts_with("path:")) {
    return Clean("_" + name);
  }
  return Clean(name);
}

std::string AttributeNames::Of(const std::string& name, const Place& place, Imported& imported) {
  if (const auto found = chosen_.find(name); found != chosen_.end()) {
    return found->second;
  }
  std::string attribute = Choose(name);
  for (size_t n = 2; !used_.try_emplace(attribute, name).second; ++n) {
    const std::string tail = "_" + std::to_string(n);
    attribute = Choose(name).substr(0, kMaxBytes - tail.size()) + tail;
  }
  chosen_.emplace(name, attribute);
  if (attribute != name) {
    imported.Note(Carry::kCarried, place,
                  base::Quoted(name) + " is the attribute " + base::Quoted(attribute));
  }
  return attribute;
}

}  // namespace weir::import
