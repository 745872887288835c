#include "rules/text_table.h"

#include <algorithm>

namespace weir::rules {

namespace {

// How far two texts are the same.
size_t CommonBytes(std::string_view a, std::string_view b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  return static_cast<size_t>(end - a.begin());
}

}  // namespace

void PrefixTable::Finish() {
  std::sort(texts_.begin(), texts_.end(),
            [](const Text& a, const Text& b) { return a.text < b.text; });
  for (uint32_t i = 1; i < texts_.size(); ++i) {
    // Whatever this one begins with, the one before begins with, too, or is.
    uint32_t shorter = i - 1;
    while (shorter != kNone && !texts_[i].text.starts_with(texts_[shorter].text)) {
      shorter = texts_[shorter].shorter;
    }
    texts_[i].shorter = shorter;
  }
}

uint32_t PrefixTable::Longest(std::string_view value) const noexcept {
  const auto after =
      std::upper_bound(texts_.begin(), texts_.end(), value,
                       [](std::string_view v, const Text& text) { return v < text.text; });
  if (after == texts_.begin()) {
    return kNone;
  }
  const auto before = after - 1;
  const size_t same = CommonBytes(value, before->text);
  auto at = static_cast<uint32_t>(before - texts_.begin());
  while (at != kNone && texts_[at].text.size() > same) {
    at = texts_[at].shorter;
  }
  return at;
}

bool SubstringTable::Add(std::string text, RankSets::Id set) {
  std::array<uint16_t, 256> class_of = class_of_;
  size_t classes = classes_;
  for (const char c : text) {
    uint16_t& one = class_of[static_cast<unsigned char>(c)];
    one = one != 0 ? one : static_cast<uint16_t>(classes++);
  }
  // In order, so what a text shares with others it shares with the one before.
  const std::string_view before = texts_.empty() ? std::string_view() : texts_.back().first;
  const size_t size = size_ + text.size() - CommonBytes(text, before);
  if (texts_.size() == kMaxRanks || size * classes > kMaxSteps) {
    return false;
  }
  class_of_ = class_of;
  classes_ = classes;
  size_ = size;
  texts_.emplace_back(std::move(text), set);
  return true;
}

void SubstringTable::AddNodes() {
  nodes_.resize(1);
  steps_.resize(classes_);
  for (uint32_t text = 0; text < texts_.size(); ++text) {
    uint32_t at = 0;
    for (const char c : texts_[text].first) {
      const size_t step = size_t{at} * classes_ + class_of_[static_cast<unsigned char>(c)];
      if (steps_[step] == 0) {
        steps_[step] = static_cast<uint32_t>(nodes_.size());
        nodes_.emplace_back();
        steps_.resize(steps_.size() + classes_);
      }
      at = steps_[step];
    }
    nodes_[at].text = text;
    texts_[text].first.clear();  // the table has it now
  }
}

void SubstringTable::Finish() {
  if (empty()) {
    return;
  }
  AddNodes();
  // By depth: those further back are less deep, so their steps are known by then.
  std::vector<uint32_t> order = {0};
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t parent = order[i];
    for (size_t c = 0; c < classes_; ++c) {
      uint32_t& step = steps_[parent * classes_ + c];
      const uint32_t elsewhere = parent == 0 ? 0 : steps_[nodes_[parent].back * classes_ + c];
      if (step == 0) {
        step = elsewhere;
        continue;
      }
      Node& node = nodes_[step];
      node.back = elsewhere;
      node.end = node.text != kNone ? step : nodes_[node.back].end;
      order.push_back(step);
    }
  }
}

}  // namespace weir::rules
