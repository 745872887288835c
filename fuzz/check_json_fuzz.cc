// Any text as the JSON bodies of the HTTP front: no crash, an error in one line or a question
// within its limits, whatever lies behind the body.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "codec/http/check_json.h"
#include "fuzz/pieces.h"

namespace {

using weir::codec::http::CheckQuestion;
using weir::codec::http::JsonReader;
using weir::fuzz::Require;

// Everything a body said, or the error.
std::string Read(JsonReader& reader, std::string_view text, char behind) {
  const std::string padded = std::string(text) + std::string(64, behind);
  const std::string_view body(padded.data(), text.size());
  std::string said;
  const auto attributes = [&](const auto& list) {
    Require(list.size() <= weir::kMaxAttributes);
    for (const weir::Attribute& attribute : list) {
      Require(!attribute.name.empty() && attribute.value.size() <= weir::kMaxAttributeBytes);
      said.append(attribute.name).append("=").append(attribute.value).append(";");
    }
  };
  const auto error = [&] {
    Require(!reader.error().empty() && reader.error().find('\n') == std::string_view::npos);
    said.append("! ").append(reader.error());
  };
  if (reader.ReadCheck(body)) {
    Require(!reader.checks().empty() && reader.checks().size() <= JsonReader::kChecksMax);
    for (const CheckQuestion& check : reader.checks()) {
      Require(check.cost <= uint64_t{1} << 32 && check.id.size() <= JsonReader::kIdBytesMax);
      attributes(check.attributes);
      said += std::to_string(check.cost) + (check.peek ? "p" : "c") + std::string(check.id);
    }
  } else {
    error();
  }
  if (reader.ReadReserve(body)) {
    attributes(reader.reserve().attributes);
    said += std::to_string(reader.reserve().estimate);
  } else {
    error();
  }
  if (reader.ReadSettle(body)) {
    said += std::string(reader.settle().reservation) + std::to_string(reader.settle().actual);
  } else {
    error();
  }
  if (reader.ReadRelease(body)) {
    for (const std::string_view id : reader.released()) {
      said += id;
    }
  } else {
    error();
  }
  if (reader.ReadReset(body)) {
    attributes(reader.reset().attributes);
    said += reader.reset().rule;
  } else {
    error();
  }
  if (reader.ReadSwitch(body)) {
    said.append(reader.change().rule).append(reader.change().to);
  } else {
    error();
  }
  return said;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static JsonReader reader;  // as a thread keeps it: what one body leaves must not reach the next
  const std::string_view text = weir::fuzz::Text(data, size);
  const std::string said = Read(reader, text, ' ');
  for (const char behind : {'"', '}', '0', '\\', '\0'}) {
    Require(Read(reader, text, behind) == said);
  }
  JsonReader fresh;
  Require(Read(fresh, text, ' ') == said);
  return 0;
}
