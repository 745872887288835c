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
  return commands.empty() ? app : *commands.front();
}

// A hint for the first word that is none of ours.
std::string Hint(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    word = word.substr(0, word.find('='));
    if (word == app.get_name() || app.get_option_no_throw(std::string(word)) != nullptr)
      continue;
    if (const auto nearest = weir::app::Nearest(word, known)) {
      return "Did you mean " + std::string(*nearest) + "?";
    }
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  int status = weir::app::kSuccess;
  CLI::App app("weir: a rate limiter", "weir");
  app.set_version_flag("--version", std::string(weir::kVersion));
  weir::app::RegisterSimulate(app, status);
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty())
      std::fputs(app.help().c_str(), stdout);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    const CLI::App& chosen = Chosen(app);
    const std::string hint = Hint(chosen, argc, argv);
    const std::string command = &chosen == &app ? "weir" : "weir " + chosen.get_name();
    std::fprintf(stderr, "%s: %s%s%s\nSee %s --help\n", command.c_str(), error.what(),
                 hint.empty() ? "" : "\n", hint.c_str(), command.c_str());
    return weir::app::kUsage;
  }
  return status;
}
