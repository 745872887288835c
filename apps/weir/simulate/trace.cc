#include "apps/weir/simulate/trace.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <unordered_map>
#include <utility>

#include "weir/decision.h"
#include "weir/quota.h"

#include "apps/weir/text.h"

namespace weir::simulate {

using app::ParseWhole;
namespace {

constexpr size_t kNone = ~size_t{0};
constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kMilliNs = 1'000'000;
// Some centuries, and far from the end of 64 bits of nanoseconds.
constexpr uint64_t kMaxSeconds = 8'000'000'000;

// Which field is what.
struct Layout {
  size_t time = 0;
  size_t key = 1;
  size_t cost = 2;
  size_t service = kNone;
  int64_t time_unit_ns = kSecondNs;
  int64_t service_unit_ns = kSecondNs;
};

struct ColumnName {
  std::string_view name;
  size_t Layout::* column;
  int64_t Layout::* unit = nullptr;  // of times
  int64_t unit_ns = 0;
};

constexpr std::array kColumnNames = {
    ColumnName{"time", &Layout::time, &Layout::time_unit_ns, kSecondNs},
    ColumnName{"seconds", &Layout::time, &Layout::time_unit_ns, kSecondNs},
    ColumnName{"time_s", &Layout::time, &Layout::time_unit_ns, kSecondNs},
    ColumnName{"t", &Layout::time, &Layout::time_unit_ns, kSecondNs},
    ColumnName{"time_seconds", &Layout::time, &Layout::time_unit_ns, kSecondNs},
    ColumnName{"t_ms", &Layout::time, &Layout::time_unit_ns, kMilliNs},
    ColumnName{"time_ms", &Layout::time, &Layout::time_unit_ns, kMilliNs},
    ColumnName{"key", &Layout::key},
    ColumnName{"client", &Layout::key},
    ColumnName{"user", &Layout::key},
    ColumnName{"ip", &Layout::key},
    ColumnName{"cost", &Layout::cost},
    ColumnName{"tokens", &Layout::cost},
    ColumnName{"units", &Layout::cost},
    ColumnName{"service", &Layout::service, &Layout::service_unit_ns, kSecondNs},
    ColumnName{"duration", &Layout::service, &Layout::service_unit_ns, kSecondNs},
    ColumnName{"latency", &Layout::service, &Layout::service_unit_ns, kSecondNs},
    ColumnName{"service_ms", &Layout::service, &Layout::service_unit_ns, kMilliNs},
    ColumnName{"duration_ms", &Layout::service, &Layout::service_unit_ns, kMilliNs},
    ColumnName{"latency_ms", &Layout::service, &Layout::service_unit_ns, kMilliNs},
};

// Text from a file as an error may show it: short, and nothing that a terminal would obey.
std::string Shown(std::string_view text) {
  std::string out(text.substr(0, 40));
  std::replace_if(out.begin(), out.end(), [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return "'" + out + (text.size() > 40 ? "...'" : "'");
}

// The file's name for headings: its end if it is long, in characters that every output has.
std::string Title(const std::string& path) {
  constexpr size_t kMost = 32;
  std::string title = path.substr(path.find_last_of('/') + 1);
  if (title.size() > kMost)
    title.replace(0, title.size() - kMost + 3, "...");
  std::replace_if(title.begin(), title.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return title;
}

std::string_view Trim(std::string_view text) {
  const size_t from = text.find_first_not_of(" \r");
  if (from == std::string_view::npos)
    return {};
  return text.substr(from, text.find_last_not_of(" \r") - from + 1);
}

// Tabs and commas separate fields that may be empty, blanks do not.
std::vector<std::string_view> Split(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  while (true) {
    const size_t end = std::min(line.find(separator), line.size());
    std::string_view field = Trim(line.substr(0, end));
    if (field.size() >= 2 && field.front() == '"' && field.back() == '"')
      field = field.substr(1, field.size() - 2);
    if (separator != ' ' || !field.empty())
      fields.push_back(field);
    if (end == line.size())
      return fields;
    line.remove_prefix(end + 1);
  }
}

// A decimal number of units of `unit_ns`; what is finer than a nanosecond is cut.
std::optional<Duration> ParseTime(std::string_view text, int64_t unit_ns) {
  const size_t dot = std::min(text.find('.'), text.size());
  const auto whole = ParseWhole(text.substr(0, dot));
  if (!whole || *whole > kMaxSeconds * static_cast<uint64_t>(kSecondNs / unit_ns))
    return std::nullopt;
  int64_t ns = static_cast<int64_t>(*whole) * unit_ns;
  int64_t place = unit_ns;
  for (const char c : text.substr(std::min(dot + 1, text.size()))) {
    if (c < '0' || c > '9')
      return std::nullopt;
    place /= 10;
    ns += (c - '0') * place;
  }
  return Duration(ns);
}

class Reader {
 public:
  explicit Reader(std::string_view name) : name_(name) {}

  Result<void> Take(std::string_view line) {
    ++number_;
    if (line.size() > kMaxTraceLine)
      return Bad("the line has more than " + std::to_string(kMaxTraceLine) + " bytes");
    const std::string_view text = Trim(line);
    if (text.empty() || text.front() == '#')
      return {};
    if (separator_ == 0) {
      const bool tabs = text.find('\t') != std::string_view::npos;
      separator_ = tabs ? '\t' : text.find(',') != std::string_view::npos ? ',' : ' ';
      const auto fields = Split(text, separator_);
      // A heading has a name where a request has digits.
      const char first = fields[0].empty() ? '?' : fields[0][0];
      if ((first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z'))
        return TakeHeading(fields);
    }
    return TakeRequest(Split(text, separator_));
  }

  // By time, then by line. (std::stable_sort of libstdc++ does not compile with clang's warnings.)
  static void Sort(std::vector<Request>& requests) {
    std::vector<std::pair<Duration, size_t>> order;
    order.reserve(requests.size());
    for (const Request& request : requests) order.emplace_back(request.at, order.size());
    std::sort(order.begin(), order.end());
    std::vector<Request> sorted;
    sorted.reserve(requests.size());
    for (const auto& [at, line] : order) sorted.push_back(requests[line]);
    requests = std::move(sorted);
  }

  Result<Workload> Finish(Duration window) {
    if (workload_.requests.empty())
      return Error::Invalid(
          name_ +
          ": holds no requests that cost anything; expected lines of 'seconds [key] "
          "[cost]'");
    // Logs are written when requests end, and by several threads: the order of lines is not that of
    // times. Lines of one instant keep theirs.
    if (late_ > 0)
      Sort(workload_.requests);
    const Duration first = workload_.requests.front().at;
    const Duration turn = first - first % window;
    for (Request& request : workload_.requests) request.at -= turn;
    const size_t keys = workload_.keys.size();
    workload_.name = Title(name_);
    workload_.line = "recorded, " + std::to_string(keys) + (keys == 1 ? " key" : " keys");
    if (late_ > 0)
      workload_.line += ", " + std::to_string(late_) + " late and sorted";
    if (free_ > 0)
      workload_.line += ", " + std::to_string(free_) + " of cost 0 left out";
    return std::move(workload_);
  }

  Error Bad(const std::string& what) const {
    return Error::Invalid(name_ + ":" + std::to_string(number_) + ": " + what);
  }

 private:
  Result<void> TakeHeading(const std::vector<std::string_view>& fields) {
    layout_ = {.time = kNone, .key = kNone, .cost = kNone};
    for (size_t i = 0; i < fields.size(); ++i) {
      for (const ColumnName& known : kColumnNames) {
        if (known.name != fields[i] || layout_.*known.column != kNone)
          continue;
        layout_.*known.column = i;
        if (known.unit != nullptr)
          layout_.*known.unit = known.unit_ns;
      }
    }
    if (layout_.time == kNone) {
      return Bad(Shown(fields[0]) +
                 " is neither a time in seconds, as in 12.5, nor a heading with a column called "
                 "time, seconds, t or t_ms");
    }
    return {};
  }

  Result<void> TakeRequest(const std::vector<std::string_view>& fields) {
    auto field = [&](size_t column) -> std::optional<std::string_view> {
      if (column >= fields.size())
        return std::nullopt;
      return fields[column];
    };
    const std::string_view time = field(layout_.time).value_or("");
    const auto at = ParseTime(time, layout_.time_unit_ns);
    if (!at) {
      return Bad("the time is " + Shown(time) + "; expected " +
                 (layout_.time_unit_ns == kSecondNs ? "seconds" : "milliseconds") +
                 " from 0 on, as in 12.5, counted from any start");
    }
    Request request{.at = *at};
    auto key = KeyOf(field(layout_.key).value_or("all"));
    if (!key)
      return key.error();
    request.key = *key;
    // Servers log "-" where there was nothing to count.
    if (const auto cost = field(layout_.cost); cost && *cost != "-") {
      const auto units = ParseWhole(*cost);
      if (!units || *units > static_cast<uint64_t>(Quota::kMaxLimit)) {
        return Bad("the cost is " + Shown(*cost) + "; expected a whole number from 0 to " +
                   std::to_string(Quota::kMaxLimit));
      }
      if (*units == 0) {  // asks for nothing, so no limit has a say in it
        ++free_;
        return {};
      }
      request.cost = static_cast<uint32_t>(*units);
    }
    if (const auto service = field(layout_.service); service && *service != "-") {
      const auto lasted = ParseTime(*service, layout_.service_unit_ns);
      if (!lasted || *lasted > Quota::kMaxLease) {
        return Bad("the time at work is " + Shown(*service) + "; expected " +
                   (layout_.service_unit_ns == kSecondNs ? "seconds" : "milliseconds") +
                   " up to 366 days, as in 0.25, or - where it is not known");
      }
      request.service = std::max(*lasted, Duration(1));
    }
    if (workload_.requests.size() == kMaxRequests)
      return Bad("more than " + std::to_string(kMaxRequests) + " requests; cut the file");
    late_ += static_cast<uint64_t>(*at < last_);
    last_ = std::max(last_, *at);
    workload_.requests.push_back(request);
    return {};
  }

  Result<uint32_t> KeyOf(std::string_view text) {
    if (text.empty())
      return Bad("the key is empty; expected text, or no key column at all");
    if (text.front() == '"')
      return Bad("the key " + Shown(text) + " is cut: a separator inside quotes is not read");
    if (text.size() > kMaxKeyBytes || text.find('\0') != std::string_view::npos)
      return Bad("the key " + Shown(text) + " is too long or has a NUL byte");
    const auto next = static_cast<uint32_t>(workload_.keys.size());
    const auto [found, is_new] = index_.try_emplace(std::string(text), next);
    if (is_new) {
      if (next == kMaxTraceKeys)
        return Bad("more than " + std::to_string(kMaxTraceKeys) + " keys; cut the file");
      workload_.keys.emplace_back(text);
    }
    return found->second;
  }

  std::string name_;
  uint64_t number_ = 0;
  char separator_ = 0;  // not known yet
  Layout layout_;
  Duration last_{};    // the latest time so far
  uint64_t late_ = 0;  // lines whose time lies before one above them
  uint64_t free_ = 0;  // lines of cost 0
  Workload workload_;
  std::unordered_map<std::string, uint32_t> index_;
};

// One line without its end. False at the end of the input. A line that is too long is cut one byte
// beyond what is allowed: a file without line ends must not fill the memory.
bool NextLine(std::streambuf& in, std::string& line) {
  line.clear();
  int c = in.sbumpc();
  if (c == std::char_traits<char>::eof())
    return false;
  for (; c != std::char_traits<char>::eof() && c != '\n'; c = in.sbumpc()) {
    line.push_back(static_cast<char>(c));
    if (line.size() > kMaxTraceLine)
      return true;
  }
  return true;
}

}  // namespace

Result<Workload> ReadTrace(std::istream& in, std::string_view name, Duration window,
                           const Progress& progress) {
  Reader reader(name);
  std::string line;
  for (uint64_t lines = 1; NextLine(*in.rdbuf(), line); ++lines) {
    if (auto taken = reader.Take(line); !taken)
      return taken.error();
    if (progress && lines % kProgressLines == 0)
      progress(lines);
  }
  return reader.Finish(window);
}

Result<Workload> LoadTrace(const std::string& path, Duration window, const Progress& progress) {
  std::ifstream in(path, std::ios::binary);
  // A directory opens, and fails at the first byte.
  if (!in || (in.peek() == std::char_traits<char>::eof() && in.bad())) {
    return Error::Invalid("--trace: cannot read " + Shown(path) + ": " + std::strerror(errno));
  }
  in.clear();
  return ReadTrace(in, path, window, progress);
}

Duration WholeWindows(const Workload& workload, Duration window) noexcept {
  if (workload.requests.empty())
    return window;
  return (workload.requests.back().at / window + 1) * window;
}

}  // namespace weir::simulate
