#include "algorithm/quota_text.h"

#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "algorithm/quota_words.h"
#include "base/spelling.h"
#include "base/wide_math.h"

namespace weir::algorithm {
namespace {

using base::Quoted;
using base::Uint128;

// Left to right, one error at most. Each method returns whether to go on.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<ParsedQuota> Run() {
    if (Quota() && Resolve()) {
      return std::move(out_);
    }
    return QuotaTextError(text_, error_column_, error_);
  }

 private:
  struct Word {
    std::string_view text;
    size_t column = 0;  // 0: not there
  };

  struct Span {
    const Unit* unit = nullptr;
    std::string written;  // as found, without the spaces
    size_t column = 0;
    bool is_single = false;  // one unit: "day", "1d"
  };

  bool Quota();
  bool Gap();
  bool Concurrency();
  bool FixedLength(std::string_view field);
  bool AtEndAfter(std::string_view what);
  bool Number(Word word, std::string_view field, int64_t& value);
  bool Window(std::string_view field, Span& span, Duration& window);
  bool Count(Word word, std::string_view field, Uint128& count, bool& is_negative);
  bool Options();
  bool Option(Word word);
  bool Once(Word& place, Word word);
  bool Start(Word word);
  bool Queue(Word word);
  bool Resolve();
  bool ResolveCalendar();

  bool Fail(size_t column, std::string message) {
    error_column_ = column;
    error_ = std::move(message);
    return false;
  }

  [[nodiscard]] bool AtEnd() const noexcept { return at_ >= text_.size(); }

  void SkipSpace() noexcept {
    while (!AtEnd() && IsSpace(text_[at_])) {
      ++at_;
    }
  }

  enum class Stop : uint8_t { kSpace, kSpaceOrSlash };

  Word TakeWord(Stop stop) noexcept {
    const size_t begin = at_;
    while (!AtEnd() && !IsSpace(text_[at_]) && (stop == Stop::kSpace || text_[at_] != '/')) {
      ++at_;
    }
    return {text_.substr(begin, at_ - begin), begin + 1};
  }

  void Place(QuotaField field, size_t column) noexcept {
    out_.column[static_cast<size_t>(field)] = column;
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t error_column_ = 1;
  std::string error_;
  ParsedQuota out_;

  Span span_;
  Word algorithm_;
  Word burst_;
  Word from_;
  Word slices_;
  Word in_;
  Word queue_;
};

// digits with single underscores between them. Saturates far above every limit.
bool Parser::Count(Word word, std::string_view field, Uint128& count, bool& is_negative) {
  constexpr Uint128 kCeiling = Uint128{1} << 100;
  std::string_view digits = word.text;
  is_negative = digits.starts_with('-');
  if (is_negative) {
    digits.remove_prefix(1);
  }
  count = 0;
  bool after_digit = false;
  for (const char c : digits) {
    if (c == '_' && after_digit) {
      after_digit = false;
      continue;
    }
    if (!IsDigit(c)) {
      after_digit = false;
      break;
    }
    after_digit = true;
    count = count > kCeiling ? count : count * 10 + static_cast<unsigned>(c - '0');
  }
  if (!after_digit) {
    const bool is_fraction = digits.find('.') != std::string_view::npos && IsDigit(digits.front());
    return Fail(word.column, std::string(field) + ": " + Quoted(word.text) + " is not a number; " +
                                 (is_fraction ? "only whole numbers are allowed, and 1.5/s is 3/2s"
                                              : "expected digits, such as 100, 1_000 or 5k"));
  }
  return true;
}

bool Parser::Number(Word word, std::string_view field, int64_t& value) {
  std::string_view digits = word.text;
  Uint128 scale = 1;
  if (!digits.empty() && (digits.back() == 'k' || digits.back() == 'K' || digits.back() == 'M')) {
    scale = digits.back() == 'M' ? 1'000'000 : 1000;
    digits.remove_suffix(1);
  } else if (digits.size() > 1 && digits.back() == 'm' && IsDigit(digits[digits.size() - 2])) {
    return Fail(word.column, std::string(field) + ": " + Quoted(word.text) +
                                 " is not a number; a million is written M, a thousand k");
  }
  Uint128 count = 0;
  bool is_negative = false;
  if (!Count({digits, word.column}, field, count, is_negative)) {
    return false;
  }
  count *= scale;
  if (is_negative || count == 0) {
    return Fail(word.column, TooSmall(field, word.text, "1"));
  }
  // How large a limit may be depends on what follows it, so it is Check's to say.
  const auto most = static_cast<uint64_t>(field == "limit" ? std::numeric_limits<int64_t>::max()
                                                           : weir::Quota::kMaxLimit);
  if (count > most) {
    return Fail(word.column, TooLarge(field, word.text, std::to_string(weir::Quota::kMaxLimit)));
  }
  value = static_cast<int64_t>(static_cast<uint64_t>(count));
  return true;
}

// [count] unit. A month or a year leaves `window` at zero.
bool Parser::Window(std::string_view field, Span& span, Duration& window) {
  SkipSpace();
  const size_t begin = at_;
  const auto takes = [&](auto accepts) {
    const size_t from = at_;
    while (!AtEnd() && accepts(text_[at_])) {
      ++at_;
    }
    return Word{text_.substr(from, at_ - from), from + 1};
  };
  const Word number = takes([](char c) { return IsDigit(c) || c == '_' || c == '.' || c == '-'; });
  SkipSpace();
  const Word name = takes(IsLetter);
  span.written = std::string(number.text) + std::string(name.text);
  span.column = begin + 1;
  Uint128 count = 1;
  bool is_negative = false;
  if (!number.text.empty() && !Count(number, field, count, is_negative)) {
    return false;
  }
  if (name.text.empty()) {
    const Word found = TakeWord(Stop::kSpace);
    return Fail(name.column, "expected a unit, such as s, min or day, found " +
                                 (found.text.empty() ? "the end" : Quoted(found.text)));
  }
  Suggestion suggestion(name.text);
  for (const Unit& unit : kUnits) {
    for (const std::string_view spelling : unit.names) {
      if (SameWord(spelling, name.text)) {
        span.unit = &unit;
      }
      suggestion.Consider(spelling);
    }
  }
  if (span.unit == nullptr) {
    return Fail(name.column, "unit: " + Quoted(name.text) + " is not known;" + suggestion.Phrase() +
                                 " " + std::string(kUnitsAllowed));
  }
  if (!AtEnd() && !IsSpace(text_[at_])) {
    const Word extra = TakeWord(Stop::kSpace);
    return Fail(extra.column, std::string(field) +
                                  ": expected one count and one unit, such as 90min, then a space "
                                  "or the end, found " +
                                  Quoted(extra.text));
  }
  span.is_single = count == 1 && !is_negative;
  const Uint128 ns = count * static_cast<uint64_t>(span.unit->ns);
  if (span.unit->ns == 0) {
    return span.is_single ||
           Fail(span.column, std::string(field) + ": " + span.written +
                                 " is not allowed; a calendar quota counts in single "
                                 "periods: the only count is 1");
  }
  if (is_negative || ns < static_cast<uint64_t>(weir::Quota::kMinWindow.count())) {
    return Fail(span.column,
                TooSmall(field, span.written, FormatDuration(weir::Quota::kMinWindow)));
  }
  if (ns > static_cast<uint64_t>(weir::Quota::kMaxWindow.count())) {
    return Fail(span.column,
                TooLarge(field, span.written, FormatDuration(weir::Quota::kMaxWindow)));
  }
  window = Duration(static_cast<int64_t>(static_cast<uint64_t>(ns)));
  return true;
}

bool Parser::Gap() {
  out_.spec.algorithm = Algorithm::kMinGap;
  out_.spec.limit = 1;
  SkipSpace();
  Place(QuotaField::kWindow, at_ + 1);
  if (AtEnd()) {
    return Fail(at_ + 1, "gap: expected a duration, such as 2s, found the end");
  }
  return FixedLength("gap") && AtEndAfter("a gap");
}

// A window that is no calendar period, into the spec.
bool Parser::FixedLength(std::string_view field) {
  if (!Window(field, span_, out_.spec.window)) {
    return false;
  }
  return span_.unit->ns != 0 ||
         Fail(span_.column, std::string(field) + ": " + span_.written +
                                " is not allowed; months and years have no fixed "
                                "length: use a duration such as 30d");
}

bool Parser::AtEndAfter(std::string_view what) {
  SkipSpace();
  if (AtEnd()) {
    return true;
  }
  const Word extra = TakeWord(Stop::kSpace);
  return Fail(extra.column,
              "expected the end after " + std::string(what) + ", found " + Quoted(extra.text));
}

bool Parser::Concurrency() {
  constexpr std::string_view kReads = "; it reads concurrency 20 lease 30s";
  out_.spec.algorithm = Algorithm::kConcurrency;
  SkipSpace();
  const Word limit = TakeWord(Stop::kSpace);
  Place(QuotaField::kLimit, limit.column);
  Place(QuotaField::kBurst, limit.column);
  if (limit.text.empty()) {
    return Fail(limit.column,
                "limit: expected a number, such as 20, found the end" + std::string(kReads));
  }
  if (!Number(limit, "limit", out_.spec.limit)) {
    return false;
  }
  SkipSpace();
  const Word lease = TakeWord(Stop::kSpace);
  if (!SameWord(lease.text, "lease")) {
    return Fail(lease.column,
                "expected \"lease\" and how long a hold lasts that nobody releases, "
                "found " +
                    (lease.text.empty() ? "the end" : Quoted(lease.text)) + std::string(kReads));
  }
  SkipSpace();
  Place(QuotaField::kWindow, at_ + 1);
  if (AtEnd()) {
    return Fail(at_ + 1, "lease: expected a duration, such as 30s, found the end");
  }
  return FixedLength("lease") && AtEndAfter("a lease");
}

bool Parser::Quota() {
  out_.column.fill(1);
  if (text_.size() > kMaxQuotaTextBytes) {
    return Fail(kMaxQuotaTextBytes + 1, "the text has " + std::to_string(text_.size()) +
                                            " bytes; the most is " +
                                            std::to_string(kMaxQuotaTextBytes));
  }
  SkipSpace();
  if (AtEnd()) {
    return Fail(1, "the text is empty; expected a quota, such as 100/min or gap 2s");
  }
  const Word limit = TakeWord(Stop::kSpaceOrSlash);
  if (SameWord(limit.text, "gap")) {
    return Gap();
  }
  if (SameWord(limit.text, "concurrency")) {
    return Concurrency();
  }
  if (limit.text.empty() || (!IsDigit(limit.text.front()) && limit.text.front() != '-')) {
    Suggestion suggestion(limit.text);
    suggestion.Consider("gap");
    suggestion.Consider("concurrency");
    return Fail(
        limit.column,
        "limit: expected a whole number, such as 100, or \"gap\" or \"concurrency\", found " +
            Quoted(limit.text.empty() ? "/" : limit.text) + ";" + suggestion.Phrase() +
            " a quota reads 100/min");
  }
  Place(QuotaField::kLimit, limit.column);
  Place(QuotaField::kBurst, limit.column);
  if (!Number(limit, "limit", out_.spec.limit)) {
    return false;
  }
  SkipSpace();
  if (!AtEnd() && text_[at_] == '/') {
    ++at_;
  } else {
    const Word per = TakeWord(Stop::kSpace);
    if (!SameWord(per.text, "per")) {
      return Fail(
          per.column,
          "expected \"/\" or \"per\" and a window after the limit, such as 100/min, found " +
              (per.text.empty() ? "the end" : Quoted(per.text)));
    }
  }
  SkipSpace();
  Place(QuotaField::kWindow, at_ + 1);
  Place(QuotaField::kPeriod, at_ + 1);
  return Window("window", span_, out_.spec.window) && Options();
}

bool Parser::Options() {
  for (SkipSpace(); !AtEnd(); SkipSpace()) {
    if (!Option(TakeWord(Stop::kSpace))) {
      return false;
    }
  }
  return true;
}

bool Parser::Once(Word& place, Word word) {
  if (place.column != 0) {
    return Fail(word.column, Quoted(word.text) + " is one too many: column " +
                                 std::to_string(place.column) + " already has " +
                                 Quoted(place.text));
  }
  place = word;
  return true;
}

bool Parser::Option(Word word) {
  Suggestion suggestion(word.text);
  for (const Algorithm algorithm : kNamedAlgorithms) {
    if (SameWord(word.text, ToString(algorithm))) {
      out_.spec.algorithm = algorithm;
      Place(QuotaField::kAlgorithm, word.column);
      return Once(algorithm_, word);
    }
    suggestion.Consider(ToString(algorithm));
  }
  const bool is_burst = SameWord(word.text, "burst");
  const bool is_from = SameWord(word.text, "from");
  const bool is_slices = SameWord(word.text, "slices");
  if (is_burst || is_from || is_slices || SameWord(word.text, "in")) {
    if (!Once(is_burst ? burst_ : is_from ? from_ : is_slices ? slices_ : in_, word)) {
      return false;
    }
    SkipSpace();
    const Word value = TakeWord(Stop::kSpace);
    if (value.text.empty()) {
      return Fail(value.column, is_burst    ? "burst: expected a number, such as 20, found the end"
                                : is_slices ? "slices: expected a number, such as 60, found the end"
                                : is_from
                                    ? "from: expected epoch, first-hit or per-key, found the end"
                                    : "in: expected a time zone, such as Europe/Berlin, found "
                                      "the end");
    }
    if (is_burst) {
      Place(QuotaField::kBurst, value.column);
      return Number(value, "burst", out_.spec.burst);
    }
    if (is_slices) {
      Place(QuotaField::kSlices, value.column);
      return Number(value, "slices", out_.spec.slices);
    }
    if (is_from) {
      return Start(value);
    }
    Place(QuotaField::kTimeZone, value.column);
    out_.spec.time_zone = SameWord(value.text, "utc") ? "UTC" : std::string(value.text);
    return true;
  }
  if (SameWord(word.text, "queue")) {
    return Once(queue_, word) && Queue(word);
  }
  if (SameWord(word.text, "after")) {
    return Fail(word.column, "\"after\" follows \"queue\", such as \"queue after 8\"");
  }
  if (SameWord(word.text, "concurrency")) {
    return Fail(word.column,
                "\"concurrency\" cannot follow a rate; it is a quota of its own: "
                "concurrency 20 lease 30s");
  }
  if (SameWord(word.text, "gap") || SameWord(word.text, "min-gap")) {
    return Fail(word.column,
                Quoted(word.text) + " cannot follow a rate; a gap is a quota of its own: gap 2s");
  }
  suggestion.Consider("burst");
  suggestion.Consider("from");
  suggestion.Consider("slices");
  suggestion.Consider("queue");
  return Fail(word.column, Quoted(word.text) + " is not known here;" + suggestion.Phrase() + " " +
                               std::string(kWordsAllowed));
}

// ["after" number], for those who start at once.
bool Parser::Queue(Word word) {
  out_.spec.undelayed = 1;
  Place(QuotaField::kUndelayed, word.column);
  SkipSpace();
  const size_t back = at_;
  if (!SameWord(TakeWord(Stop::kSpace).text, "after")) {
    at_ = back;
    return true;
  }
  SkipSpace();
  const Word value = TakeWord(Stop::kSpace);
  if (value.text.empty()) {
    return Fail(value.column, "after: expected a number, such as 8, found the end");
  }
  Place(QuotaField::kUndelayed, value.column);
  return Number(value, "after", out_.spec.undelayed);
}

bool Parser::Start(Word word) {
  Suggestion suggestion(word.text);
  for (const WindowStart start : kStarts) {
    if (SameWord(word.text, NameOf(start))) {
      out_.spec.start = start;
      Place(QuotaField::kStart, word.column);
      return true;
    }
    suggestion.Consider(NameOf(start));
  }
  return Fail(word.column, "from: " + Quoted(word.text) + " is not known;" + suggestion.Phrase() +
                               " allowed are epoch, first-hit and per-key");
}

bool Parser::ResolveCalendar() {
  QuotaSpec& spec = out_.spec;
  const bool has_fixed_length = span_.unit->ns != 0;
  for (const Word& word : {algorithm_, burst_, from_, slices_, queue_}) {
    if (word.column == 0 || SameWord(word.text, "calendar")) {
      continue;
    }
    return Fail(word.column,
                has_fixed_length
                    ? Quoted(word.text) + " is not allowed for calendar; leave one of them out"
                    : Quoted(word.text) + " is not allowed with " + span_.written +
                          ": months and years have no fixed length, so they are always calendar "
                          "quotas; leave it out, or use a window such as 30d");
  }
  if (!span_.unit->period.has_value() || !span_.is_single) {
    return Fail(span_.column, "window: " + span_.written +
                                  " is not allowed for calendar; allowed are day, week, "
                                  "month and year");
  }
  spec.algorithm = Algorithm::kCalendar;
  spec.period = *span_.unit->period;
  spec.window = Duration::zero();
  return true;
}

// The rules that need more than one word to be known.
bool Parser::Resolve() {
  QuotaSpec& spec = out_.spec;
  if (spec.algorithm == Algorithm::kMinGap || spec.algorithm == Algorithm::kConcurrency) {
    return true;
  }
  if (span_.unit->ns == 0 || spec.algorithm == Algorithm::kCalendar) {
    return ResolveCalendar();
  }
  if (algorithm_.column == 0 && (burst_.column != 0 || queue_.column != 0)) {
    spec.algorithm = queue_.column != 0 ? Algorithm::kLeakyBucket : Algorithm::kTokenBucket;
  }
  if (queue_.column != 0 && spec.algorithm != Algorithm::kLeakyBucket) {
    return Fail(queue_.column, "queue: not allowed for " + std::string(ToString(spec.algorithm)) +
                                   "; only a leaky-bucket delays: leave out one of the two");
  }
  if (burst_.column != 0 && spec.algorithm != Algorithm::kTokenBucket &&
      spec.algorithm != Algorithm::kLeakyBucket) {
    return Fail(burst_.column, "burst: not allowed for " + std::string(ToString(spec.algorithm)) +
                                   ", whose burst is its limit; leave it out, or use token-bucket "
                                   "or leaky-bucket");
  }
  if (from_.column != 0 && spec.algorithm != Algorithm::kFixedWindow) {
    return Fail(from_.column, "from: not allowed for " + std::string(ToString(spec.algorithm)) +
                                  "; where a window begins is chosen for fixed-window only");
  }
  if (slices_.column != 0 && spec.algorithm != Algorithm::kSlicedWindow) {
    return Fail(slices_.column, "slices: not allowed for " + std::string(ToString(spec.algorithm)) +
                                    "; slices belong to sliced-window, such as \"500/h "
                                    "sliced-window slices 60\"");
  }
  if (spec.algorithm == Algorithm::kSlicedWindow && slices_.column == 0) {
    return Fail(algorithm_.column,
                "slices: missing; say into how many slices the window is cut, such as \"500/h "
                "sliced-window slices 60\"");
  }
  if (in_.column != 0) {
    return Fail(in_.column, "in: not allowed for " + std::string(ToString(spec.algorithm)) +
                                "; a time zone belongs to calendar, such as \"100/day calendar in "
                                "Europe/Berlin\"");
  }
  return true;
}

}  // namespace

Result<ParsedQuota> ParseQuotaText(std::string_view text) {
  return Parser(text).Run();
}

}  // namespace weir::algorithm
