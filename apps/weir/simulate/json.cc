#include <string>
#include <string_view>

#include "apps/weir/simulate/report.h"

namespace weir::simulate {
namespace {

// Writes nested objects and arrays; commas are its own business.
class JsonWriter {
 public:
  void Open(char bracket) {
    Comma();
    out_.push_back(bracket);
    first_ = true;
  }

  void Close(char bracket) {
    out_.push_back(bracket);
    first_ = false;
  }

  void Name(std::string_view name) {
    Comma();
    Quote(name);
    out_.push_back(':');
    first_ = true;
  }

  void Text(std::string_view text) {
    Comma();
    Quote(text);
  }

  void Number(uint64_t value) {
    Comma();
    out_.append(std::to_string(value));
  }

  void Field(std::string_view name, std::string_view text) {
    Name(name);
    Text(text);
  }

  void Field(std::string_view name, uint64_t value) {
    Name(name);
    Number(value);
  }

  // Four decimals, by integers alone.
  void Ratio(std::string_view name, uint64_t part, uint64_t whole) {
    Name(name);
    Comma();
    const uint64_t scaled = (part * 10000 + whole / 2) / whole;
    std::string fraction = std::to_string(scaled % 10000);
    fraction.insert(0, 4 - fraction.size(), '0');
    out_.append(std::to_string(scaled / 10000)).append(".").append(fraction);
  }

  void Numbers(std::string_view name, const std::vector<uint64_t>& values) {
    Name(name);
    Open('[');
    for (const uint64_t value : values) Number(value);
    Close(']');
  }

  std::string Take() { return std::move(out_); }

 private:
  void Comma() {
    if (!first_)
      out_.push_back(',');
    first_ = false;
  }

  void Quote(std::string_view text) {
    out_.push_back('"');
    for (const char c : text) {
      if (c == '"' || c == '\\')
        out_.push_back('\\');
      // A file may be called anything; a control character here would not be JSON.
      out_.push_back(static_cast<unsigned char>(c) < ' ' ? '?' : c);
    }
    out_.push_back('"');
  }

  std::string out_;
  bool first_ = true;
};

uint64_t Ns(Duration duration) {
  return static_cast<uint64_t>(duration.count());
}

void WriteScore(JsonWriter& json, const Tour& tour, const Contender& contender,
                const Score& score) {
  const auto limit = static_cast<uint64_t>(tour.plan.limit.limit);
  json.Open('{');
  json.Field("algorithm", contender.name());
  json.Field("quota", contender.quota().ToString());
  json.Field("admitted", score.admitted);
  json.Field("denied", score.denied);
  json.Field("worst_window", score.worst_window);
  json.Ratio("worst_ratio", score.worst_window, limit);
  json.Field("worst_possible", contender.WorstPossible(tour.LargestCost()));
  json.Field("false_allow", score.wrong.false_allow);
  json.Field("false_deny", score.wrong.false_deny);
  json.Field("at_once", score.at_once);
  json.Field("differ", score.differ);
  json.Ratio("bytes_per_key", contender.DecibytesPerKey(), 10);
  if (contender.Delays()) {
    json.Field("wait_mean_ns", Ns(score.waits.mean));
    json.Field("wait_p99_ns", Ns(score.waits.p99));
    json.Field("wait_longest_ns", Ns(score.waits.longest));
  }
  json.Numbers("admitted_over_time", score.admitted_bins);
  json.Numbers("window_over_time", score.window_bins);
  json.Close('}');
}

}  // namespace

std::string Json(const Tour& tour) {
  const TourPlan& plan = tour.plan;
  JsonWriter json;
  json.Open('{');
  json.Field("limit", static_cast<uint64_t>(plan.limit.limit));
  json.Field("window_ns", Ns(plan.limit.window));
  json.Field("duration_ns", Ns(plan.spec.duration));
  if (!plan.trace)
    json.Ratio("rate", static_cast<uint64_t>(plan.spec.rate_milli), 1000);
  json.Field("seed", plan.spec.seed);
  json.Name("runs");
  json.Open('[');
  for (const Stage& stage : tour.stages) {
    json.Open('{');
    json.Field("traffic", stage.name);
    json.Field("keys", stage.keys);
    json.Field("offered", stage.offered);
    json.Field("offered_units", stage.units);
    json.Numbers("offered_over_time", stage.offered_bins);
    json.Name("results");
    json.Open('[');
    for (size_t i = 0; i < stage.scores.size(); ++i) {
      WriteScore(json, tour, plan.contenders[i], stage.scores[i]);
    }
    json.Close(']');
    json.Close('}');
  }
  json.Close(']');
  json.Close('}');
  return json.Take() + "\n";
}

}  // namespace weir::simulate
