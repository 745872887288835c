// Any text is refused with a message or becomes a configuration that can be asked: for what it has,
// for what it has not, and twice with the same answer.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "envoy/descriptor_config.h"
#include "envoy/descriptor_file.h"
#include "fuzz/require.h"
#include "fuzz/without_zones.h"

using weir::fuzz::Require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir::envoy;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto file = ReadDescriptorFile("fuzz.yaml", text);
  Require(file.ok() == ReadDescriptorFile("fuzz.yaml", text).ok());
  if (!file) {
    Require(file.error().message.starts_with("fuzz.yaml: "));
    return 0;
  }
  for (const bool strict : {false, true}) {
    const std::vector<DescriptorFile> files = {*file};
    const auto config = DescriptorConfig::Load(files, {.strict_matching = strict});
    if (!config) {
      Require(config.error().message.starts_with("fuzz.yaml: "));
      continue;
    }
    const Domain* const domain = (*config)->FindDomain(file->domain);
    Require(domain != nullptr);
    for (const FileDescriptor& one : file->descriptors) {
      const Entry entries[] = {{one.key, one.value}, {"other", text.substr(0, 50)}};
      LookUp found;
      DescriptorConfig::Find(*domain, std::span(entries).first(1), found);
      // What is written without a pattern is found under its own name.
      const bool plain = (one.key + one.value).find('*') == std::string::npos;
      Require(!(plain && one.rate_limit.has_value() && !one.value.empty()) ||
              found.rule != nullptr);
      DescriptorConfig::Find(*domain, entries, found);
      std::string key;
      AppendCounterKey(key, "", domain->name, entries, found.share_patterns, strict);
      Require(!key.empty());
    }
    Require((*config)->Dump() ==
            (*DescriptorConfig::Load(files, {.strict_matching = strict}))->Dump());
  }
  return 0;
}
