#include "rules/regex_bank.h"

#include <utility>

namespace weir::rules {

namespace {

re2::StringPiece Piece(std::string_view text) {
  return {text.data(), text.size()};
}

RE2::Options Quiet() {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(int64_t{16} << 20);
  return options;
}

}  // namespace

std::optional<uint16_t> RegexBank::Add(uint16_t attribute, std::string_view pattern) {
  for (size_t i = 0; i < regexes_.size(); ++i) {
    if (regexes_[i].attribute == attribute && regexes_[i].pattern == pattern) {
      return static_cast<uint16_t>(i);
    }
  }
  if (regexes_.size() == kMaxRegexes) {
    return std::nullopt;
  }
  regexes_.push_back(
      {attribute, std::string(pattern), std::make_unique<RE2>(Piece(pattern), Quiet())});
  return static_cast<uint16_t>(regexes_.size() - 1);
}

bool RegexBank::Compile() {
  for (size_t i = 0; i < regexes_.size(); ++i) {
    banks_[regexes_[i].attribute].numbers.push_back(static_cast<uint16_t>(i));
  }
  for (auto& [attribute, bank] : banks_) {
    if (bank.numbers.size() < kFew) {
      continue;
    }
    bank.set = std::make_unique<RE2::Set>(Quiet(), RE2::ANCHOR_BOTH);
    for (const uint16_t number : bank.numbers) {
      if (bank.set->Add(Piece(regexes_[number].pattern), nullptr) < 0) {
        return false;
      }
    }
    if (!bank.set->Compile()) {
      return false;
    }
  }
  return true;
}

void RegexBank::MatchAll(const Bank& bank, std::string_view value, RegexResults& results) const {
  thread_local std::vector<int> found;
  RE2::Set::ErrorInfo error{};
  const bool any = bank.set->Match(Piece(value), &found, &error);
  const bool gave_up = error.kind != RE2::Set::kNoError;
  for (const uint16_t number : bank.numbers) {
    results.known[number] = true;
    // A set whose automaton outgrows its memory gives up; one by one always works.
    results.matched[number] = gave_up && RE2::FullMatch(Piece(value), *regexes_[number].re2);
  }
  for (size_t i = 0; any && !gave_up && i < found.size(); ++i) {
    results.matched[bank.numbers[static_cast<size_t>(found[i])]] = true;
  }
}

bool RegexBank::Matches(uint16_t regex, std::string_view value, RegexResults& results) const {
  if (!results.known[regex]) {
    const Bank& bank = banks_.find(regexes_[regex].attribute)->second;
    if (bank.set != nullptr) {
      MatchAll(bank, value, results);
    } else {
      results.known[regex] = true;
      results.matched[regex] = RE2::FullMatch(Piece(value), *regexes_[regex].re2);
    }
  }
  return results.matched[regex];
}

}  // namespace weir::rules
