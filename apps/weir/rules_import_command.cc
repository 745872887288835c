// weir rules import: other programs' limits as rules of ours.
#include "apps/weir/rules_import_command.h"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/weir/print.h"
#include "apps/weir/write_file.h"
#include "import/import.h"
#include "import/rule_writer.h"

namespace weir::app {
namespace {

struct ImportFlags {
  std::vector<std::string> files;
  std::string from;
  std::string output;
  std::vector<std::string> attributes;
  bool merge_domains = false;
  bool quiet = false;
};

constexpr const char* kHelp =
    "\nFormats (--from, or by what is in the file):\n"
    "  envoy      envoyproxy/ratelimit's YAML: a descriptor's entries are attributes\n"
    "  limitador  its limits file: conditions in CEL or the older form, variables\n"
    "  nginx      limit_req_zone, limit_req, limit_conn; by server and location\n"
    "  haproxy    stick-table, track-sc, deny by sc_http_req_rate or sc_conn_cur\n"
    "\nThe rules go to standard output (or -o), what became of each limit to standard error and,\n"
    "where something is not as it was, as a comment into the rules:\n"
    "  carried       it decides as it did\n"
    "  approximated  it decides as it did, but for what is told\n"
    "  dropped       it is not in the rules; the reason is told\n"
    "\nExamples:\n"
    "  weir rules import nginx.conf -o rules.yaml        then read it, then: weir rules check\n"
    "  weir rules import --from envoy config/*.yaml > rules.yaml\n"
    "  weir rules import --from envoy --attribute remote_address=client_ip limits.yaml\n"
    "  kubectl get cm limits -o jsonpath='{..data.limits\\.yaml}' | weir rules import -\n"
    "\nExit status: 0 nothing dropped, 1 the input is wrong (with line and column), 2 asked\n"
    "wrongly, 3 something dropped. What is written always passes weir rules check.";

std::optional<import::Source> Read(const std::string& path) {
  if (path == "-") {
    return import::Source{"standard input",
                          std::string(std::istreambuf_iterator<char>(std::cin), {})};
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file.good() && !file.eof()) {
    return std::nullopt;
  }
  return import::Source{path, std::move(text)};
}

int Fail(int status, const std::string& message) {
  std::fprintf(stderr, "weir rules import: %s\n", message.c_str());
  return status;
}

// The format that was asked for, or the one that all files look like.
Result<import::Format> FormatOf(const ImportFlags& flags,
                                const std::vector<import::Source>& sources) {
  if (!flags.from.empty()) {
    return *import::ParseFormat(flags.from);
  }
  std::optional<import::Format> format;
  for (const import::Source& source : sources) {
    const auto one = import::DetectFormat(source.text);
    if (!one) {
      return Error::Invalid(source.name +
                            ": it looks like no format that is known; expected --from envoy, "
                            "limitador, nginx or haproxy");
    }
    if (format.has_value() && format != one) {
      return Error::Invalid(source.name + ": it looks like " + std::string(ToString(*one)) +
                            ", the file before it like " + std::string(ToString(*format)) +
                            "; expected one format, or --from");
    }
    format = one;
  }
  return *format;
}

Result<import::ImportOptions> OptionsOf(const ImportFlags& flags) {
  import::ImportOptions options;
  options.merge_domains = flags.merge_domains;
  for (const std::string& given : flags.attributes) {
    const size_t equals = given.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == given.size()) {
      return Error::Invalid("--attribute: found \"" + given +
                            "\"; expected THEIRS=OURS, as in remote_address=ip");
    }
    options.attributes[given.substr(0, equals)] = given.substr(equals + 1);
  }
  return options;
}

int RunImport(const ImportFlags& flags) {
  const auto options = OptionsOf(flags);
  if (!options) {
    return Fail(kUsage, options.error().message);
  }
  std::vector<import::Source> sources;
  for (const std::string& path : flags.files) {
    auto source = Read(path);
    if (!source) {
      return Fail(kFailure, path + ": it cannot be read");
    }
    sources.push_back(*std::move(source));
  }
  const auto format = FormatOf(flags, sources);
  if (!format) {
    return Fail(kFailure, format.error().message);
  }
  const auto imported = import::Import(sources, *format, *options);
  if (!imported) {
    return Fail(kFailure, imported.error().message);
  }
  const std::string text = import::WriteRules(*imported, ToString(*format));
  if (!flags.output.empty()) {
    if (const auto written = WriteFile(flags.output, text); !written) {
      return Fail(kFailure, written.error().message);
    }
  } else if (const int printed = Print(text); printed != kSuccess) {
    return printed;
  }
  if (!flags.quiet) {
    std::fputs(import::WriteReport(*imported).c_str(), stderr);
  }
  for (const import::Finding& finding : imported->findings) {
    if (finding.carry == import::Carry::kDropped) {
      return kDropped;
    }
  }
  return kSuccess;
}

}  // namespace

void RegisterRulesImport(CLI::App& rules, int& status) {
  auto flags = std::make_shared<ImportFlags>();
  CLI::App* const command = rules.add_subcommand(
      "import", "Make rules of another program's limits, and say what could not be carried over");
  command->add_option("files", flags->files, "What to read; - for standard input")
      ->required()
      ->type_name("FILE...");
  command->add_option("--from", flags->from, "The format, if it is not to be found out")
      ->check(CLI::IsMember({"envoy", "limitador", "nginx", "haproxy"}))
      ->type_name("FORMAT");
  command->add_option("-o,--output", flags->output, "Write the rules there, whole or not at all")
      ->type_name("FILE");
  command
      ->add_option("--attribute", flags->attributes,
                   "What a name of theirs is called here: remote_address=ip")
      ->allow_extra_args(false)
      ->type_name("THEIRS=OURS");
  command->add_flag("--merge-domains", flags->merge_domains,
                    "Envoy's files may share a domain (MERGE_DOMAIN_CONFIG)");
  command->add_flag("-q,--quiet", flags->quiet, "No report; the comments are still there");
  command->footer(kHelp);
  command->callback([flags, &status] { status = RunImport(*flags); });
}

}  // namespace weir::app
