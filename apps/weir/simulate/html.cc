#include "apps/weir/simulate/html.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "apps/weir/simulate/advice.h"
#include "apps/weir/text.h"

namespace weir::simulate {

using app::FormatAbout;
using app::FormatDuration;
using app::FormatPercent;
using app::FormatRatio;
using app::FormatTenths;
using app::ParseDuration;
namespace {

// A chart's drawing plane; the script knows its width and both margins.
constexpr uint64_t kWidth = 400;
constexpr uint64_t kHeight = 96;
constexpr uint64_t kLeft = 34;
constexpr uint64_t kRight = 396;
constexpr uint64_t kTop = 8;
constexpr uint64_t kBottom = 76;

std::string Attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + EscapeHtml(value) + "\"";
}

std::string Joined(const std::vector<uint64_t>& values) {
  std::string out;
  for (const uint64_t value : values) out += (out.empty() ? "" : " ") + std::to_string(value);
  return out;
}

uint64_t Peak(const std::vector<uint64_t>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

// "1,234,567".
std::string Grouped(uint64_t value) {
  std::string out = std::to_string(value);
  for (size_t i = out.size(); i > 3; i -= 3) out.insert(i - 3, 1, ',');
  return out;
}

// A number that fits beside an axis.
std::string Short(uint64_t value) {
  if (value < 10'000)
    return std::to_string(value);
  return value < 10'000'000 ? std::to_string(value / 1000) + "k"
                            : std::to_string(value / 1'000'000) + "M";
}

// What a unit is called: without costs it is a request.
std::string UnitName(const Stage& stage) {
  return stage.largest_cost == 1 ? "requests" : "units";
}

// From 0 at the bottom to `peak` at the top, in tenths of a pixel. Through double: sums of costs
// times pixels need not fit into 64 bits, and nothing finer is seen.
uint64_t Y(uint64_t value, uint64_t peak) {
  const double part = peak == 0 ? 0 : static_cast<double>(value) / static_cast<double>(peak);
  return kBottom * 10 - static_cast<uint64_t>(static_cast<double>(kBottom - kTop) * 10 * part);
}

uint64_t X(size_t part, size_t parts) {
  return kLeft * 10 + (kRight - kLeft) * 10 * part / parts;
}

// Steps from `low` up to `values`, cut where low is the higher one.
std::string Area(const std::vector<uint64_t>& values, uint64_t low, uint64_t peak,
                 std::string_view style) {
  std::string path = "M" + FormatTenths(X(0, 1)) + " " + FormatTenths(Y(low, peak));
  for (size_t i = 0; i < values.size(); ++i) {
    path += "V" + FormatTenths(Y(std::max(values[i], low), peak)) + "H" +
            FormatTenths(X(i + 1, values.size()));
  }
  return "<path class=\"" + std::string(style) + "\" d=\"" + path + "V" +
         FormatTenths(Y(low, peak)) + "Z\"/>";
}

std::string Label(uint64_t x10, uint64_t y10, std::string_view anchor, const std::string& text) {
  return "<text x=\"" + FormatTenths(x10) + "\" y=\"" + FormatTenths(y10) + "\" text-anchor=\"" +
         std::string(anchor) + "\">" + text + "</text>";
}

std::string Across(uint64_t y10, std::string_view style) {
  return "<line class=\"" + std::string(style) + "\" x1=\"" + std::to_string(kLeft) + "\" x2=\"" +
         std::to_string(kRight) + "\" y1=\"" + FormatTenths(y10) + "\" y2=\"" + FormatTenths(y10) +
         "\"/>";
}

class Page {
 public:
  explicit Page(const Tour& tour)
      : tour_(tour), plan_(tour.plan), limit_(static_cast<uint64_t>(tour.plan.limit.limit)) {}

  std::string Write() {
    std::string window = FormatDuration(plan_.limit.window);
    if (window.starts_with("1 "))
      window.erase(0, 2);
    const std::string title = "Which rate limiter for " + Grouped(limit_) + " per " + window + "?";
    out_ =
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
        title + "</title>\n<style>" + std::string(HtmlStyle()) +
        "</style>\n</head>\n<body>\n<main>\n<h1>" + title + "</h1>\n";
    Opening();
    Summary();
    Picks();
    for (const Stage& stage : tour_.stages) Show(stage);
    out_ +=
        "<footer><p>Made by <code>weir simulate --html</code>: every decision was taken by the "
        "library itself on a clock moved by hand. A window is (t - W, t], and the judge is an "
        "exact log of what each algorithm had admitted. The worst windows that are promised "
        "hold for any traffic; the other numbers are those of this run.</p></footer>\n"
        "</main>\n<div id=\"tip\" role=\"status\"></div>\n<script>" +
        std::string(HtmlScript()) + "</script>\n</body>\n</html>\n";
    return std::move(out_);
  }

 private:
  void Opening() {
    const size_t count = plan_.contenders.size();
    out_ += "<p class=\"soft\">" + std::to_string(count) +
            (count == 1 ? " algorithm, " : " algorithms side by side, ") +
            EscapeHtml(Offered(tour_)) + ", seed " + std::to_string(plan_.spec.seed) + "</p>\n";
    const Verdict verdict = Decide(tour_);
    best_ = verdict.contender;
    if (count > 1) {
      out_ += "<div class=\"card verdict\"><p>Pick <strong>" +
              EscapeHtml(plan_.contenders[best_].name()) + "</strong>, because on this traffic " +
              EscapeHtml(verdict.because) + "</p></div>\n";
    }
  }

  // Over the limit is said in colour and by the number itself.
  [[nodiscard]] std::string Ratio(uint64_t worst) const {
    const std::string text = FormatRatio(worst, limit_);
    return worst <= limit_ ? text : "<span class=\"over\">" + text + "</span>";
  }

  void Summary() {
    out_ +=
        "<div class=\"card scroll\"><table>\n<thead><tr><th>Algorithm</th>"
        "<th class=\"n\">Fullest window<br/>seen</th><th class=\"n\">Fullest window<br/>"
        "possible</th><th class=\"n\">Admitted</th><th class=\"n\">Wrongly<br/>admitted</th>"
        "<th class=\"n\">Wrongly<br/>denied</th><th class=\"n\">Unlike an<br/>exact log</th><th "
        "class=\"n\">Bytes<br/>a key</th>"
        "</tr></thead>\n<tbody>\n";
    for (size_t i = 0; i < tour_.totals.size(); ++i) {
      const Total& total = tour_.totals[i];
      const Contender& contender = plan_.contenders[i];
      const bool pick = i == best_ && tour_.totals.size() > 1;
      out_ += "<tr><th>" + EscapeHtml(contender.name()) +
              (pick ? "<span class=\"tag\">pick</span>" : "") + "</th><td class=\"n\">" +
              Ratio(total.worst_window) + "</td>";
      for (const std::string& cell :
           {FormatRatio(contender.WorstPossible(tour_.LargestCost()), limit_),
            FormatPercent(total.admitted, total.offered),
            FormatPercent(total.wrong.false_allow, total.offered),
            FormatPercent(total.wrong.false_deny, total.offered),
            FormatPercent(total.differ, total.offered),
            FormatTenths(contender.DecibytesPerKey())}) {
        out_ += "<td class=\"n\">" + EscapeHtml(cell) + "</td>";
      }
      out_ += "</tr>\n";
    }
    out_ += "</tbody></table></div>\n";
  }

  void Picks() {
    const std::vector<Advice> advice = Advise(tour_);
    if (advice.empty())
      return;
    out_ +=
        "<div class=\"card scroll\"><table>\n<thead><tr><th>If you want</th><th>pick</th>"
        "<th>because</th></tr></thead>\n<tbody>\n";
    for (const Advice& a : advice) {
      out_ += "<tr><td>" + EscapeHtml(a.goal) + "</td><th>" +
              EscapeHtml(plan_.contenders[a.contender].name()) + "</th><td>" +
              EscapeHtml(a.because) + "</td></tr>\n";
    }
    out_ += "</tbody></table></div>\n";
  }

  void Show(const Stage& stage) {
    const Duration part = plan_.spec.duration / static_cast<int64_t>(plan_.bins);
    const std::string window = FormatDuration(plan_.limit.window);
    // The unit of the window is that of the crosshair's time, too.
    const std::string unit = window.substr(window.find(' ') + 1);
    const auto unit_ns = ParseDuration("1" + unit);
    out_ +=
        "<section class=\"stage\"" + Attribute("data-offered", Joined(stage.offered_bins)) +
        Attribute("data-span", std::to_string(plan_.spec.duration.count())) +
        Attribute("data-limit", std::to_string(limit_)) + Attribute("data-unit", unit) +
        Attribute("data-unit-ns", std::to_string(unit_ns ? unit_ns->count() : 1)) + ">\n<h2>" +
        EscapeHtml(stage.name) + "<small>" + EscapeHtml(stage.line) + " · " +
        Grouped(stage.offered) + " requests" +
        (stage.largest_cost == 1 ? "" : ", " + Grouped(stage.units) + " units") +
        "</small></h2>\n<p>" + EscapeHtml(Remark(tour_, stage)) + ".</p>\n" + Legend() +
        "<div class=\"card\">\n<div class=\"row head\"><span></span><span>Admitted over time, " +
        UnitName(stage) + " per " + FormatAbout(part) + "</span><span>Rolling window of " + window +
        (stage.keys == 1 ? "" : ", fullest key") +
        ", x the limit</span><span>Wrong decisions</span></div>\n";
    uint64_t wrong = 1;
    uint64_t fullest = 2 * limit_;
    for (const Score& score : stage.scores) {
      wrong = std::max({wrong, score.wrong.false_allow, score.wrong.false_deny});
      fullest = std::max(fullest, score.worst_window);
    }
    for (size_t i = 0; i < stage.scores.size(); ++i) {
      Row(plan_.contenders[i], stage, stage.scores[i], wrong, fullest);
    }
    out_ += "</div>\n</section>\n";
  }

  static std::string Legend() {
    return "<div class=\"legend\"><span><i class=\"f-pass\"></i>admitted, within the limit</span>"
           "<span><i class=\"f-deny\"></i>denied</span><span><i class=\"f-over\"></i>over the "
           "limit, wrongly admitted</span><span><i class=\"f-late\"></i>wrongly denied</span>"
           "</div>\n";
  }

  void Row(const Contender& contender, const Stage& stage, const Score& score, uint64_t most_wrong,
           uint64_t fullest) {
    out_ += "<div class=\"row\"" + Attribute("data-name", contender.name()) +
            Attribute("data-admitted", Joined(score.admitted_bins)) +
            Attribute("data-window", Joined(score.window_bins)) + "><div class=\"who\"><b>" +
            EscapeHtml(contender.kind().name) + "</b><span>" + EscapeHtml(contender.Setting()) +
            "</span>";
    for (const std::string& line : Details(tour_, contender, score))
      out_ += "<br/><span>" + EscapeHtml(line) + "</span>";
    out_ += "</div>\n";
    const uint64_t peak = std::max<uint64_t>(Peak(stage.offered_bins), 1);
    Chart(contender.name() + " admitted " + Grouped(score.admitted) + " of " +
              Grouped(stage.offered) + " requests",
          Across(Y(peak, peak), "grid") + Area(stage.offered_bins, 0, peak, "f-deny") +
              Area(score.admitted_bins, 0, peak, "f-pass") +
              Label(kLeft * 10 - 60, Y(peak, peak) + 40, "end", Short(peak)));
    std::vector<uint64_t> within = score.window_bins;
    for (uint64_t& value : within) value = std::min(value, limit_);
    Chart(contender.name() + ": at most " + FormatRatio(score.worst_window, limit_) +
              " the limit in any window",
          Across(Y(fullest, fullest), "grid") + Area(within, 0, fullest, "f-pass") +
              Area(score.window_bins, limit_, fullest, "f-over") +
              Across(Y(limit_, fullest), "line") +
              Label(kLeft * 10 - 60, Y(limit_, fullest) + 40, "end", "limit") +
              Label(kLeft * 10 - 60, Y(fullest, fullest) + 40, "end",
                    fullest == 2 * limit_ ? "2x" : FormatRatio(fullest, limit_)));
    out_ += "<div>" + Bar("admitted", "f-over", score.wrong.false_allow, most_wrong, stage) +
            Bar("denied", "f-late", score.wrong.false_deny, most_wrong, stage) + "</div></div>\n";
  }

  static std::string Bar(std::string_view what, std::string_view style, uint64_t count,
                         uint64_t most, const Stage& stage) {
    return "<div class=\"bar\"><b>" + Grouped(count) + "</b> " + std::string(what) + ", " +
           EscapeHtml(FormatPercent(count, stage.offered)) + "<div><i class=\"" +
           std::string(style) + "\" style=\"width:" + FormatTenths(count * 1000 / most) +
           "%\"></i></div></div>";
  }

  // A drawing with its time axis, labelled at whole windows.
  void Chart(const std::string& says, const std::string& drawing) {
    const int64_t windows = std::max<int64_t>(plan_.spec.duration / plan_.limit.window, 1);
    const int64_t step = (windows + 4) / 5;
    std::string axis = Across(kBottom * 10, "grid");
    for (int64_t i = 0; i <= windows; i += step) {
      const Duration at = plan_.limit.window * i;
      const auto part = static_cast<size_t>(i * 1000 / windows);
      const std::string_view anchor = i == 0 ? "start" : part > 930 ? "end" : "middle";
      axis += Label(X(part, 1000), (kBottom + 15) * 10, anchor, FormatAbout(at));
    }
    out_ += "<svg role=\"img\" viewBox=\"0 0 " + std::to_string(kWidth) + " " +
            std::to_string(kHeight) + "\"" + Attribute("aria-label", says) + ">" + drawing + axis +
            "<line class=\"cursor\" y1=\"" + std::to_string(kTop) + "\" y2=\"" +
            std::to_string(kBottom) + "\"/></svg>\n";
  }

  const Tour& tour_;
  const TourPlan& plan_;
  uint64_t limit_;
  size_t best_ = 0;
  std::string out_;
};

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        // Other control characters are in no page.
        out.push_back(static_cast<unsigned char>(c) < ' ' && c != '\n' ? '?' : c);
    }
  }
  return out;
}

std::string Html(const Tour& tour) {
  return Page(tour).Write();
}

}  // namespace weir::simulate
