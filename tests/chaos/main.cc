// weir_chaos: runs faults on a real Redis Cluster under load and prints what was asked of weir,
// what was measured, and whether that passes. `./dev chaos` builds and starts it.
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/chaos/row.h"

namespace weir::chaos {

void Report::Expect(std::string asked, std::string measured, bool holds) {
  Progress((holds ? "pass: " : "MISS: ") + asked + ": " + measured);
  findings_.push_back({std::move(asked), std::move(measured),
                       holds ? Finding::Verdict::kPass : Finding::Verdict::kMiss});
}

void Report::ExpectTime(std::string asked, std::string measured, bool holds) {
  if (options_.counts) {
    Show(std::move(asked), std::move(measured));
  } else {
    Expect(std::move(asked), std::move(measured), holds);
  }
}

void Report::Show(std::string what, std::string measured) {
  Progress(what + ": " + measured);
  findings_.push_back({std::move(what), std::move(measured), Finding::Verdict::kShown});
}

void Report::Progress(const std::string& what) const {
  std::fprintf(stderr, "    %s\n", what.c_str());
}

bool Report::missed() const noexcept {
  for (const Finding& finding : findings_) {
    if (finding.verdict == Finding::Verdict::kMiss) {
      return true;
    }
  }
  return false;
}

std::string Ms(int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f ms", static_cast<double>(ns) / kMs);
  return text;
}

std::string Text(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3) {
    text.insert(at - 3, ",");
  }
  return text;
}

const std::vector<Row>& Rows() {
  static const std::vector<Row> rows = {
      {"silent-master", "SIGSTOP one master", SilentMaster},
      {"script-flush", "SCRIPT FLUSH on all nodes every 100 ms", ScriptFlush},
      {"lost-replies", "5 % of replies lost after commit, 1 % delayed 1-3x the deadline",
       LostReplies},
      {"killed-master", "kill -9 a master, again and again", KilledMaster},
      {"reshard", "reshard 1000 slots back and forth", Reshard},
      {"flapping", "Redis up 1 s, down 1 s", Flapping},
      {"gone", "all of Redis gone, 10x load, rule local, 3 nodes", Gone},
      {"skewed-clocks", "3 nodes with clocks +-5 s", SkewedClocks},
      {"crowd", "100 concurrent clients, 3 nodes, limit 100, 10,000 requests", Crowded},
      {"policies", "restarted empty, password changed, ACL without EVALSHA, maxmemory hit",
       Policies},
  };
  return rows;
}

namespace {

constexpr const char* kHelp =
    R"(usage: ./dev chaos [row...] [--quick] [--counts] [--list] [--help]

Runs faults on a Redis Cluster of 3 masters and 3 replicas that it starts by itself, with three weir
nodes under load, and prints a table: the fault, what is asked, what was measured, pass or MISS.
A row takes one to three minutes; progress goes to standard error, the table to standard output.
Without a name all rows run. The last line of a row is what a probe saw of the machine meanwhile: a
thread on each processor that wakes every millisecond and notes when it was kept waiting.

  --quick   shorter faults and fewer rounds: a few minutes for all rows
  --counts  times are shown and not judged, for a machine that is busy with other things
  --list    the rows by name
  --help    this

Exit code: 0 all passed, 1 a row missed, 2 it could not be run.
)";

// Longer than any deadline of ours: what then times out is not weir's doing.
constexpr int64_t kTooBusy = 50 * kMs;

void PrintCell(std::string text) {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) {
    text.insert(at, "\\");  // it would begin the next cell
  }
  std::printf(" %s |", text.c_str());
}

void PrintRow(const Row& row, const Report& report, const Probe::Summary& machine) {
  std::string first = std::string(row.name) + ": " + std::string(row.fault);
  for (const Finding& finding : report.findings()) {
    std::printf("|");
    PrintCell(std::exchange(first, ""));
    PrintCell(finding.asked);
    PrintCell(finding.measured);
    PrintCell(finding.verdict == Finding::Verdict::kPass   ? "pass"
              : finding.verdict == Finding::Verdict::kMiss ? "**MISS**"
                                                           : "");
    std::printf("\n");
  }
  std::printf("| | the machine meanwhile | %s stalls over 5 ms, the longest %s%s | |\n",
              Text(machine.stalls).c_str(), Ms(machine.longest_ns).c_str(),
              machine.longest_ns > kTooBusy ? ": too busy for times to tell much" : "");
}

int Main(int argc, char** argv) {
  Report::Options options;
  std::vector<const Row*> chosen;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help" || word == "-h") {
      std::fputs(kHelp, stdout);
      return 0;
    }
    if (word == "--list") {
      for (const Row& row : Rows()) {
        std::printf("%-14s %s\n", std::string(row.name).c_str(), std::string(row.fault).c_str());
      }
      return 0;
    }
    if (word == "--quick") {
      options.quick = true;
    } else if (word == "--counts") {
      options.counts = true;
    } else {
      const Row* found = nullptr;
      std::string names;
      for (const Row& row : Rows()) {
        found = row.name == word ? &row : found;
        names += " " + std::string(row.name);
      }
      if (found == nullptr) {
        std::fprintf(stderr,
                     "chaos: no %s '%s'; expected --quick, --counts, --list, --help or one of%s\n",
                     word.starts_with("-") ? "option" : "row", argv[i], names.c_str());
        return 2;
      }
      chosen.push_back(found);
    }
  }
  if (chosen.empty()) {
    for (const Row& row : Rows()) {
      chosen.push_back(&row);
    }
  }
  Probe probe;
  std::vector<std::pair<Report, Probe::Summary>> done;
  bool missed = false;
  for (size_t i = 0; i < chosen.size(); ++i) {
    std::fprintf(stderr, "[%zu/%zu] %s: %s\n", i + 1, chosen.size(),
                 std::string(chosen[i]->name).c_str(), std::string(chosen[i]->fault).c_str());
    Report report(options);
    probe.Clear();
    chosen[i]->run(report, probe);
    missed = missed || report.missed();
    done.emplace_back(std::move(report), probe.Sum());
  }
  std::printf("| fault | asked | measured | |\n|---|---|---|---|\n");
  for (size_t i = 0; i < chosen.size(); ++i) {
    PrintRow(*chosen[i], done[i].first, done[i].second);
  }
  return missed ? 1 : 0;
}

}  // namespace
}  // namespace weir::chaos

int main(int argc, char** argv) {
  return weir::chaos::Main(argc, argv);
}
