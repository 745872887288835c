// weir simulate: a tour that answers "which algorithm should I pick?".
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "apps/weir/commands.h"
#include "apps/weir/simulate/options.h"
#include "apps/weir/simulate/report.h"
#include "apps/weir/terminal.h"

namespace weir::app {
namespace {

struct SimulateFlags {
  simulate::RawOptions raw;
  bool no_color = false;
  bool ascii = false;
  bool json = false;
  bool list = false;
};

int Fail(const Error& error) {
  std::fprintf(stderr, "weir simulate: %s\n", error.message.c_str());
  return error.code == ErrorCode::kInvalidArgument ? kUsage : kFailure;
}

int Print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  return written && std::fflush(stdout) == 0 ? kSuccess : kFailure;
}

int Simulate(const SimulateFlags& flags) {
  Terminal terminal = DetectTerminal();
  if (flags.no_color)
    terminal.colors = Colors::kNone;
  if (flags.ascii)
    terminal.charset = Charset::kAscii;
  if (flags.list)
    return Print(simulate::Catalogue(terminal));

  // What a program reads must not depend on the terminal it was started in.
  auto width = simulate::ChooseWidth(flags.raw, flags.json ? Terminal{}.width : terminal.width);
  if (!width)
    return Fail(width.error());
  terminal.width = *width;
  auto plan = simulate::MakePlan(flags.raw);
  if (!plan)
    return Fail(plan.error());
  plan->bins = simulate::PictureColumns(terminal.width, plan->spec.duration, plan->limit.window);
  auto tour = simulate::RunTour(*std::move(plan));
  if (!tour)
    return Fail(tour.error());
  return Print(flags.json ? simulate::Json(*tour) : simulate::Report(*tour, terminal));
}

}  // namespace

void RegisterSimulate(CLI::App& app, int& status) {
  auto flags = std::make_shared<SimulateFlags>();
  CLI::App* command =
      app.add_subcommand("simulate", "Show what each algorithm does to traffic, side by side");
  command
      ->add_option("-a,--algorithm", flags->raw.algorithms,
                   "Algorithms, or all; a bucket may name its burst: token-bucket:20")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME,...");
  command->add_option("-t,--traffic,traffic", flags->raw.traffic, "Traffic, or all (the default)")
      ->delimiter(',')
      ->type_name("NAME,...");
  command->add_option("-l,--limit", flags->raw.limit, "The limit (100/min)")->type_name("QUOTA");
  command->add_option("-b,--burst", flags->raw.burst, "Burst of the buckets (the limit)")
      ->type_name("N");
  command->add_option("-d,--duration", flags->raw.duration, "How long each run is (4 windows)")
      ->type_name("TIME");
  command->add_option("-r,--rate", flags->raw.rate, "Offered, as a multiple of the limit (1.5)")
      ->type_name("X");
  command->add_option("-s,--seed", flags->raw.seed, "Same seed, same traffic (1)")->type_name("N");
  command->add_option("-w,--width", flags->raw.width, "Columns (those of the terminal)")
      ->type_name("N");
  command->add_flag("--no-color", flags->no_color, "No colours; NO_COLOR does the same");
  command->add_flag("--ascii", flags->ascii, "No block characters");
  command->add_flag("--json", flags->json, "One JSON object instead of the pictures");
  command->add_flag("--list", flags->list, "Explain every algorithm and traffic in a line");
  command->footer(
      "\nExamples:\n"
      "  weir simulate -l 5000/h -a all -t edge\n"
      "  weir simulate -l 10/s -a token-bucket:5,token-bucket:10,min-gap -t poisson -r 0.9");
  command->callback([flags, &status] { status = Simulate(*flags); });
}

}  // namespace weir::app
