// Other programs' rate limits as rules of ours.
//
//   auto imported = weir::import::Import(sources, weir::import::Format::kNginx, {});
//   if (!imported) return Fail(imported.error().message);   // "nginx.conf:7:12: ..."
//   std::puts(weir::import::WriteRules(*imported, "nginx").c_str());
//
// What is written always passes RuleSet::Parse. What could not be carried over, or not to the
// letter, is among the findings.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weir/result.h"

#include "import/imported.h"

namespace weir::import {

enum class Format : uint8_t { kEnvoy, kLimitador, kNginx, kHaproxy };

inline constexpr size_t kMaxSourceBytes = size_t{4} << 20;

struct ImportOptions {
  // What the other program's name for something known of a request is called here:
  // remote_address -> ip. For all formats.
  std::map<std::string, std::string> attributes;
  bool merge_domains = false;  // of Envoy's files: MERGE_DOMAIN_CONFIG
};

[[nodiscard]] std::string_view ToString(Format format) noexcept;  // envoy
[[nodiscard]] std::optional<Format> ParseFormat(std::string_view name) noexcept;
// By what is in the text; nullopt: it looks like none of them.
[[nodiscard]] std::optional<Format> DetectFormat(std::string_view text);

[[nodiscard]] Result<Imported> Import(std::span<const Source> sources, Format format,
                                      const ImportOptions& options);

// The readers behind it, one a format. They throw Refused.
void ReadEnvoy(std::span<const Source> sources, const ImportOptions& options, Imported& into);
void ReadLimitador(std::span<const Source> sources, const ImportOptions& options, Imported& into);
void ReadNginx(std::span<const Source> sources, const ImportOptions& options, Imported& into);
void ReadHaproxy(std::span<const Source> sources, const ImportOptions& options, Imported& into);

}  // namespace weir::import
