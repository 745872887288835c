// Any text, taken for any format, is refused with a message or becomes rules that are good ones.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "weir/rule_set.h"

#include "fuzz/require.h"
#include "fuzz/without_zones.h"
#include "import/import.h"
#include "import/rule_writer.h"

using weir::fuzz::Require;

// The first byte chooses the format, so that seeds can be read: e, l, n, h.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir::import;  // NOLINT(google-build-using-namespace): one function
  if (size == 0 || size > 65536) {
    return 0;
  }
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Format format = data[0] == 'e'   ? Format::kEnvoy
                        : data[0] == 'l' ? Format::kLimitador
                        : data[0] == 'n' ? Format::kNginx
                                         : Format::kHaproxy;
  (void)DetectFormat(text);
  const std::vector<Source> sources = {{"fuzz", std::string(text)}};
  const auto imported = Import(sources, format, {});
  if (!imported) {
    // What was made and then refused would be our mistake.
    Require(!imported.error().message.starts_with("the rules that were made"));
    return 0;
  }
  Require(weir::RuleSet::Parse(WriteRules(*imported, ToString(format))).rules != nullptr);
  Require(!WriteReport(*imported).empty());
  return 0;
}
