#include "import/import.h"

#include <algorithm>
#include <array>
#include <utility>

#include "weir/rule_set.h"

#include "import/finish.h"
#include "import/rule_writer.h"

namespace weir::import {

namespace {

using Reader = void (*)(std::span<const Source>, const ImportOptions&, Imported&);

struct FormatFacts {
  std::string_view name;
  Reader read;
};

// By number.
constexpr std::array<FormatFacts, 4> kFormats = {{{"envoy", ReadEnvoy},
                                                  {"limitador", ReadLimitador},
                                                  {"nginx", ReadNginx},
                                                  {"haproxy", ReadHaproxy}}};

}  // namespace

std::string_view ToString(Format format) noexcept {
  return kFormats[static_cast<size_t>(format)].name;
}

std::optional<Format> ParseFormat(std::string_view name) noexcept {
  for (size_t i = 0; i < kFormats.size(); ++i) {
    if (kFormats[i].name == name) {
      return static_cast<Format>(i);
    }
  }
  return std::nullopt;
}

namespace {

// The first word of a line, without a list's dash.
std::string_view FirstWord(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t-");
  if (begin == std::string_view::npos) {
    return {};
  }
  line.remove_prefix(begin);
  return line.substr(0, line.find_first_of(" \t\r:;{"));
}

struct Hint {
  std::string_view word;
  Format format;
};

// Words that begin a line of one format, and of no other.
constexpr auto kHints = std::to_array<Hint>({{"domain", Format::kEnvoy},
                                             {"descriptors", Format::kEnvoy},
                                             {"namespace", Format::kLimitador},
                                             {"max_value", Format::kLimitador},
                                             {"limit_req_zone", Format::kNginx},
                                             {"limit_conn_zone", Format::kNginx},
                                             {"limit_req", Format::kNginx},
                                             {"http", Format::kNginx},
                                             {"location", Format::kNginx},
                                             {"worker_processes", Format::kNginx},
                                             {"frontend", Format::kHaproxy},
                                             {"backend", Format::kHaproxy},
                                             {"listen", Format::kHaproxy},
                                             {"stick-table", Format::kHaproxy},
                                             {"http-request", Format::kHaproxy},
                                             {"tcp-request", Format::kHaproxy},
                                             {"defaults", Format::kHaproxy}});

}  // namespace

std::optional<Format> DetectFormat(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view word = FirstWord(text.substr(0, end));
    for (const Hint& hint : kHints) {
      if (word == hint.word) {
        return hint.format;
      }
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::nullopt;
}

Result<Imported> Import(std::span<const Source> sources, Format format,
                        const ImportOptions& options) {
  for (const Source& source : sources) {
    if (source.text.size() > kMaxSourceBytes) {
      return Error::Invalid(source.name + ": found " + std::to_string(source.text.size()) +
                            " bytes; the most is " + std::to_string(kMaxSourceBytes));
    }
  }
  Imported imported;
  try {
    kFormats[static_cast<size_t>(format)].read(sources, options, imported);
  } catch (const Refused& refused) {
    return Error::Invalid(refused.place.file.empty()
                              ? refused.message
                              : ToString(refused.place) + ": error: " + refused.message);
  }
  Finish(imported);
  const RuleParse parse = RuleSet::Parse(WriteRules(imported, ToString(format)), "imported rules");
  if (parse.rules == nullptr) {
    return Error::Invalid("the rules that were made of it are refused: " +
                          ToString(parse.issues.front()));
  }
  return imported;
}

}  // namespace weir::import
