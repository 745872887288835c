#include "envoy/metadata_value.h"

#include <charconv>
#include <cmath>

#include "envoy/json_writing.h"

namespace weir::envoy {

MetadataValue MetadataValue::Struct() {
  return {Fields{}};
}

// Not defaulted: that would look into the type before it is complete.
bool MetadataValue::operator==(const MetadataValue& other) const {
  return value == other.value;
}

const MetadataValue* MetadataValue::Find(std::string_view name) const noexcept {
  for (const auto& [key, field] : fields()) {
    if (key == name) {
      return &field;
    }
  }
  return nullptr;
}

MetadataValue& MetadataValue::operator[](std::string_view name) {
  Fields& all = std::get<Fields>(value);
  for (auto& [key, field] : all) {
    if (key == name) {
      return field;
    }
  }
  return all.emplace_back(std::string(name), MetadataValue{}).second;
}

void MergeMetadata(MetadataValue& into, const MetadataValue& from) {
  for (const auto& [name, field] : from.fields()) {
    if (into.Find(name) == nullptr) {
      into[name] = field;
    } else if (into[name].IsStruct() && field.IsStruct()) {
      MergeMetadata(into[name], field);
    }
  }
}

void AppendJson(std::string& out, const MetadataValue& value) {
  if (const bool* const truth = std::get_if<bool>(&value.value)) {
    out += *truth ? "true" : "false";
  } else if (const double* const number = std::get_if<double>(&value.value)) {
    AppendJsonNumber(out, *number);
  } else if (const std::string* const text = std::get_if<std::string>(&value.value)) {
    AppendJsonString(out, *text);
  } else if (const auto* const list = std::get_if<MetadataValue::List>(&value.value)) {
    out += '[';
    for (size_t i = 0; i < list->size(); ++i) {
      out += i == 0 ? "" : ",";
      AppendJson(out, (*list)[i]);
    }
    out += ']';
  } else if (value.IsStruct()) {
    out += '{';
    bool first = true;
    for (const auto& [name, field] : value.fields()) {
      out += first ? "" : ",";
      first = false;
      AppendJsonString(out, name);
      out += ':';
      AppendJson(out, field);
    }
    out += '}';
  } else {
    out += "null";
  }
}

}  // namespace weir::envoy
