// Any text is refused with a message or becomes a quota that its own text reads back to.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "weir/quota.h"

#include "fuzz/require.h"
#include "fuzz/without_zones.h"

using weir::fuzz::Require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto quota = weir::Quota::Parse(text);
  if (!quota) {
    Require(quota.error().message.starts_with("quota \""));
    Require(quota.error().message.find('\n') == std::string::npos);
    Require(quota.error().message.find('\0') == std::string::npos);
    return 0;
  }
  Require(quota->limit() >= 1 && quota->burst() >= 1);
  if (quota->algorithm() != weir::Algorithm::kCalendar) {
    Require(quota->window() >= weir::Quota::kMinWindow);
    Require(quota->window() <= weir::Quota::kMaxWindow);
  }
  const auto again = weir::Quota::Parse(quota->ToString());
  Require(again.ok() && *again == *quota);
  return 0;
}
