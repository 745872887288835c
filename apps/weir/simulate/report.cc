#include "apps/weir/simulate/report.h"

#include <algorithm>
#include <string_view>

#include "apps/weir/simulate/advice.h"
#include "apps/weir/simulate/plot.h"
#include "apps/weir/text.h"

namespace weir::simulate {

using app::Columns;
using app::FormatDuration;
using app::FormatPercent;
using app::FormatRatio;
using app::FormatTenths;
using app::PadLeft;
using app::PadRight;
using app::Repeat;
using app::Wrap;
namespace {

using app::Ink;
using app::Paint;
using app::Terminal;

// A row: margin, name, picture, counts, gauge and ratio.
constexpr size_t kMargin = 1;
constexpr size_t kName = 16;
constexpr size_t kCount = 8;
constexpr size_t kGaugeHalf = 5;
constexpr size_t kGauge = 2 * kGaugeHalf + 1 + 6;
constexpr size_t kSpace = 2;
constexpr size_t kBarRows = 2;

// The tables at the end.
constexpr size_t kLongName = 18;  // more if a burst of many digits is part of a name
constexpr size_t kWorst = 18;
constexpr size_t kGoal = 37;
constexpr size_t kPromise = 23;

class Writer {
 public:
  Writer(const Tour& tour, const Terminal& terminal)
      : tour_(tour), plan_(tour.plan), terminal_(terminal) {
    for (const Contender& contender : plan_.contenders) {
      long_name_ = std::max(long_name_, contender.name().size() + kSpace);
    }
  }

  std::string Write() {
    Opening();
    for (const Stage& stage : tour_.stages) Show(stage);
    if (tour_.stages.size() > 1)
      Together();
    Picks();
    Promises();
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::string Tint(Ink ink, std::string_view text) const {
    return Paint(terminal_, ink, text);
  }

  // A row of the left column and what follows it; trailing blanks are cut.
  void Line(std::string_view text) {
    std::string line = std::string(kMargin, ' ').append(text);
    line.erase(line.find_last_not_of(' ') + 1);
    out_.append(line).push_back('\n');
  }

  // A heading with a rule up to the right edge and a note at its end.
  void Heading(std::string_view title, std::string_view rest, std::string_view note) {
    const std::string_view rule = terminal_.utf8() ? "─" : "-";
    const std::string after = rest.empty() ? " " : "  " + std::string(rest) + " ";
    const size_t used = Columns(title) + Columns(after) + Columns(note) + 1;
    const size_t room = terminal_.width - 2 * kMargin;
    out_.push_back('\n');
    Line(Tint(Ink::kBold, title) +
         Tint(Ink::kDim,
              after + Repeat(rule, used < room ? room - used : 1) + " " + std::string(note)));
  }

  // How the pictures show what was denied.
  [[nodiscard]] std::string Denied() const {
    if (!terminal_.utf8())
      return Tint(Ink::kBad, ":");
    const bool colors = terminal_.colors != app::Colors::kNone;
    return Tint(Ink::kMuted, colors ? "█" : "░");
  }

  // A worst window: within the limit, over it, far over it.
  [[nodiscard]] std::string Ratio(uint64_t worst) const {
    const auto limit = static_cast<uint64_t>(plan_.limit.limit);
    const Ink ink = worst <= limit ? Ink::kGood : 2 * worst <= 3 * limit ? Ink::kWarn : Ink::kBad;
    return Tint(ink, FormatRatio(worst, limit));
  }

  // Prose, broken at the right edge, with what follows the first line set in by two.
  void Prose(std::string_view lead, std::string_view text, Ink ink) {
    const size_t room = terminal_.width - 2 * kMargin - Columns(lead);
    std::string start(lead);
    for (const std::string& line : Wrap(text, room)) {
      Line(Tint(Ink::kWarn, start) + Tint(ink, line));
      start.assign(Columns(lead), ' ');
    }
  }

  void Opening() {
    const std::string window = FormatDuration(plan_.limit.window);
    const bool utf8 = terminal_.utf8();
    const std::string dot = utf8 ? " · " : ", ";
    out_.push_back('\n');
    Line(Tint(Ink::kBold, "weir simulate") + "   limit " + std::to_string(plan_.limit.limit) +
         " per " + window + dot + Offered(tour_) + dot + "seed " + std::to_string(plan_.spec.seed));
    out_.push_back('\n');
    const std::string mark = utf8 ? "┃" : "|";
    Line(Tint(Ink::kGood, utf8 ? "█" : "#") + " admitted  " + Denied() + " denied  " +
         Tint(Ink::kGood, utf8 ? "━━" : "==") + mark + Tint(Ink::kBad, utf8 ? "━━" : "==") +
         " most admitted in any " + window + ", " + mark + " is the limit");
    Prose("", "false allow: admitted although the last " + window + " already held the limit",
          Ink::kDim);
    Prose("", "false deny: denied although it had room; the judge is an exact log", Ink::kDim);
  }

  void Show(const Stage& stage) {
    Heading(stage.name, stage.line, std::to_string(stage.offered) + " requests");
    const uint64_t peak = *std::max_element(stage.offered_bins.begin(), stage.offered_bins.end());
    const std::string gap(kSpace, ' ');
    Line(PadRight("", kName) +
         Axis(terminal_, plan_.spec.duration, plan_.limit.window, plan_.bins) + gap +
         Tint(Ink::kDim, PadLeft("admitted", kCount) + gap + "worst window"));
    Line(PadRight("offered", kName) + Sparkline(terminal_, Ink::kAccent, stage.offered_bins, peak) +
         gap + Tint(Ink::kDim, PadLeft("denied", kCount) + gap + "false allow/deny"));
    for (size_t i = 0; i < stage.scores.size(); ++i) {
      Show(plan_.contenders[i], stage.scores[i], stage, peak);
    }
    Prose(terminal_.utf8() ? "▸ " : "> ", Remark(tour_, stage), Ink::kPlain);
  }

  void Show(const Contender& contender, const Score& score, const Stage& stage, uint64_t peak) {
    const auto limit = static_cast<uint64_t>(plan_.limit.limit);
    const auto bars =
        StackedBars(terminal_, score.admitted_bins, stage.offered_bins, peak, kBarRows);
    const std::string gap(kSpace, ' ');
    Line(Tint(Ink::kBold, PadRight(contender.kind().name, kName)) + bars[0] + gap +
         PadLeft(std::to_string(score.admitted), kCount) + gap +
         Gauge(terminal_, score.worst_window, limit, kGaugeHalf) + " " + Ratio(score.worst_window));
    Line(Tint(Ink::kDim, PadRight(contender.Setting(), kName)) + bars[1] + gap +
         PadLeft(std::to_string(score.denied), kCount) + gap +
         std::to_string(score.wrong.false_allow) + " / " + std::to_string(score.wrong.false_deny));
    for (const std::string& line : Details(tour_, contender, score))
      Line(PadRight("", kName) + Tint(Ink::kDim, line));
  }

  void Together() {
    const auto limit = static_cast<uint64_t>(plan_.limit.limit);
    Heading("All of it together", "", std::to_string(tour_.totals.front().offered) + " requests");
    Line(Tint(Ink::kDim, PadRight("", long_name_) + PadRight("worst window", kWorst) +
                             PadLeft("admitted", 9) + PadLeft("false allow", 13) +
                             PadLeft("false deny", 12)));
    for (size_t i = 0; i < tour_.totals.size(); ++i) {
      const Total& total = tour_.totals[i];
      const std::string ratio = FormatRatio(total.worst_window, limit);
      const std::string where = " on " + tour_.stages[total.worst_stage].name;
      Line(Tint(Ink::kBold, PadRight(plan_.contenders[i].name(), long_name_)) +
           Ratio(total.worst_window) + PadRight(where, kWorst - Columns(ratio)) +
           PadLeft(FormatPercent(total.admitted, total.offered), 9) +
           PadLeft(FormatPercent(total.wrong.false_allow, total.offered), 13) +
           PadLeft(FormatPercent(total.wrong.false_deny, total.offered), 12));
    }
  }

  void Picks() {
    const std::vector<Advice> advice = Advise(tour_);
    if (advice.empty())
      return;
    Heading("Which one should I pick?", "", "by the numbers above");
    Line(
        Tint(Ink::kDim, PadRight("if you want", kGoal) + PadRight("pick", long_name_) + "because"));
    for (const Advice& a : advice) {
      Line(PadRight(a.goal, kGoal) +
           Tint(Ink::kGood, PadRight(plan_.contenders[a.contender].name(), long_name_)) +
           a.because);
    }
  }

  void Promises() {
    const auto limit = static_cast<uint64_t>(plan_.limit.limit);
    Heading("What each promises", "in any " + FormatDuration(plan_.limit.window),
            "L limit, B burst, W window, S work");
    Line(Tint(Ink::kDim, PadRight("", long_name_) + PadRight("at most", 23) +
                             PadRight("keeps to", kPromise - 5) + "bytes a key"));
    for (const Contender& c : plan_.contenders) {
      const uint64_t worst = c.WorstPossible(tour_.LargestCost());
      const std::string bound = std::string(c.kind().formula) + " = " + std::to_string(worst);
      Line(Tint(Ink::kBold, PadRight(c.name(), long_name_)) +
           PadRight(FormatRatio(worst, limit) + "  ", 7) + PadRight(bound + " ", 16) +
           Tint(Ink::kDim, PadRight(c.kind().promise, kPromise)) +
           PadLeft(FormatTenths(c.DecibytesPerKey()), 6));
    }
    out_.push_back('\n');
    Prose("", "weir simulate --list explains algorithms and traffic, --help the options",
          Ink::kDim);
    out_.push_back('\n');
  }

  const Tour& tour_;
  const TourPlan& plan_;
  const Terminal& terminal_;
  size_t long_name_ = kLongName;
  std::string out_;
};

}  // namespace

size_t PictureColumns(size_t width, Duration duration, Duration window) {
  const size_t taken = 2 * kMargin + kName + kSpace + kCount + kSpace + kGauge;
  return PlotColumns(width - taken, duration, window);
}

std::string Report(const Tour& tour, const Terminal& terminal) {
  return Writer(tour, terminal).Write();
}

std::string Catalogue(const Terminal& terminal) {
  std::string out = Paint(terminal, Ink::kBold, "Algorithms") + "\n";
  for (const KindInfo& kind : AllKinds()) {
    out += "  " + PadRight(kind.name, kName) + std::string(kind.line) + "\n";
  }
  out += "\n" + Paint(terminal, Ink::kBold, "Traffic") + "\n";
  for (const TrafficInfo& traffic : AllTraffic()) {
    out += "  " + PadRight(traffic.name, kName) + std::string(traffic.line) + "\n";
  }
  out += "\nA bucket may name its own burst: -a token-bucket:20,token-bucket:100\n";
  out += "and concurrency how many may be at work at once: -a concurrency:8 --service 50ms-2s\n";
  return out;
}

}  // namespace weir::simulate
