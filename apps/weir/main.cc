// The one binary. Each command lives in a file of its own and adds itself below.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "weir/version.h"

#include "apps/weir/commands.h"
#include "apps/weir/suggest.h"

namespace {

// The command that was named before parsing failed, or the program itself.
const CLI::App& Chosen(const CLI::App& app) {
  const std::vector<CLI::App*> commands = app.get_subcommands();
  return commands.empty() ? app : Chosen(*commands.front());
}

// What to say about a word that is none of ours.
std::string Unknown(const CLI::App& command, const std::string& word) {
  std::vector<std::string> names;
  const bool is_option = word.starts_with("-");
  if (is_option) {
    for (const CLI::Option* option : command.get_options()) {
      for (const std::string& name : option->get_lnames()) {
        names.push_back("--" + name);
      }
    }
  } else {
    for (const CLI::App* below : command.get_subcommands({})) {
      names.push_back(below->get_name());
    }
  }
  if (names.empty()) {
    return "unexpected argument '" + word + "'";
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  return weir::app::UnknownName(is_option ? "option" : "command", word.substr(0, word.find('=')),
                                known);
}

int Refuse(const CLI::App& app, const std::string& problem) {
  std::string command = "weir";
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    command += " " + at->get_name();
  }
  std::fprintf(stderr, "%s: %s\nSee %s --help\n", command.c_str(), problem.c_str(),
               command.c_str());
  return weir::app::kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  int status = weir::app::kSuccess;
  CLI::App app("weir: a rate limiter", "weir");
  app.set_version_flag("--version", std::string(weir::kVersion));
#ifdef WEIR_HAS_SERVER
  weir::app::RegisterBench(app, status);
  weir::app::RegisterServe(app, status);
  weir::app::RegisterTop(app, status);
#endif
  weir::app::RegisterSimulate(app, status);
#if WEIR_HAS_RULES
  weir::app::RegisterRules(app, status);
  weir::app::RegisterExplain(app, status);
#endif
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ExtrasError&) {
    return Refuse(app, Unknown(Chosen(app), app.remaining(true).front()));
  } catch (const CLI::ParseError& error) {
    return Refuse(app, error.what());
  }
  if (app.get_subcommands().empty()) {
    std::fputs(app.help().c_str(), stdout);
  }
  return status;
}
