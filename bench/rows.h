// One line of JSON a result, on standard output; bench/report.py makes the table of them.
// `ratio` above 1 always means that weir is better. Beyond the fields that bench/run promises, a
// line carries the medians, for the file under bench/results.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "bench/measure.h"

namespace weir::bench {

enum class Better { kMore, kLess };

struct Row {
  std::string what;
  std::string unit;
  Better better = Better::kMore;
  double ours = 0;
  std::string peer;
  std::optional<double> theirs = std::nullopt;  // none: the peer could not be had
  std::optional<double> bar = std::nullopt;     // none: shown for orientation
  std::optional<double> ours_median = std::nullopt;
  std::optional<double> theirs_median = std::nullopt;
};

class Rows {
 public:
  explicit Rows(std::string suite) : suite_(std::move(suite)) {}

  // REQUIRES: no text in `row` that JSON would need escaped.
  void Print(const Row& row) const {
    std::optional<double> ratio;
    if (row.theirs && row.ours > 0 && *row.theirs > 0) {
      ratio = row.better == Better::kMore ? row.ours / *row.theirs : *row.theirs / row.ours;
    }
    const char* holds = "null";
    if (row.bar && ratio) {
      holds = *ratio >= *row.bar ? "true" : "false";
    }
    std::printf(
        "{\"suite\":\"%s\",\"case\":\"%s\",\"ours\":%s,\"unit\":\"%s\",\"peer\":\"%s\","
        "\"theirs\":%s,\"ratio\":%s,\"bar\":%s,\"holds\":%s,"
        "\"ours_median\":%s,\"theirs_median\":%s}\n",
        suite_.c_str(), row.what.c_str(), Number(row.ours).c_str(), row.unit.c_str(),
        row.peer.c_str(), Number(row.theirs).c_str(), Number(ratio).c_str(),
        Number(row.bar).c_str(), holds, Number(row.ours_median).c_str(),
        Number(row.theirs_median).c_str());
    std::fflush(stdout);
  }

  // Decisions a second of both sides, at their best.
  void PrintBest(const std::string& what, Rate ours, const std::string& peer,
                 const std::optional<Rate>& theirs, double bar) const {
    Row row{.what = what, .unit = "M/s", .ours = ours.best / 1e6, .peer = peer, .bar = bar};
    row.ours_median = ours.median / 1e6;
    if (theirs) {
      row.theirs = theirs->best / 1e6;
      row.theirs_median = theirs->median / 1e6;
    }
    Print(row);
  }

  // Where none is the bar no number divides by it: 1 says that it was kept, 0 that it was not.
  void PrintNone(const std::string& what, double ours) const {
    std::printf(
        "{\"suite\":\"%s\",\"case\":\"%s\",\"ours\":%s,\"unit\":\"\","
        "\"peer\":\"none at all\",\"theirs\":0,\"ratio\":%d,\"bar\":1,\"holds\":%s}\n",
        suite_.c_str(), what.c_str(), Number(ours).c_str(), ours == 0 ? 1 : 0,
        ours == 0 ? "true" : "false");
    std::fflush(stdout);
  }

  void PrintMedian(const std::string& what, Rate ours, const std::string& peer, Rate theirs,
                   double bar) const {
    PrintBest(what, {.best = ours.median, .median = ours.median}, peer,
              Rate{.best = theirs.median, .median = theirs.median}, bar);
  }

 private:
  static std::string Number(std::optional<double> value) {
    if (!value) {
      return "null";
    }
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", *value);
    return text;
  }

  std::string suite_;
};

}  // namespace weir::bench
