// A value as google.protobuf.Struct knows them, without protobuf: for `metadata` of a descriptor
// and for the dynamic metadata of an answer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace weir::envoy {

struct MetadataValue {
  using List = std::vector<MetadataValue>;
  struct Field;
  using Fields = std::vector<Field>;  // in order, names once

  // null_value, bool_value, number_value, string_value, list_value, struct_value.
  std::variant<std::monostate, bool, double, std::string, List, Fields> value;

  [[nodiscard]] static MetadataValue Struct();

  [[nodiscard]] bool IsStruct() const noexcept { return std::holds_alternative<Fields>(value); }
  [[nodiscard]] const Fields& fields() const { return std::get<Fields>(value); }
  [[nodiscard]] const List& list() const { return std::get<List>(value); }

  // Of a struct; nullptr if there is no such field.
  [[nodiscard]] const MetadataValue* Find(std::string_view name) const noexcept;
  // Of a struct; made if there is no such field.
  MetadataValue& operator[](std::string_view name);

  bool operator==(const MetadataValue& other) const;
};

// A type of its own: std::pair asks what its parts can do before they are complete.
struct MetadataValue::Field {
  std::string first;  // its name
  MetadataValue second;

  bool operator==(const Field& other) const = default;
};

// Adds the fields of `from` that `into` lacks, in structs of structs alike; what is there stays.
// Both are structs.
void MergeMetadata(MetadataValue& into, const MetadataValue& from);

// As proto3 JSON.
void AppendJson(std::string& out, const MetadataValue& value);

}  // namespace weir::envoy
