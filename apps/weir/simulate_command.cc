// weir simulate: a tour that answers "which algorithm should I pick?".
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "apps/weir/commands.h"
#include "apps/weir/print.h"
#include "apps/weir/simulate/html.h"
#include "apps/weir/simulate/options.h"
#include "apps/weir/simulate/plot.h"
#include "apps/weir/simulate/report.h"
#include "apps/weir/terminal.h"
#include "apps/weir/write_file.h"

namespace weir::app {
namespace {

struct SimulateFlags {
  simulate::RawOptions raw;
  std::string html;
  bool no_color = false;
  bool ascii = false;
  bool json = false;
  bool list = false;
};

int Fail(const Error& error) {
  std::fprintf(stderr, "weir simulate: %s\n", error.message.c_str());
  return error.code == ErrorCode::kInvalidArgument ? kUsage : kFailure;
}

// On a terminal only: in a log it would be noise.
void ShowProgress(uint64_t lines) {
  if (isatty(STDERR_FILENO) != 0)
    std::fprintf(stderr, "read %s million lines\n", std::to_string(lines / 1'000'000).c_str());
}

int WriteHtml(const simulate::Tour& tour, const std::string& path) {
  const std::string page = simulate::Html(tour);
  if (auto written = WriteFile(path, page); !written)
    return Fail({written.error().code, "--html: " + written.error().message});
  return Print("wrote " + path + " (" + std::to_string(page.size() / 1024) +
               " KiB): open it in a browser\n");
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
  auto plan = simulate::MakePlan(flags.raw, ShowProgress);
  if (!plan)
    return Fail(plan.error());
  const Duration duration = plan->spec.duration;
  const Duration window = plan->limit.window;
  plan->bins = flags.html.empty() ? simulate::PictureColumns(terminal.width, duration, window)
                                  : simulate::PlotColumns(simulate::kHtmlBins, duration, window);
  auto tour = simulate::RunTour(*std::move(plan));
  if (!tour)
    return Fail(tour.error());
  if (!flags.html.empty())
    return WriteHtml(*tour, flags.html);
  return Print(flags.json ? simulate::Json(*tour) : simulate::Report(*tour, terminal));
}

}  // namespace

void RegisterSimulate(CLI::App& app, int& status) {
  auto flags = std::make_shared<SimulateFlags>();
  CLI::App* command =
      app.add_subcommand("simulate", "Show what each algorithm does to traffic, side by side");
  command
      ->add_option("-a,--algorithm", flags->raw.algorithms,
                   "Algorithms, or all; a bucket may name its burst: token-bucket:20; concurrency "
                   "how many at "
                   "once: concurrency:8")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME,...");
  command->add_option("-t,--traffic,traffic", flags->raw.traffic, "Traffic, or all (the default)")
      ->delimiter(',')
      ->type_name("NAME,...");
  command
      ->add_option("--trace", flags->raw.trace,
                   "Recorded traffic instead: lines of 'seconds [key] [cost]', or a heading")
      ->type_name("FILE");
  command
      ->add_option("-c,--cost", flags->raw.cost,
                   "Units a request costs, or a range of them: 5, 1-10 (1, or the trace's own)")
      ->type_name("N[-M]");
  command
      ->add_option("--service", flags->raw.service,
                   "How long a request is at work, or a range: 200ms, 50ms-2s (about a tenth of "
                   "the window, or the trace's own)")
      ->type_name("TIME[-TIME]");
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
  CLI::Option* const json =
      command->add_flag("--json", flags->json, "One JSON object instead of the pictures");
  command->add_option("--html", flags->html, "Write a page with plots, for a browser")
      ->type_name("FILE")
      ->excludes(json);
  command->add_flag("--list", flags->list, "Explain every algorithm and traffic in a line");
  command->footer(
      "\nSends traffic through real limiters and counts, against an exact log, what each admits\n"
      "wrongly, denies wrongly, lets through in its fullest window and takes in memory.\n"
      "\nExamples:\n"
      "  weir simulate                                     a tour: 100/min, five kinds of traffic\n"
      "  weir simulate -l 5000/h -a all -t edge            the worst case of every algorithm\n"
      "  weir simulate -l 10/s -a token-bucket:5,min-gap -t poisson -r 0.9\n"
      "  weir simulate -l 1000/min -c 1-50 --html out.html costs; a page to show to a colleague\n"
      "  weir simulate -l 60/min --trace access.txt        your own traffic, key by key\n"
      "  weir simulate -a concurrency:8,token-bucket --service 50ms-2s  how many are at work at "
      "once\n"
      "\nA trace is text, in order of time; # begins a comment:\n"
      "  0.000 alice        seconds, key\n"
      "  0.250 bob 12       seconds, key, cost\n"
      "Commas or tabs do, too. A first line may name columns: t_ms,client,path,cost");
  command->callback([flags, &status] { status = Simulate(*flags); });
}

}  // namespace weir::app
