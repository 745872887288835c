#include "apps/weir/top/view.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "apps/weir/text.h"

namespace weir::top {

namespace {

using app::FormatCount;
using app::FormatPercent;
using app::Ink;
using app::PadLeft;
using app::PadRight;

constexpr size_t kNumberColumns = 13;
constexpr size_t kNumbers = 4;
constexpr size_t kNameMin = 12;

struct Row {
  const RuleSnapshot* rule;
  uint64_t decisions;  // in the time between, or in all
  uint64_t denied;
};

uint64_t Grown(uint64_t before, uint64_t now) {
  return now >= before ? now - before : now;
}

Row RowOf(const RuleSnapshot& rule, const std::optional<Snapshot>& before) {
  const RuleSnapshot* const old = before ? before->Find(rule.rule) : nullptr;
  if (old == nullptr) {
    return {&rule, before ? 0 : rule.decisions(), before ? 0 : rule.denied};
  }
  return {&rule, Grown(old->decisions(), rule.decisions()), Grown(old->denied, rule.denied)};
}

// Keeps the lines within the terminal; what does not fit is left out and said so.
class Lines {
 public:
  explicit Lines(const ViewOptions& options) : options_(options) {}

  void Add(Ink ink, std::string_view text) {
    // One line is left for the note that there is more.
    if (options_.lines_max != 0 && lines_ + 1 >= options_.lines_max) {
      ++left_out_;
      return;
    }
    ++lines_;
    text_ += app::Paint(options_.terminal, ink, text) + "\n";
  }

  [[nodiscard]] std::string Take() {
    if (left_out_ > 0) {
      text_ += app::Paint(options_.terminal, Ink::kDim,
                          " " + std::to_string(left_out_) + " more lines") +
               "\n";
    }
    return std::move(text_);
  }

 private:
  const ViewOptions& options_;
  std::string text_;
  size_t lines_ = 0;
  size_t left_out_ = 0;
};

}  // namespace

std::string Printable(std::string_view text, size_t columns) {
  std::string shown;
  for (const char character : text.substr(0, columns)) {
    shown += character >= ' ' && character < 0x7F ? character : '?';
  }
  if (text.size() > columns && columns > 0) {
    shown.back() = '~';
  }
  return shown;
}

std::string View(const std::optional<Snapshot>& before, const Snapshot& now,
                 const ViewOptions& options) {
  const double seconds = before ? std::chrono::duration<double>(now.at - before->at).count() : 0;
  const auto per_second = [seconds](uint64_t count) {
    return seconds > 0 ? FormatCount(static_cast<uint64_t>(
                             std::llround(static_cast<double>(count) / seconds)))
                       : FormatCount(count);
  };
  std::vector<Row> rows;
  Row all{nullptr, 0, 0};
  for (const RuleSnapshot& rule : now.rules) {
    rows.push_back(RowOf(rule, before));
    all.decisions += rows.back().decisions;
    all.denied += rows.back().denied;
  }
  // Among equals in the order of the file, which is that of the snapshots in memory.
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.decisions != b.decisions ? a.decisions > b.decisions : a.rule < b.rule;
  });

  const size_t width = std::max<size_t>(options.terminal.width, 40);
  const size_t numbers = std::min(kNumbers * kNumberColumns, width - kNameMin);
  const size_t name = width - numbers;
  const auto columns = [&](std::string_view first, const std::vector<std::string>& rest) {
    std::string line = PadRight(Printable(first, name - 1), name);
    for (const std::string& cell : rest) {
      line += PadLeft(cell, kNumberColumns);
    }
    return line.substr(0, width);
  };

  Lines lines(options);
  const std::string unit = seconds > 0 ? "/s" : "";
  lines.Add(Ink::kBold, Printable("weir " + now.version + " at " + options.address, width));
  lines.Add(Ink::kPlain,
            Printable(" " + per_second(all.decisions) + unit + " decisions, " +
                          FormatPercent(all.denied, std::max<uint64_t>(1, all.decisions)) +
                          " denied, " + FormatCount(now.connections) + " connections, table " +
                          FormatPercent(now.live_slots, std::max<uint64_t>(1, now.slots)) + " full",
                      width));
  if (!now.rules_up_to_date) {
    lines.Add(Ink::kWarn,
              Printable(" the rule files have changed and were not taken: GET /v1/rules "
                        "says why",
                        width));
  }
  if (!options.problem.empty()) {
    lines.Add(Ink::kBad, Printable(" " + options.problem, width));
  }
  lines.Add(Ink::kPlain, "");
  lines.Add(Ink::kDim,
            columns(" rule", {"decisions" + unit, "denied" + unit, "denied %", "in all"}));
  for (const Row& row : rows) {
    const RuleSnapshot& rule = *row.rule;
    lines.Add(
        row.denied > 0 ? Ink::kWarn : Ink::kPlain,
        columns(" " + rule.rule, {per_second(row.decisions), per_second(row.denied),
                                  FormatPercent(row.denied, std::max<uint64_t>(1, row.decisions)),
                                  FormatCount(rule.decisions())}));
    for (size_t i = 0; i < std::min(rule.keys.size(), options.keys_max); ++i) {
      const TopKey& key = rule.keys[i];
      lines.Add(Ink::kDim, columns("   " + key.key + (key.cut ? "..." : ""),
                                   {"", FormatCount(key.denied),
                                    FormatPercent(key.denied, std::max<uint64_t>(1, key.count)),
                                    (key.error > 0 ? "<= " : "") + FormatCount(key.count)}));
    }
  }
  return lines.Take();
}

}  // namespace weir::top
