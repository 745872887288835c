// weir bench: how fast does a server answer, and how late when it is asked at a steady rate?
#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/time.h"

#include "apps/weir/bench/load.h"
#include "apps/weir/bench/report.h"
#include "apps/weir/commands.h"
#include "apps/weir/terminal.h"
#include "apps/weir/text.h"

namespace weir::app {
namespace {

// One in each direction would hide what an open loop is for; more than this is a queue of its own.
constexpr size_t kOpenLoopPipeline = 64;
constexpr std::string_view kDefaultBody = "{\"key\":\"{key}\"}";
constexpr Duration kDurationMax = std::chrono::hours(24);

struct BenchFlags {
  std::string target;
  uint64_t rate = 0;
  std::string duration = "10s";
  std::string warmup = "0s";
  std::string timeout = "5s";
  size_t connections = 16;
  size_t pipeline = 0;  // 0: as the mode wants it
  uint64_t keys = 1'000'000;
  double zipf = 0;
  uint64_t seed = 1;
  std::string method;
  std::vector<std::string> headers;
  std::string body;
  std::string command = "CL.THROTTLE {key} 10 100 60";
  bool json = false;
  bool no_color = false;
  bool ascii = false;
};

std::atomic<bool> stop_asked = false;

int Fail(const Error& error) {
  std::fprintf(stderr, "weir bench: %s\n", error.message.c_str());
  return error.code == ErrorCode::kInvalidArgument ? kUsage : kFailure;
}

Result<Duration> ReadTime(const std::string& option, const std::string& text, Duration least) {
  // What turns the warm-up off; the parser knows only times that pass.
  if ((text == "0s" || text == "0ms") && least == Duration::zero()) {
    return Duration::zero();
  }
  auto time = app::ParseDuration(text);
  if (!time || *time < least || *time > kDurationMax) {
    return Error::Invalid(option + ": '" + text + "' is not a time such as 10s or 500ms, from " +
                          app::FormatDuration(least) + " to " + app::FormatDuration(kDurationMax));
  }
  return time;
}

Result<bench::LoadPlan> MakePlan(const BenchFlags& flags) {
  bench::LoadPlan plan;
  auto target = app::Target::Parse(flags.target);
  auto duration = ReadTime("--duration", flags.duration, std::chrono::milliseconds(1));
  auto warmup = ReadTime("--warmup", flags.warmup, Duration::zero());
  auto timeout = ReadTime("--timeout", flags.timeout, std::chrono::milliseconds(1));
  if (!target) {
    return target.error();
  }
  for (const auto* time : {&duration, &warmup, &timeout}) {
    if (!*time) {
      return time->error();
    }
  }
  plan.target = *target;
  plan.command = flags.command;
  plan.rate = flags.rate;
  plan.duration = *duration;
  plan.warmup = *warmup;
  plan.patience = *timeout;
  plan.connections = flags.connections;
  plan.pipeline = flags.pipeline != 0 ? flags.pipeline : flags.rate > 0 ? kOpenLoopPipeline : 1;
  return plan;
}

Result<bench::Message> MakeMessage(const BenchFlags& flags, const app::Target& target,
                                   size_t key_bytes) {
  if (target.protocol == app::Protocol::kResp) {
    return bench::Message::Resp(flags.command, key_bytes);
  }
  const bool has_body = flags.method.empty() || flags.method == "POST";
  const std::string body = flags.body.empty() && has_body ? std::string(kDefaultBody) : flags.body;
  return bench::Message::Http({.method = flags.method.empty() ? "POST" : flags.method,
                               .host = target.authority,
                               .path = target.path,
                               .headers = flags.headers,
                               .body = body},
                              key_bytes);
}

int Bench(const BenchFlags& flags) {
  auto plan = MakePlan(flags);
  if (!plan) {
    return Fail(plan.error());
  }
  const bench::KeySource keys(flags.keys, flags.zipf, flags.seed);
  auto message = MakeMessage(flags, plan->target, keys.key_bytes());
  if (!message) {
    return Fail(message.error());
  }
  stop_asked = false;
  const auto before = std::signal(SIGINT, [](int) { stop_asked = true; });
  bench::Load load(*plan, *message, keys, SystemClock(), stop_asked);
  auto tally = load.Run();
  std::signal(SIGINT, before);
  if (!tally) {
    return Fail(tally.error());
  }
  Terminal terminal = DetectTerminal();
  if (flags.no_color) {
    terminal.colors = Colors::kNone;
  }
  if (flags.ascii) {
    terminal.charset = Charset::kAscii;
  }
  const std::string text =
      flags.json ? bench::Json(*plan, **tally) : bench::Report(*plan, **tally, terminal);
  std::fputs(text.c_str(), stdout);
  if ((*tally)->answers() == (*tally)->count(bench::Answer::kError)) {
    return Fail(
        {ErrorCode::kUnavailable, (*tally)->error().empty()
                                      ? "no answer"
                                      : "no answer but errors, the first: " + (*tally)->error()});
  }
  return std::fflush(stdout) == 0 ? kSuccess : kFailure;
}

void AddPace(CLI::App& command, BenchFlags& flags) {
  command
      .add_option("-r,--rate", flags.rate, "Requests a second, sent on time; 0: closed loop (0)")
      ->check(CLI::Range(uint64_t{0}, uint64_t{10'000'000}))
      ->type_name("N");
  command.add_option("-d,--duration", flags.duration, "How long to send (10s)")->type_name("TIME");
  command.add_option("--warmup", flags.warmup, "Send this long before anything counts (0s)")
      ->type_name("TIME");
  command.add_option("--timeout", flags.timeout, "For connections, and for the last answers (5s)")
      ->type_name("TIME");
  command.add_option("-c,--connections", flags.connections, "Kept open all the time (16)")
      ->check(CLI::Range(1, 10'000))
      ->type_name("N");
  command
      .add_option("-P,--pipeline", flags.pipeline,
                  "Most requests under way on a connection (1; with --rate 64)")
      ->check(CLI::Range(1, 10'000))
      ->type_name("N");
}

void AddRequests(CLI::App& command, BenchFlags& flags) {
  command.add_option("-k,--keys", flags.keys, "Different keys (1000000)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000'000}))
      ->type_name("N");
  command
      .add_option("--zipf", flags.zipf,
                  "Skew: the k-th key comes in proportion to 1/k^S; 0: all alike (0)")
      ->check(CLI::Range(0.0, 10.0))
      ->type_name("S");
  command.add_option("-s,--seed", flags.seed, "Same seed, same keys in the same order (1)")
      ->type_name("N");
  command.add_option("-X,--method", flags.method, "Of HTTP (POST)")->type_name("NAME");
  command.add_option("-H,--header", flags.headers, "Of HTTP, as 'NAME: VALUE'; may be repeated")
      ->allow_extra_args(false)
      ->type_name("FIELD");
  command.add_option("--body", flags.body, "Of HTTP ({\"key\":\"{key}\"} with POST)")
      ->type_name("TEXT");
  command
      .add_option("--command", flags.command, "Of the Redis protocol (CL.THROTTLE {key} 10 100 60)")
      ->type_name("WORDS");
}

}  // namespace

void RegisterBench(CLI::App& app, int& status) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* const command =
      app.add_subcommand("bench", "Measure a server: how fast, and how late at a steady rate");
  command->add_option("target", flags->target, "http://HOST:PORT/PATH or resp://HOST:PORT")
      ->required()
      ->type_name("URL");
  AddPace(*command, *flags);
  AddRequests(*command, *flags);
  command->add_flag("--json", flags->json, "One JSON object instead of the picture");
  command->add_flag("--no-color", flags->no_color, "No colours; NO_COLOR does the same");
  command->add_flag("--ascii", flags->ascii, "No block characters");
  command->footer(
      "\nWith --rate requests leave on time, whatever the answers do, and latency counts from the\n"
      "moment a request should have left: a server that pauses is charged for all that waited.\n"
      "Without it every connection asks again as soon as it is answered: good for the highest\n"
      "throughput, too kind about latency. {key} in the path, a header, the body or the command\n"
      "becomes a key such as key:000042. 429 and limited replies are answers; errors are counted\n"
      "apart. The generator uses one processor: give it one that the server does not use.\n"
      "\nExamples:\n"
      "  weir bench --rate 100000 http://127.0.0.1:8080/v1/check\n"
      "  weir bench -c 50 -P 16 resp://127.0.0.1:6380              the highest throughput\n"
      "  weir bench -r 5000 --zipf 1.1 -d 1min http://127.0.0.1:8080/v1/check \\\n"
      "      --body '{\"attributes\":{\"user\":\"{key}\",\"path\":\"/search\"}}'\n"
      "  weir bench -r 20000 -X GET -H 'X-Api-Key: {key}' http://127.0.0.1/\n"
      "  weir bench -P 16 --command 'INCR {key}' resp://127.0.0.1:6379\n"
      "\nExit status: 0 measured, 1 the server went away or gave no answer but errors, 2 asked "
      "wrongly");
  command->callback([flags, &status] { status = Bench(*flags); });
}

}  // namespace weir::app
