#include "apps/weir/suggest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace weir::app {
namespace {

// Levenshtein distance where swapping two neighbours counts as one error, too.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({change, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::optional<std::string_view> Nearest(std::string_view typed,
                                        std::span<const std::string_view> candidates) {
  if (typed.empty())
    return std::nullopt;
  std::optional<std::string_view> best;
  size_t best_distance = std::max<size_t>(typed.size() / 3, 1) + 1;
  for (const std::string_view candidate : candidates) {
    const size_t distance = Distance(typed, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  if (best || typed.size() < 3)
    return best;
  for (const std::string_view candidate : candidates) {
    if (candidate.find(typed) != std::string_view::npos)
      return candidate;
  }
  return std::nullopt;
}

std::string UnknownName(std::string_view what, std::string_view typed,
                        std::span<const std::string_view> candidates) {
  std::string text = "unknown " + std::string(what) + " '" + std::string(typed) + "'";
  if (const auto nearest = Nearest(typed, candidates)) {
    text += ": did you mean '" + std::string(*nearest) + "'?";
  } else {
    text += ".";
  }
  text += " Allowed: ";
  for (size_t i = 0; i < candidates.size(); ++i) {
    text.append(i == 0 ? "" : ", ").append(candidates[i]);
  }
  return text;
}

}  // namespace weir::app
