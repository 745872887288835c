#include "base/time_zone.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/spelling.h"

namespace weir::base {
namespace {

using Zone = std::shared_ptr<const TimeZone>;

// Sets an environment variable for the life of the object.
class ScopedEnvironment {
 public:
  ScopedEnvironment(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* old = std::getenv(name_.c_str())) {
      old_ = old;
    }
    ::setenv(name_.c_str(), value.c_str(), 1);
    ::tzset();
  }

  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;

  ~ScopedEnvironment() {
    if (old_) {
      ::setenv(name_.c_str(), old_->c_str(), 1);
    } else {
      ::unsetenv(name_.c_str());
    }
    ::tzset();
  }

 private:
  std::string name_;
  std::optional<std::string> old_;
};

Zone MustLoad(std::string_view name) {
  Result<Zone> zone = TimeZone::Load(name);
  EXPECT_TRUE(zone.ok()) << (zone ? "" : zone.error().message);
  return zone ? *zone : nullptr;
}

int64_t Civil(int year, unsigned month, unsigned day, int64_t hour = 0, int64_t minute = 0) {
  const std::chrono::sys_days days =
      std::chrono::year(year) / std::chrono::month(month) / std::chrono::day(day);
  return int64_t{days.time_since_epoch().count()} * 86400 + hour * 3600 + minute * 60;
}

int64_t OffsetByTheCLibrary(int64_t unix_seconds) {
  const auto when = static_cast<time_t>(unix_seconds);
  struct tm local{};
  ::localtime_r(&when, &local);
  return local.tm_gmtoff;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Writes zone files, right or wrong.
struct ZoneFile {
  char version = '2';
  std::vector<std::pair<int64_t, int>> transitions = {};
  std::vector<int32_t> offsets = {0};
  uint32_t leaps = 0;
  std::string footer = {};

  static void Put(std::string& out, uint64_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
      out += static_cast<char>(value >> shift & 0xff);
    }
  }

  [[nodiscard]] std::string Block(int time_bytes) const {
    std::string out = "TZif";
    out += version;
    out.append(15, '\0');
    Put(out, 0, 4);
    Put(out, 0, 4);
    Put(out, leaps, 4);
    Put(out, transitions.size(), 4);
    Put(out, offsets.size(), 4);
    Put(out, 4, 4);
    for (const auto& [when, type] : transitions) {
      Put(out, static_cast<uint64_t>(when), time_bytes);
    }
    for (const auto& [when, type] : transitions) {
      out += static_cast<char>(type);
    }
    for (const int32_t offset : offsets) {
      Put(out, static_cast<uint32_t>(offset), 4);
      Put(out, 0, 2);
    }
    out += std::string("XYZ\0", 4);
    out.append(leaps * (static_cast<size_t>(time_bytes) + 4), '\0');
    return out;
  }

  [[nodiscard]] std::string Bytes() const {
    return version == '\0' ? Block(4) : Block(4) + Block(8) + "\n" + footer + "\n";
  }

  [[nodiscard]] Result<Zone> Read() const { return TimeZone::FromBytes(Bytes()); }
};

constexpr std::array kZones = {"America/New_York",  "Europe/Berlin",    "Australia/Lord_Howe",
                               "Pacific/Apia",      "America/St_Johns", "America/Sao_Paulo",
                               "Africa/Casablanca", "Asia/Kathmandu",   "Europe/Dublin",
                               "Asia/Tehran",       "America/Juneau",   "Pacific/Kwajalein",
                               "Asia/Gaza",         "America/Nuuk",     "Antarctica/Troll",
                               "America/Santiago",  "Etc/GMT+12",       "Pacific/Kiritimati"};

TEST(TimeZone, AgreesWithTheCLibraryFrom1900To2200) {
  std::mt19937_64 random(2026);
  std::uniform_int_distribution<int64_t> instants(Civil(1900, 1, 1), Civil(2200, 1, 1));
  for (const std::string name : kZones) {
    const Zone zone = MustLoad(name);
    const ScopedEnvironment environment("TZ", name);
    for (int i = 0; i < 5000; ++i) {
      const int64_t instant = instants(random);
      ASSERT_EQ(zone->OffsetAt(instant), OffsetByTheCLibrary(instant)) << name << " " << instant;
    }
  }
}

TEST(TimeZone, AgreesWithTheCLibraryToTheSecondAtEveryChange) {
  for (const std::string name : kZones) {
    const Zone zone = MustLoad(name);
    const ScopedEnvironment environment("TZ", name);
    int changes = 0;
    constexpr int64_t kStep = 86400;
    for (int64_t day = Civil(1900, 1, 1); day < Civil(2120, 1, 1); day += kStep) {
      if (zone->OffsetAt(day) == zone->OffsetAt(day + kStep)) {
        continue;
      }
      ++changes;
      int64_t before = day;
      int64_t after = day + kStep;
      while (after - before > 1) {
        const int64_t middle = before + (after - before) / 2;
        (zone->OffsetAt(middle) == zone->OffsetAt(day) ? before : after) = middle;
      }
      ASSERT_EQ(zone->OffsetAt(before), OffsetByTheCLibrary(before)) << name << " " << before;
      ASSERT_EQ(zone->OffsetAt(after), OffsetByTheCLibrary(after)) << name << " " << after;
    }
    EXPECT_GE(changes, name == "Etc/GMT+12" ? 0 : 1) << name;
  }
}

TEST(TimeZone, FollowsPosixRulesAsTheCLibraryDoes) {
  const std::array rules = {"CET-1CEST,M3.5.0,M10.5.0/3",
                            "IST-1GMT0,M10.5.0,M3.5.0/1",
                            "<+03>-3<+04>,J60/0,J300",
                            "<-0330>3:30:15<-02>2,59/1:30,300/3:15:30",
                            "EET-2EEST,M3.4.4/50,M10.4.4/50",
                            "<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
                            "AEST-10AEDT,M10.1.0,M4.1.0/3",
                            "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
                            "ABC5",
                            "XYZ0XYS-2,M2.1.6/12,M2.4.6/-12"};
  std::mt19937_64 random(7);
  std::uniform_int_distribution<int64_t> instants(Civil(1970, 1, 8), Civil(2400, 1, 1));
  for (const std::string rule : rules) {
    ZoneFile file;
    file.footer = rule;
    const Result<Zone> zone = file.Read();
    ASSERT_TRUE(zone.ok()) << rule;
    const ScopedEnvironment environment("TZ", rule);
    for (int i = 0; i < 5000; ++i) {
      const int64_t instant = instants(random);
      ASSERT_EQ((*zone)->OffsetAt(instant), OffsetByTheCLibrary(instant)) << rule << " " << instant;
    }
  }
}

TEST(TimeZone, DaylightTimeMayLastAllYear) {
  ZoneFile file;
  file.footer = "EST5EDT,0/0,J365/25";
  const Result<Zone> zone = file.Read();
  ASSERT_TRUE(zone.ok());
  for (int64_t hour = Civil(2023, 12, 1); hour < Civil(2025, 2, 1); hour += 3600) {
    ASSERT_EQ((*zone)->OffsetAt(hour), -4 * 3600) << hour;
  }
}

TEST(TimeZone, MidnightInAGapIsTheFirstInstantOfTheNewDay) {
  // Sao Paulo went from 00:00 straight to 01:00 on 2018-11-04.
  const Zone zone = MustLoad("America/Sao_Paulo");
  const int64_t change = Civil(2018, 11, 4, 3);
  EXPECT_EQ(zone->ToUnix(Civil(2018, 11, 4)), change);
  EXPECT_EQ(zone->ToUnix(Civil(2018, 11, 4, 0, 30)), change);
  EXPECT_EQ(zone->ToUnix(Civil(2018, 11, 4, 1)), change);
  EXPECT_EQ(zone->ToUnix(Civil(2018, 11, 4, 1) + 1), change + 1);
  EXPECT_EQ(zone->ToUnix(Civil(2018, 11, 4) - 1), change - 1);
}

TEST(TimeZone, AnHourLivedTwiceIsItsFirstTime) {
  // Berlin lived 02:00 to 03:00 twice on 2024-10-27, first in summer time (UTC+2).
  const Zone zone = MustLoad("Europe/Berlin");
  EXPECT_EQ(zone->ToUnix(Civil(2024, 10, 27, 2, 30)), Civil(2024, 10, 27, 0, 30));
  EXPECT_EQ(zone->ToUnix(Civil(2024, 10, 27, 3)), Civil(2024, 10, 27, 2));
}

TEST(TimeZone, TheDayThatApiaSkippedBeginsWithTheNextOne) {
  const Zone zone = MustLoad("Pacific/Apia");
  const int64_t change = Civil(2011, 12, 30, 10);
  EXPECT_EQ(zone->ToUnix(Civil(2011, 12, 30)), change);
  EXPECT_EQ(zone->ToUnix(Civil(2011, 12, 31)), change);
  EXPECT_EQ(zone->ToUnix(Civil(2011, 12, 30) - 1), change - 1);
}

TEST(TimeZone, ToUnixIsTheEarliestInstantThatReachesTheLocalTime) {
  std::mt19937_64 random(11);
  std::uniform_int_distribution<int64_t> minutes(Civil(1973, 1, 1) / 60, Civil(2100, 1, 1) / 60);
  for (const std::string name : {"America/St_Johns", "America/Sao_Paulo", "Australia/Lord_Howe",
                                 "Pacific/Apia", "Pacific/Kwajalein", "Africa/Casablanca"}) {
    const Zone zone = MustLoad(name);
    int64_t previous_local = 0;
    for (int i = 0; i < 300; ++i) {
      int64_t local = minutes(random) * 60;
      if (i % 2 != 0) {  // half of them beside a change of offset
        int64_t day = local;
        while (zone->OffsetAt(day) == zone->OffsetAt(day + 86400) && day < Civil(2100, 1, 1)) {
          day += 86400;
        }
        local = day + zone->OffsetAt(day) + minutes(random) % 2880 * 60;
      }
      int64_t earliest = local - TimeZone::kMaxOffsetSeconds;
      while (earliest + zone->OffsetAt(earliest) < local) {
        earliest += 60;  // since 1973 every change falls on a whole minute
      }
      ASSERT_EQ(zone->ToUnix(local), earliest) << name << " " << local;
      if (local >= previous_local) {
        ASSERT_GE(zone->ToUnix(local), zone->ToUnix(previous_local));
      }
      previous_local = local;
    }
  }
}

TEST(TimeZone, TheEndsOfTimeDoNotOverflow) {
  for (const std::string name : {"UTC", "Europe/Berlin", "Europe/Dublin", "Asia/Kathmandu"}) {
    const Zone zone = MustLoad(name);
    for (const int64_t far : {INT64_MIN, INT64_MIN + 1, INT64_MAX - 1, INT64_MAX}) {
      EXPECT_LE(std::abs(zone->OffsetAt(far)), TimeZone::kMaxOffsetSeconds);
      EXPECT_EQ(zone->ToUnix(far) > 0, far > 0);
    }
  }
}

TEST(TimeZone, EveryZoneOfTheDatabaseLoads) {
  int zones = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("/usr/share/zoneinfo")) {
    const std::string path = entry.path().string();
    if (!entry.is_regular_file() || path.find("/right/") != std::string::npos ||
        !ReadFile(path).starts_with("TZif")) {
      continue;
    }
    const Result<Zone> zone = TimeZone::FromBytes(ReadFile(path));
    EXPECT_TRUE(zone.ok()) << path << ": " << zone.error().message;
    ++zones;
  }
  EXPECT_GT(zones, 300) << "the package tzdata is needed";
}

TEST(TimeZone, AFileCutAnywhereIsRefused) {
  for (const std::string name : {"Europe/Berlin", "America/Nuuk", "Etc/UTC"}) {
    const std::string whole = ReadFile("/usr/share/zoneinfo/" + name);
    ASSERT_FALSE(whole.empty());
    ASSERT_TRUE(TimeZone::FromBytes(whole).ok());
    for (size_t size = 0; size < whole.size(); ++size) {
      const std::vector<char> part(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
      const Result<Zone> zone = TimeZone::FromBytes(part);
      ASSERT_FALSE(zone.ok()) << name << " cut to " << size;
      ASSERT_FALSE(zone.error().message.empty());
    }
  }
}

TEST(TimeZone, ADamagedByteNeverGivesAnOffsetOutOfRange) {
  const std::string whole = ReadFile("/usr/share/zoneinfo/Europe/Dublin");
  int accepted = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      const Result<Zone> zone = TimeZone::FromBytes(damaged);
      if (!zone) {
        continue;
      }
      ++accepted;
      for (const int64_t instant : {Civil(1890, 1, 1), Civil(2024, 7, 1), Civil(2150, 1, 1)}) {
        ASSERT_LE(std::abs((*zone)->OffsetAt(instant)), TimeZone::kMaxOffsetSeconds);
        const int64_t reached = (*zone)->ToUnix(instant);
        ASSERT_GE(reached + (*zone)->OffsetAt(reached), instant);
      }
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(TimeZone, ReadsEveryVersion) {
  for (const char version : {'\0', '2', '3', '4'}) {
    ZoneFile file;
    file.version = version;
    file.offsets = {3600, 7200};
    file.transitions = {{1000, 1}, {2000, 0}};
    const Result<Zone> zone = file.Read();
    ASSERT_TRUE(zone.ok()) << zone.error().message;
    EXPECT_EQ((*zone)->OffsetAt(999), 3600);
    EXPECT_EQ((*zone)->OffsetAt(1000), 7200);
    EXPECT_EQ((*zone)->OffsetAt(1999), 7200);
    EXPECT_EQ((*zone)->OffsetAt(2000), 3600);
  }
}

TEST(TimeZone, SaysWhatIsWrongWithTheData) {
  const auto expect = [](const ZoneFile& file, std::string_view fragment) {
    const Result<Zone> zone = file.Read();
    ASSERT_FALSE(zone.ok()) << fragment;
    EXPECT_NE(zone.error().message.find(fragment), std::string::npos) << zone.error().message;
  };
  expect({.version = '1'}, "version");
  expect({.transitions = {{5, 0}, {5, 0}}}, "not in order");
  expect({.transitions = {{5, 1}}}, "type that is not there");
  expect({.offsets = {}}, "counts");
  expect({.offsets = {26 * 3600 + 1}}, "26 hours");
  expect({.leaps = 1}, "leap seconds");
  for (const std::string footer :
       {"X", "AB3", "ABC", "ABC25", "ABC3DEF", "ABC3DEF,M3.5.0", "ABC3DEF,M13.1.0,M3.1.0",
        "ABC3DEF,M3.6.0,M4.1.0", "ABC3DEF,M3.5.7,M4.1.0", "ABC3DEF,J0,J5", "ABC3DEF,366,5",
        "ABC3DEF,M3.5.0/168,M4.1.0", "ABC3DEF,M3.5.0,M4.1.0x", "<AB>3", "<ABC3", "ABC3:60",
        "ABC-24DEF-24:59:59,J1,J2/999", "ABC3DEF,M3.5.0,M4.1.0/"}) {
    ZoneFile file;
    file.footer = footer;
    expect(file, "footer");
  }
  ZoneFile huge;
  huge.transitions.assign(40000, {0, 0});
  expect(huge, "256 KiB");
}

TEST(TimeZone, RefusesNamesThatAreNotNames) {
  const std::string long_name(65, 'A');
  for (const std::string_view name :
       {std::string_view(""), std::string_view("../etc/passwd"), std::string_view("/etc/passwd"),
        std::string_view("Europe/../Europe/Berlin"), std::string_view("Europe//Berlin"),
        std::string_view("Europe/Berlin/"), std::string_view("Europe/Ber\0lin", 14),
        std::string_view("Europe/Berl\xc3\xadn"), std::string_view(long_name),
        std::string_view("./UTC"), std::string_view(":UTC"), std::string_view("New York")}) {
    const Result<Zone> zone = TimeZone::Load(name);
    ASSERT_FALSE(zone.ok()) << name;
    EXPECT_EQ(zone.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(zone.error().message.find("is not a time zone"), std::string::npos)
        << zone.error().message;
  }
}

TEST(TimeZone, SuggestsTheNameThatWasMeant) {
  const std::array<std::pair<std::string_view, std::string_view>, 6> cases = {{
      {"Europe/Berln", "\"Europe/Berlin\""},
      {"europe/berlin", "\"Europe/Berlin\""},
      {"Berlin", "\"Europe/Berlin\""},
      {"Amercia/New_York", "\"America/New_York\""},
      {"utc", "\"UTC\""},
      {"Asia/Katmndu", "\"Asia/Katmandu\""},
  }};
  for (const auto& [name, meant] : cases) {
    const Result<Zone> zone = TimeZone::Load(name);
    ASSERT_FALSE(zone.ok());
    EXPECT_NE(zone.error().message.find(Quoted(name)), std::string::npos);
    EXPECT_NE(zone.error().message.find("did you mean " + std::string(meant)), std::string::npos)
        << zone.error().message;
  }
  const Result<Zone> nothing = TimeZone::Load("Middle_Earth/Hobbiton");
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().message.find("did you mean"), std::string::npos);
  const Result<Zone> folder = TimeZone::Load("America");
  ASSERT_FALSE(folder.ok());
  EXPECT_NE(folder.error().message.find("folder of zones"), std::string::npos);
}

TEST(TimeZone, UtcNeedsNoDatabase) {
  const ScopedEnvironment environment("TZDIR", "/nonexistent");
  EXPECT_EQ(MustLoad("UTC")->OffsetAt(1234567890), 0);
  EXPECT_EQ(MustLoad("UTC")->ToUnix(1234567890), 1234567890);
  EXPECT_FALSE(TimeZone::Load("Europe/Berlin").ok());
}

TEST(TimeZone, ReadsTheDatabaseThatTzdirNames) {
  const std::string directory =
      testing::TempDir() + "/weir_time_zone_test." + std::to_string(std::random_device()());
  std::filesystem::create_directories(directory + "/Mars");
  std::ofstream(directory + "/Mars/Olympus", std::ios::binary)
      << ZoneFile{.offsets = {4321}}.Bytes();
  std::ofstream(directory + "/Mars/Broken", std::ios::binary) << "TZif";
  {
    const ScopedEnvironment environment("TZDIR", directory);
    EXPECT_EQ(MustLoad("Mars/Olympus")->OffsetAt(0), 4321);
    const Result<Zone> broken = TimeZone::Load("Mars/Broken");
    ASSERT_FALSE(broken.ok());
    EXPECT_EQ(broken.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(broken.error().message.find("Mars/Broken"), std::string::npos);
    EXPECT_NE(TimeZone::Load("Mars/Olimpus").error().message.find("\"Mars/Olympus\""),
              std::string::npos);
  }
  std::filesystem::remove_all(directory);
}

TEST(SpellingDistance, CountsInsertionsDeletionsAndReplacements) {
  EXPECT_EQ(SpellingDistance("", ""), 0u);
  EXPECT_EQ(SpellingDistance("min", "MIN"), 0u);
  EXPECT_EQ(SpellingDistance("mn", "min"), 1u);
  EXPECT_EQ(SpellingDistance("minn", "min"), 1u);
  EXPECT_EQ(SpellingDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(SpellingDistance("", "abc"), 3u);
  EXPECT_GT(SpellingDistance(std::string(65, 'a'), std::string(65, 'a')), 1000u);
}

TEST(Quoted, KeepsToOneLineOfPrintableText) {
  EXPECT_EQ(Quoted("a b"), "\"a b\"");
  EXPECT_EQ(Quoted(std::string_view("a\0\n\"\xff", 5)), "\"a\\x00\\x0a\\x22\\xff\"");
  EXPECT_EQ(Quoted("abcdef", 3), "\"abc...\"");
}

}  // namespace
}  // namespace weir::base
