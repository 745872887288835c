#include "base/time_zone.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/spelling.h"

namespace weir::base {
namespace {

constexpr int64_t kDaySeconds = 86400;
constexpr int64_t kFarthest = int64_t{1} << 55;
constexpr size_t kMaxFileBytes = size_t{256} << 10;  // the largest file of the database has 4 KiB
constexpr size_t kMaxWalkedEntries = 5000;           // the database has about 1,800

int64_t FloorDiv(int64_t a, int64_t b) noexcept {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

bool IsLeap(int64_t year) noexcept {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

// Days from 1970-01-01 to January 1st of `year`, in the proleptic Gregorian calendar.
int64_t DaysToYear(int64_t year) noexcept {
  const int64_t before = year - 1;
  return 365 * (year - 1970) + (FloorDiv(before, 4) - 492) - (FloorDiv(before, 100) - 19) +
         (FloorDiv(before, 400) - 4);
}

int64_t YearOf(int64_t unix_seconds) noexcept {
  const int64_t days = FloorDiv(unix_seconds, kDaySeconds);
  int64_t year = 1970 + FloorDiv(days * 400, 146097);  // off by one at most
  while (DaysToYear(year) > days) {
    --year;
  }
  while (DaysToYear(year + 1) <= days) {
    ++year;
  }
  return year;
}

bool IsLetter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool IsDigit(char c) noexcept {
  return c >= '0' && c <= '9';
}

// Names that cannot leave the database's directory, whatever else they are.
bool IsPlainName(std::string_view name) noexcept {
  bool part_empty = true;
  for (const char c : name) {
    if (c == '/') {
      if (part_empty) {
        return false;
      }
      part_empty = true;
    } else if (IsLetter(c) || IsDigit(c) || c == '_' || c == '+' || c == '-') {
      part_empty = false;
    } else {
      return false;
    }
  }
  return !part_empty;
}

std::string DatabaseDirectory() {
  const char* const from_environment = std::getenv("TZDIR");
  return from_environment != nullptr && *from_environment != '\0' ? from_environment
                                                                  : "/usr/share/zoneinfo";
}

// The name in the database that `name` was probably meant to be; empty if none is close.
std::string ClosestName(const std::string& directory, std::string_view name) {
  namespace fs = std::filesystem;
  const size_t worst_allowed = name.size() / 4 + 1;
  const bool is_bare = name.find('/') == std::string_view::npos;
  size_t best_distance = worst_allowed + 1;
  std::string best;
  const auto consider = [&](std::string_view candidate) {
    size_t distance = SpellingDistance(name, candidate);
    if (is_bare) {  // "Berlin" means "Europe/Berlin"
      const size_t slash = candidate.rfind('/');
      if (slash != std::string_view::npos) {
        distance = std::min(distance, SpellingDistance(name, candidate.substr(slash + 1)));
      }
    }
    // Ties do not depend on the order in which the directory is read.
    if (std::tuple(distance, candidate.size(), candidate) <
        std::tuple(best_distance, best.size(), std::string_view(best))) {
      best_distance = distance;
      best = candidate;
    }
  };
  consider("UTC");
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, fs::directory_options::skip_permission_denied,
                                         error);
  for (size_t walked = 0;
       !error && entry != fs::recursive_directory_iterator() && walked < kMaxWalkedEntries;
       ++walked, entry.increment(error)) {
    const std::string path = entry->path().string();
    const std::string_view relative = std::string_view(path).substr(
        std::min(path.size(), directory.size() + (directory.ends_with('/') ? 0 : 1)));
    // Every zone begins with a capital; posix/, right/, localtime, leapseconds do not.
    const bool is_zone =
        IsPlainName(relative) && relative.front() >= 'A' && relative.front() <= 'Z';
    std::error_code ignored;
    if (entry->is_directory(ignored)) {
      if (!is_zone || entry.depth() >= 3) {
        entry.disable_recursion_pending();
      }
    } else if (is_zone) {
      consider(relative);
    }
  }
  return best_distance <= worst_allowed ? best : std::string();
}

Error UnknownZone(const std::string& directory, std::string_view name) {
  const std::string closest = ClosestName(directory, name);
  return Error::Invalid(
      Quoted(name) + " is not a time zone: there is no such file in " + Quoted(directory) +
      (closest.empty() ? "; allowed are \"UTC\" and names such as \"Europe/Berlin\""
                       : "; did you mean " + Quoted(closest) + "?"));
}

Error Unreadable(std::string_view name, std::string_view why) {
  return Error{ErrorCode::kUnavailable,
               "the zone file of " + Quoted(name) + " cannot be used: " + std::string(why)};
}

Result<std::string> ReadZoneFile(std::string_view name) {
  const std::string directory = DatabaseDirectory();
  const std::string path = directory + "/" + std::string(name);
  // O_NONBLOCK so that a FIFO in a strange TZDIR cannot hang the caller.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    const int cause = errno;
    if (cause == ENOENT || cause == ENOTDIR) {
      return UnknownZone(directory, name);
    }
    return Unreadable(name, std::generic_category().message(cause));
  }
  struct stat status{};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(file);
    return Error::Invalid(Quoted(name) + " is not a time zone: it is " +
                          (S_ISDIR(status.st_mode) ? "a folder of zones" : "not a file"));
  }
  std::string bytes(kMaxFileBytes + 1, '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::read(file, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      const int cause = errno;
      ::close(file);
      return Unreadable(name, std::generic_category().message(cause));
    }
    if (got == 0) {
      break;
    }
    filled += static_cast<size_t>(got);
  }
  ::close(file);
  bytes.resize(filled);
  return bytes;
}

}  // namespace

// Reads the blocks of a TZif file. Every access is checked against what is left.
class TimeZone::Reader {
 public:
  explicit Reader(std::span<const char> bytes) : bytes_(bytes) {}

  // Empty on success, else what is wrong with the data.
  std::string Read(TimeZone& zone);

 private:
  struct Header {
    char version = '\0';
    uint64_t utc_indicators = 0;
    uint64_t standard_indicators = 0;
    uint64_t leaps = 0;
    uint64_t times = 0;
    uint64_t types = 0;
    uint64_t chars = 0;

    [[nodiscard]] uint64_t BlockBytes(uint64_t time_bytes) const noexcept {
      return times * (time_bytes + 1) + types * 6 + chars + leaps * (time_bytes + 4) +
             standard_indicators + utc_indicators;
    }
  };

  static constexpr size_t kHeaderBytes = 44;

  std::string ReadHeader(Header& header);
  std::string ReadBlock(const Header& header, size_t time_bytes, TimeZone& zone);
  std::string ReadFooter(TimeZone& zone);

  [[nodiscard]] int64_t BigEndian(size_t at, size_t width) const noexcept {
    uint64_t value = (bytes_[at] & 0x80) != 0 ? ~uint64_t{0} : 0;
    for (size_t i = 0; i < width; ++i) {
      value = value << 8 | static_cast<unsigned char>(bytes_[at + i]);
    }
    return static_cast<int64_t>(value);
  }

  std::span<const char> bytes_;
  size_t at_ = 0;
};

// A POSIX TZ string such as "CET-1CEST,M3.5.0,M10.5.0/3".
class TimeZone::FooterParser {
 public:
  explicit FooterParser(std::string_view text) : text_(text) {}

  bool Parse(Footer& footer) {
    if (!Name() || !Offset(footer.standard_offset)) {
      return false;
    }
    if (text_.empty()) {
      return true;
    }
    footer.has_daylight = true;
    footer.daylight_offset = footer.standard_offset + 3600;
    if (!Name() || (!text_.starts_with(',') && !Offset(footer.daylight_offset))) {
      return false;
    }
    // Without dates POSIX leaves the choice to the system; zone files always give them.
    return Eat(',') && Day(footer.daylight_begin) && Eat(',') && Day(footer.daylight_end) &&
           text_.empty() && footer.daylight_offset <= kMaxOffsetSeconds;
  }

 private:
  bool Eat(char c) noexcept {
    if (!text_.starts_with(c)) {
      return false;
    }
    text_.remove_prefix(1);
    return true;
  }

  bool Name() noexcept {
    const bool is_quoted = Eat('<');
    size_t length = 0;
    while (
        length < text_.size() &&
        (IsLetter(text_[length]) ||
         (is_quoted && (IsDigit(text_[length]) || text_[length] == '+' || text_[length] == '-')))) {
      ++length;
    }
    text_.remove_prefix(length);
    return length >= 3 && (!is_quoted || Eat('>'));
  }

  bool Number(int least, int most, int& value) noexcept {
    size_t length = 0;
    value = 0;
    while (length < text_.size() && length < 3 && IsDigit(text_[length])) {
      value = value * 10 + (text_[length] - '0');
      ++length;
    }
    text_.remove_prefix(length);
    return length > 0 && value >= least && value <= most;
  }

  bool Clock(int most_hours, int64_t& seconds) noexcept {
    const bool is_negative = Eat('-');
    if (!is_negative) {
      Eat('+');
    }
    int hours = 0;
    int minutes = 0;
    int rest = 0;
    if (!Number(0, most_hours, hours)) {
      return false;
    }
    if (Eat(':') && (!Number(0, 59, minutes) || (Eat(':') && !Number(0, 59, rest)))) {
      return false;
    }
    seconds = int64_t{hours} * 3600 + int64_t{minutes} * 60 + rest;
    seconds = is_negative ? -seconds : seconds;
    return true;
  }

  // POSIX counts west of Greenwich as positive; weir, as everybody else, the other way.
  bool Offset(int64_t& seconds) noexcept {
    int64_t west = 0;
    if (!Clock(24, west)) {
      return false;
    }
    seconds = -west;
    return true;
  }

  bool Day(YearlyDay& day) noexcept {
    bool is_good = false;
    if (Eat('M')) {
      day.kind = YearlyDay::Kind::kMonthWeekDay;
      is_good = Number(1, 12, day.month) && Eat('.') && Number(1, 5, day.week) && Eat('.') &&
                Number(0, 6, day.day);
    } else if (Eat('J')) {
      day.kind = YearlyDay::Kind::kJulianNoLeap;
      is_good = Number(1, 365, day.day);
    } else {
      day.kind = YearlyDay::Kind::kDayOfYear;
      is_good = Number(0, 365, day.day);
    }
    day.time = int64_t{2} * 3600;
    return is_good && (!Eat('/') || Clock(167, day.time));
  }

  std::string_view text_;
};

int64_t TimeZone::YearlyDay::LocalSeconds(int64_t year) const noexcept {
  static constexpr std::array<int, 13> kBefore = {0,   31,  59,  90,  120, 151, 181,
                                                  212, 243, 273, 304, 334, 365};
  const int64_t first = DaysToYear(year);
  int64_t in_year = day;
  if (kind == Kind::kJulianNoLeap) {
    in_year = day - 1 + (IsLeap(year) && day >= 60 ? 1 : 0);
  } else if (kind == Kind::kMonthWeekDay) {
    const auto days_before = [&](int months) {
      return int64_t{kBefore[static_cast<size_t>(months)]} + (IsLeap(year) && months >= 2 ? 1 : 0);
    };
    const int64_t month_begin = days_before(month - 1);
    const int64_t month_end = days_before(month);
    const int64_t weekday = (first + month_begin + 4) - 7 * FloorDiv(first + month_begin + 4, 7);
    in_year = month_begin + (day - weekday + 7) % 7 + int64_t{7} * (week - 1);
    while (in_year >= month_end) {  // week 5 means the last one
      in_year -= 7;
    }
  }
  return (first + in_year) * kDaySeconds + time;
}

std::string TimeZone::Reader::ReadHeader(Header& header) {
  if (bytes_.size() - at_ < kHeaderBytes) {
    return "it ends inside a header";
  }
  if (std::memcmp(bytes_.data() + at_, "TZif", 4) != 0) {
    return "it does not begin with \"TZif\"";
  }
  header.version = bytes_[at_ + 4];
  if (header.version != '\0' && (header.version < '2' || header.version > '9')) {
    return "its version is not known";
  }
  const auto count = [&](size_t index) {
    return static_cast<uint64_t>(BigEndian(at_ + 20 + 4 * index, 4)) & 0xffffffffu;
  };
  header.utc_indicators = count(0);
  header.standard_indicators = count(1);
  header.leaps = count(2);
  header.times = count(3);
  header.types = count(4);
  header.chars = count(5);
  at_ += kHeaderBytes;
  return {};
}

std::string TimeZone::Reader::ReadBlock(const Header& header, size_t time_bytes, TimeZone& zone) {
  if (header.types == 0 || header.types > 256 || header.chars == 0 ||
      (header.utc_indicators != 0 && header.utc_indicators != header.types) ||
      (header.standard_indicators != 0 && header.standard_indicators != header.types)) {
    return "its counts contradict one another";
  }
  if (header.leaps != 0) {
    return "it counts leap seconds, which Unix time does not (a \"right\" zone)";
  }
  const size_t times_at = at_;
  const size_t indexes_at = times_at + header.times * time_bytes;
  const size_t types_at = indexes_at + header.times;
  std::vector<int32_t> types;
  for (size_t i = 0; i < header.types; ++i) {
    const int64_t offset = BigEndian(types_at + 6 * i, 4);
    if (offset > kMaxOffsetSeconds || offset < -kMaxOffsetSeconds) {
      return "an offset is more than 26 hours from UTC";
    }
    types.push_back(static_cast<int32_t>(offset));
  }
  zone.transitions_.reserve(header.times);
  zone.offsets_.reserve(header.times + 1);
  zone.offsets_.push_back(types.front());
  for (size_t i = 0; i < header.times; ++i) {
    const int64_t time = BigEndian(times_at + i * time_bytes, time_bytes);
    const size_t type = static_cast<unsigned char>(bytes_[indexes_at + i]);
    if (type >= types.size()) {
      return "a transition leads to a type that is not there";
    }
    if (!zone.transitions_.empty() && time <= zone.transitions_.back()) {
      return "its transitions are not in order";
    }
    zone.transitions_.push_back(time);
    zone.offsets_.push_back(types[type]);
  }
  at_ += header.BlockBytes(time_bytes);
  return {};
}

std::string TimeZone::Reader::ReadFooter(TimeZone& zone) {
  const std::string_view rest(bytes_.data() + at_, bytes_.size() - at_);
  const size_t end = rest.find('\n', 1);
  if (!rest.starts_with('\n') || end == std::string_view::npos) {
    return "its footer is cut off";
  }
  const std::string_view text = rest.substr(1, end - 1);
  if (text.empty()) {
    return {};
  }
  zone.has_footer_ = true;
  return FooterParser(text).Parse(zone.footer_) ? std::string()
                                                : "its footer is not a rule: " + Quoted(text);
}

std::string TimeZone::Reader::Read(TimeZone& zone) {
  Header header;
  std::string wrong = ReadHeader(header);
  if (!wrong.empty()) {
    return wrong;
  }
  size_t time_bytes = 4;
  if (header.version != '\0') {  // the first block is for readers of version 1
    if (header.BlockBytes(time_bytes) > bytes_.size() - at_) {
      return "it ends inside its first block";
    }
    at_ += header.BlockBytes(time_bytes);
    time_bytes = 8;
    wrong = ReadHeader(header);
    if (!wrong.empty()) {
      return wrong;
    }
  }
  if (header.BlockBytes(time_bytes) > bytes_.size() - at_) {
    return "it ends inside its data";
  }
  wrong = ReadBlock(header, time_bytes, zone);
  return wrong.empty() && time_bytes == 8 ? ReadFooter(zone) : wrong;
}

Result<std::shared_ptr<const TimeZone>> TimeZone::FromBytes(std::span<const char> bytes) {
  const std::shared_ptr<TimeZone> zone(new TimeZone());
  const std::string wrong =
      bytes.size() > kMaxFileBytes ? "it is larger than 256 KiB" : Reader(bytes).Read(*zone);
  if (!wrong.empty()) {
    return Error::Invalid("the zone data is not valid: " + wrong);
  }
  return std::shared_ptr<const TimeZone>(zone);
}

Result<std::shared_ptr<const TimeZone>> TimeZone::Load(std::string_view name) {
  if (name == "UTC") {
    const std::shared_ptr<TimeZone> utc(new TimeZone());
    utc->offsets_.push_back(0);
    return std::shared_ptr<const TimeZone>(utc);
  }
  if (name.size() > kMaxNameBytes) {
    return Error::Invalid(Quoted(name) + " is not a time zone: it has " +
                          std::to_string(name.size()) + " bytes, a name has " +
                          std::to_string(kMaxNameBytes) + " at most");
  }
  if (!IsPlainName(name)) {
    return Error::Invalid(Quoted(name) +
                          " is not a time zone: a name is made of letters, digits, '_', '+' and "
                          "'-', in parts joined by '/', such as \"Europe/Berlin\" or \"UTC\"");
  }
  const Result<std::string> bytes = ReadZoneFile(name);
  if (!bytes) {
    return bytes.error();
  }
  Result<std::shared_ptr<const TimeZone>> zone = FromBytes(*bytes);
  if (!zone) {
    return Unreadable(name, zone.error().message);
  }
  return zone;
}

TimeZone::Segment TimeZone::FooterSegmentAt(const Footer& footer, int64_t unix_seconds) noexcept {
  if (!footer.has_daylight) {
    return {footer.standard_offset, std::numeric_limits<int64_t>::max()};
  }

  // A rule's time may lie a week outside its year, hence two years to either side. Where two
  // changes coincide the later in this order wins: that is how "daylight time all year" is written.
  struct Change {
    int64_t at = 0;
    int64_t offset = 0;
  };

  constexpr size_t kYears = 5;
  std::array<Change, 2 * kYears> changes;
  const int64_t middle = YearOf(unix_seconds + footer.standard_offset);
  for (size_t i = 0; i < kYears; ++i) {
    const int64_t year = middle + static_cast<int64_t>(i) - 2;
    changes[2 * i] = {footer.daylight_begin.LocalSeconds(year) - footer.standard_offset,
                      footer.daylight_offset};
    changes[2 * i + 1] = {footer.daylight_end.LocalSeconds(year) - footer.daylight_offset,
                          footer.standard_offset};
  }
  Segment segment{footer.standard_offset, std::numeric_limits<int64_t>::max()};
  int64_t began = std::numeric_limits<int64_t>::min();
  for (const Change& change : changes) {
    if (change.at > unix_seconds) {
      segment.end = std::min(segment.end, change.at);
    } else if (change.at >= began) {
      began = change.at;
      segment.offset = change.offset;
    }
  }
  return segment;
}

TimeZone::Segment TimeZone::SegmentAt(int64_t unix_seconds) const noexcept {
  const auto next = std::upper_bound(transitions_.begin(), transitions_.end(), unix_seconds);
  if (next == transitions_.end() && has_footer_) {
    return FooterSegmentAt(footer_, unix_seconds);
  }
  const auto index = static_cast<size_t>(next - transitions_.begin());
  return {offsets_[index],
          next == transitions_.end() ? std::numeric_limits<int64_t>::max() : *next};
}

int64_t TimeZone::OffsetAt(int64_t unix_seconds) const noexcept {
  return SegmentAt(std::clamp(unix_seconds, -kFarthest, kFarthest)).offset;
}

int64_t TimeZone::ToUnix(int64_t local_seconds) const noexcept {
  const int64_t local = std::clamp(local_seconds, -kFarthest, kFarthest);
  // Before this instant no offset can bring local time up to `local`; the walk from here ends at
  // the latest kMaxOffsetSeconds after `local`.
  int64_t instant = local - kMaxOffsetSeconds;
  for (;;) {
    const Segment segment = SegmentAt(instant);
    instant = std::max(instant, local - segment.offset);
    if (instant < segment.end) {
      return instant;
    }
    instant = segment.end;
  }
}

}  // namespace weir::base
