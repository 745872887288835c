#include "apps/weir/simulate/plot.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "apps/weir/text.h"

namespace weir::simulate {

using app::FormatDuration;
namespace {

using app::Ink;
using app::Terminal;

constexpr size_t kSteps = 8;  // heights in one character

constexpr std::array<std::string_view, kSteps + 1> kBlocks = {" ", "▁", "▂", "▃", "▄",
                                                              "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, kSteps + 1> kSparkAscii = {" ", ".", ":", "-", "=",
                                                                  "+", "*", "#", "@"};
constexpr std::array<std::string_view, kSteps + 1> kBarAscii = {" ", "_", "_", "_", "o",
                                                                "o", "#", "#", "#"};

// Joins neighbours of the same ink into one painted run.
class Row {
 public:
  explicit Row(const Terminal& terminal) : terminal_(terminal) {}

  void Add(Ink ink, std::string_view glyph) {
    if (glyph == " ")
      ink = Ink::kPlain;
    if (ink != ink_)
      Flush();
    ink_ = ink;
    run_.append(glyph);
  }

  std::string Take() {
    Flush();
    return std::move(out_);
  }

 private:
  void Flush() {
    out_.append(app::Paint(terminal_, ink_, run_));
    run_.clear();
  }

  const Terminal& terminal_;
  Ink ink_ = Ink::kPlain;
  std::string run_;
  std::string out_;
};

// Height of a value in steps of a bar `steps` high. Anything above nothing is at least one step.
size_t Height(uint64_t value, uint64_t peak, size_t steps) noexcept {
  if (value == 0 || peak == 0)
    return 0;
  const uint64_t rounded = (value * steps + peak / 2) / peak;
  return std::clamp<size_t>(static_cast<size_t>(rounded), 1, steps);
}

// The part of a bar of this height that lies in a row which starts at `floor` steps.
size_t Inside(size_t height, size_t floor) noexcept {
  return height <= floor ? 0 : std::min(height - floor, kSteps);
}

// A cell holds one glyph in at most two colours: `admitted` steps of block, and above it up to
// `offered` steps denied.
void AddBarCell(Row& row, const Terminal& terminal, size_t admitted, size_t offered) {
  const auto& solid = terminal.utf8() ? kBlocks : kBarAscii;
  if (terminal.colors == app::Colors::kAnsi && terminal.utf8()) {
    const bool mostly_denied = 2 * (offered - admitted) >= kSteps - admitted && offered > admitted;
    if (admitted == 0) {
      row.Add(Ink::kMuted, solid[offered]);
    } else {
      row.Add(mostly_denied ? Ink::kGoodOnMuted : Ink::kGood, solid[admitted]);
    }
    return;
  }
  // Without colours what was admitted wins, and a shade fills the cells above it.
  if (admitted > 0 || offered == 0) {
    row.Add(Ink::kGood, solid[admitted]);
  } else {
    row.Add(Ink::kBad, terminal.utf8() ? "░" : ":");
  }
}

// The least of 1, 2, 5, 10, 20, 50 ... that is not below `least`.
int64_t RoundStride(int64_t least) noexcept {
  for (int64_t tens = 1;; tens *= 10) {
    for (const int64_t digit : {1, 2, 5}) {
      if (digit * tens >= least)
        return digit * tens;
    }
  }
}

}  // namespace

std::string Sparkline(const Terminal& terminal, Ink ink, std::span<const uint64_t> values,
                      uint64_t peak) {
  const auto& glyphs = terminal.utf8() ? kBlocks : kSparkAscii;
  Row row(terminal);
  for (const uint64_t value : values) row.Add(ink, glyphs[Height(value, peak, kSteps)]);
  return row.Take();
}

std::vector<std::string> StackedBars(const Terminal& terminal, std::span<const uint64_t> admitted,
                                     std::span<const uint64_t> offered, uint64_t peak,
                                     size_t rows) {
  // One step less than there is, so that a full bar does not touch the picture above it.
  const size_t steps = rows * kSteps - 1;
  std::vector<std::string> lines;
  for (size_t r = rows; r-- > 0;) {
    Row row(terminal);
    for (size_t i = 0; i < offered.size(); ++i) {
      const size_t low = Height(admitted[i], peak, steps);
      const size_t high = admitted[i] == offered[i] ? low : Height(offered[i], peak, steps);
      AddBarCell(row, terminal, Inside(low, r * kSteps), Inside(high, r * kSteps));
    }
    lines.push_back(row.Take());
  }
  return lines;
}

std::string Gauge(const Terminal& terminal, uint64_t value, uint64_t limit, size_t half) {
  const std::string_view full = terminal.utf8() ? "━" : "=";
  const std::string_view empty = terminal.utf8() ? "─" : "-";
  const std::string_view mark = terminal.utf8() ? "┃" : "|";
  // Cells on both sides are equal parts of the limit; beyond it a single unit already shows.
  const size_t below = Height(std::min(value, limit), limit, half);
  const size_t above = value <= limit ? 0 : Height(std::min(value - limit, limit), limit, half);
  Row row(terminal);
  for (size_t i = 0; i < 2 * half; ++i) {
    if (i == half)
      row.Add(above > 0 ? Ink::kBad : Ink::kPlain, mark);
    const bool filled = i < half ? i < below : i - half < above;
    const Ink ink = i < half ? Ink::kGood : Ink::kBad;
    row.Add(filled ? ink : Ink::kDim, filled ? full : empty);
  }
  return row.Take();
}

std::string Axis(const Terminal& terminal, Duration duration, Duration window, size_t columns) {
  const std::string_view tick = terminal.utf8() ? "╵" : "'";
  const int64_t cell = std::max<int64_t>(duration.count() / static_cast<int64_t>(columns), 1);
  size_t widest = 0;
  for (Duration at{}; at < duration; at += window) {
    widest = std::max(widest, FormatDuration(at, window).size() + 2);
  }
  const int64_t needed = static_cast<int64_t>(widest) * cell;
  const Duration stride = window * RoundStride((needed + window.count() - 1) / window.count());

  std::string out;
  size_t column = 0;
  for (Duration at{}; at < duration; at += stride) {
    const auto start = static_cast<size_t>((at.count() + cell / 2) / cell);
    const std::string label = FormatDuration(at, window);
    if (start + label.size() + 1 > columns)
      break;
    out.append(start - column, ' ').append(tick).append(label);
    column = start + label.size() + 1;
  }
  out.append(columns - column, ' ');
  return app::Paint(terminal, Ink::kDim, out);
}

size_t PlotColumns(size_t available, Duration duration, Duration window) {
  if (duration % window != Duration::zero())
    return available;
  const auto windows = static_cast<uint64_t>(duration / window);
  if (windows == 0 || windows > available)
    return available;
  return static_cast<size_t>(available / windows * windows);
}

}  // namespace weir::simulate
