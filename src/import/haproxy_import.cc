// HAProxy's stick tables: what is tracked, and what is refused by the rate or by the connections of
// what is tracked. Each line that refuses is a group of its own, as all of them are looked at.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/spelling.h"
#include "import/haproxy_condition.h"
#include "import/haproxy_config.h"
#include "import/import.h"
#include "import/predicate.h"
#include "rules/fields.h"

namespace weir::import {

namespace {

constexpr std::string_view kLease = "10min";

struct Table {
  std::map<std::string, std::string> stored;  // counter -> its period, "10s"
};

struct Track {
  std::vector<std::string> per;
  std::string table;
  Predicate when;
  unsigned ipv6_bits = 128;
};

// "10s", "500" (ms), "1m" as a window of ours.
std::optional<std::string> Period(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view unit = text.substr(digits);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kUnits = {
      {{"", "ms"}, {"us", "us"}, {"ms", "ms"}, {"s", "s"}, {"m", "min"}, {"h", "h"}, {"d", "d"}}};
  for (const auto& [theirs, ours] : kUnits) {
    if (unit == theirs && digits != 0) {
      return std::string(text.substr(0, digits)) + std::string(ours);
    }
  }
  return std::nullopt;
}

class Reader {
 public:
  Reader(const ImportOptions& options, Imported& into) : given_(options.attributes), into_(into) {}

  void CollectTables(const HaproxySection& section) {
    for (const HaproxyLine& line : section.lines) {
      if (line.words[0] == "stick-table") {
        ReadTable(line, section.name);
      }
    }
  }

  void Read(const HaproxySection& section) {
    section_ = &section;
    conditions_ = HaproxyConditions();
    tracks_.clear();
    allowed_.clear();
    for (const HaproxyLine& line : section.lines) {
      if (line.words[0] == "acl") {
        conditions_.Define(line);
      }
    }
    for (const HaproxyLine& line : section.lines) {
      try {
        ReadLine(line);
      } catch (const HaproxyRefused& refused) {
        into_.Note(Carry::kDropped, line.place, line.Text() + ": " + refused.message);
      } catch (const std::length_error& error) {
        into_.Note(Carry::kDropped, line.place, line.Text() + ": " + error.what());
      }
    }
  }

 private:
  void ReadTable(const HaproxyLine& line, const std::string& name) {
    Table& table = tables_[name];
    for (size_t i = 1; i < line.words.size(); ++i) {
      const std::string& word = line.words[i];
      if (word == "peers") {
        into_.Note(Carry::kApproximated, line.place,
                   "peers: each server of ours counts for itself");
      }
      if (word != "store" || i + 1 == line.words.size()) {
        continue;
      }
      std::string_view left = line.words[i + 1];
      while (!left.empty()) {
        size_t end = std::min(left.find(','), left.size());
        const HaproxySample item = ReadSample(left.substr(0, end));
        const auto period = item.arguments.empty() ? std::nullopt : Period(item.arguments.front());
        if (!item.arguments.empty() && !period) {
          throw Refused{line.place, "stick-table: found " + base::Quoted(left.substr(0, end)) +
                                        "; expected a period such as http_req_rate(10s)"};
        }
        table.stored[item.name] = period.value_or("");
        left.remove_prefix(std::min(end + 1, left.size()));
      }
    }
  }

  // Where `if` or `unless` stands; the end if there is none.
  static size_t ConditionAt(const std::vector<std::string>& words) {
    const auto found = std::find_if(words.begin(), words.end(), [](const std::string& word) {
      return word == "if" || word == "unless";
    });
    return static_cast<size_t>(found - words.begin());
  }

  Predicate ConditionOf(const HaproxyLine& line) {
    const size_t at = ConditionAt(line.words);
    if (at == line.words.size()) {
      return Always();
    }
    return conditions_.Read(std::span(line.words).subspan(at + 1), line.words[at] == "unless");
  }

  void ReadLine(const HaproxyLine& line) {
    const std::vector<std::string>& words = line.words;
    size_t at = words[0] == "http-request" ? 1 : 0;
    if (words[0] == "tcp-request" && words.size() > 2) {
      at = 2;
    }
    if (at == 0 || at >= words.size()) {
      return;
    }
    const std::string& action = words[at];
    if (action.starts_with("track-sc")) {
      ReadTrack(line, at);
    } else if (action == "deny" || action == "tarpit" || action == "reject" ||
               action == "silent-drop" || action == "return") {
      ReadRefusal(line, action);
    } else if (action == "allow" || action == "accept") {
      ReadAllow(line);
    } else if (HasCounter(line)) {
      into_.Note(Carry::kDropped, line.place,
                 line.Text() + ": only what refuses by a counter is a rule");
    }
  }

  // Whether its condition looks at a counter, as far as it can be read.
  bool HasCounter(const HaproxyLine& line) {
    const Predicate when = ConditionOf(line);
    return std::any_of(when.begin(), when.end(), [](const Conjunction& all) {
      return std::any_of(all.begin(), all.end(), IsCounter);
    });
  }

  static bool IsCounter(const Literal& literal) {
    return literal.condition.attribute == HaproxyConditions::kCounter;
  }

  void ReadTrack(const HaproxyLine& line, size_t at) {
    const std::vector<std::string>& words = line.words;
    const std::string number = words[at].substr(std::string_view("track-sc").size());
    if (at + 1 >= words.size()) {
      throw Refused{line.place, words[at] + ": expected what to track, such as src"};
    }
    if (HasCounter(line)) {
      throw HaproxyRefused{"tracked by a counter"};
    }
    Track track{.per = {}, .table = section_->name, .when = ConditionOf(line)};
    ReadKey(words[at + 1], line, track);
    for (size_t i = at + 2; i + 1 < ConditionAt(words); ++i) {
      track.table = words[i] == "table" ? words[i + 1] : track.table;
    }
    if (!tracks_.emplace(number, std::move(track)).second) {
      throw HaproxyRefused{"sc" + number + " is tracked already; of several only the first counts"};
    }
  }

  void ReadKey(const std::string& text, const HaproxyLine& line, Track& track) {
    const HaproxySample sample = ReadSample(text);
    if (sample.name == "base" || sample.name.starts_with("base32") ||
        sample.name.starts_with("url32")) {
      track.per = {"host", "path"};
      if (sample.name.ends_with("+src")) {
        track.per.emplace_back("ip");
      }
      into_.NoteOnce(Carry::kApproximated, line.place,
                     sample.name + ": the path as it was sent, with its query, and no hash");
    } else if (const std::string attribute = AttributeOf(sample, sample.name); !attribute.empty()) {
      track.per = {attribute};
    } else if (sample.name == "int" || sample.name == "str") {
      track.per = {};  // one count for everybody
    } else {
      track.per = {sample.name};
    }
    for (std::string& part : track.per) {
      part = Named(part, line);
    }
    for (const std::string& converter : sample.converters) {
      ReadConverter(ReadSample(converter), track);
    }
  }

  std::string Named(const std::string& attribute, const HaproxyLine& line) {
    if (const auto given = given_.find(attribute); given != given_.end()) {
      return given->second;
    }
    const bool filled_in = attribute == "ip" || attribute == "host" || attribute == "path" ||
                           attribute == "method" || attribute.starts_with("header:");
    if (!filled_in) {
      into_.NoteOnce(Carry::kApproximated, line.place,
                     base::Quoted(attribute) +
                         " is an attribute that the proxies' fronts do not fill in: the caller has "
                         "to send it");
    }
    return attribute;
  }

  static void ReadConverter(const HaproxySample& converter, Track& track) {
    if (converter.name == "ipmask" && track.per.front() == "ip" && !converter.arguments.empty()) {
      track.per.front() = "ip/" + converter.arguments.front();
      if (converter.arguments.size() > 1) {
        track.ipv6_bits = static_cast<unsigned>(
            std::min<uint64_t>(rules::ParseUnsigned(converter.arguments[1]).value_or(128), 128));
      }
      return;
    }
    throw HaproxyRefused{"the converter " + converter.name + " is not understood"};
  }

  void ReadAllow(const HaproxyLine& line) {
    if (HasCounter(line)) {
      throw HaproxyRefused{"allowed by a counter"};
    }
    allowed_ = Or(allowed_, ConditionOf(line));
  }

  // A line that refuses is as many rules as it asks for counters.
  void ReadRefusal(const HaproxyLine& line, const std::string& action) {
    std::map<size_t, Predicate> by_counter;
    bool without = false;
    for (const Conjunction& all : ConditionOf(line)) {
      Conjunction others;
      std::vector<const Literal*> counters;
      for (const Literal& literal : all) {
        if (IsCounter(literal)) {
          counters.push_back(&literal);
        } else {
          others.push_back(literal);
        }
      }
      if (counters.empty()) {
        without = true;
        continue;
      }
      const Condition& any = counters.front()->condition;
      const bool negated = counters.front()->negated;
      if (counters.size() > 1 || (negated && any.any.size() > 1)) {
        throw HaproxyRefused{"several counters at once"};
      }
      for (const Test& test : any.any) {
        const size_t number = *rules::ParseUnsigned(test.text);
        if (conditions_.counter(number).above == negated) {
          throw HaproxyRefused{"it refuses below a limit, not above"};
        }
        Predicate& when = by_counter[number];
        when = Or(when, {others});
      }
    }
    if (by_counter.empty()) {
      return;  // it limits nothing
    }
    if (without) {
      into_.Note(Carry::kDropped, line.place,
                 line.Text() + ": the part that refuses without a counter is for the proxy");
    }
    NoteAnswer(line, action);
    for (const auto& [number, when] : by_counter) {
      WriteRule(line, conditions_.counter(number), when);
    }
  }

  void NoteAnswer(const HaproxyLine& line, const std::string& action) {
    const auto status = std::find_if(
        line.words.begin(), line.words.end(),
        [](const std::string& word) { return word == "deny_status" || word == "status"; });
    if (action != "deny" && action != "return") {
      into_.NoteOnce(Carry::kApproximated, line.place,
                     action +
                         ": a refusal is told at once; what becomes of the connection is for "
                         "the proxy");
    } else if (status == line.words.end() || status + 1 == line.words.end() ||
               *(status + 1) != "429") {
      into_.NoteOnce(Carry::kApproximated, line.place,
                     "refusals had another status than 429; here the front decides, 429 unless it "
                     "is told otherwise");
    }
  }

  void WriteRule(const HaproxyLine& line, const CounterTest& test, const Predicate& when) {
    Track track;
    if (test.tracked == "src") {
      track = {.per = {"ip"}, .table = section_->name, .when = Always()};
    } else if (const auto found = tracks_.find(test.tracked); found != tracks_.end()) {
      track = found->second;
    } else {
      throw HaproxyRefused{"nothing is tracked as sc" + test.tracked + " before it"};
    }
    const std::string table_name = test.table.empty() ? track.table : test.table;
    const auto table = tables_.find(table_name);
    if (table == tables_.end() || !table->second.stored.contains(test.counter)) {
      throw HaproxyRefused{"the stick table " + base::Quoted(table_name) + " does not store " +
                           test.counter + ", or was not given"};
    }
    Rule rule{.per = track.per, .place = line.place, .source = line.Text()};
    rule.limit = LimitOf(test, table->second.stored.at(test.counter));
    rule.action = test.value == 0 ? Action::kBlock : Action::kLimit;
    rule.name = (section_->name.empty() ? "haproxy" : section_->name) + "/" +
                std::to_string(line.place.line);
    rule.group = rule.name + "#" + test.tracked + test.counter + std::to_string(test.value);
    rule.ipv6_prefix = track.ipv6_bits;
    Predicate full = And(track.when, when);
    if (full != track.when && full != when) {
      into_.Note(
          Carry::kApproximated, line.place,
          line.Text() + ": counted there wherever it is tracked, here only where it refuses");
    }
    full = And(full, Not(allowed_));
    NoteCounting(line, test);
    if (const std::string problem = AddRules(rule, full, into_); !problem.empty()) {
      throw HaproxyRefused{problem};
    }
  }

  static std::string LimitOf(const CounterTest& test, const std::string& period) {
    if (test.counter == "http_req_rate") {
      return std::to_string(test.value) + "/" + period + " sliding-window";
    }
    if (test.counter == "conn_cur") {
      return "concurrency " + std::to_string(test.value) + " lease " + std::string(kLease);
    }
    throw HaproxyRefused{test.counter + " is not counted by rules; http_req_rate and conn_cur are"};
  }

  void NoteCounting(const HaproxyLine& line, const CounterTest& test) {
    if (test.counter == "conn_cur") {
      into_.NoteOnce(Carry::kApproximated, line.place,
                     "conn_cur: whoever asks takes a hold and gives it back (/v1/reserve, "
                     "/v1/release); one that is not given back ends after " +
                         std::string(kLease));
    } else {
      into_.NoteOnce(Carry::kApproximated, line.place,
                     "http_req_rate counts refused requests too, so that who does not slow down "
                     "stays out; here they get the limit and no more");
    }
    if (!section_->name.empty() && std::exchange(last_section_, section_->name) != section_->name &&
        ++sections_ > 1) {
      into_.Note(Carry::kApproximated, line.place,
                 section_->kind + " " + section_->name +
                     ": its rules hold for all requests, not only for those of the section");
    }
  }

  const std::map<std::string, std::string>& given_;
  Imported& into_;
  std::map<std::string, Table> tables_;
  const HaproxySection* section_ = nullptr;
  HaproxyConditions conditions_;
  std::map<std::string, Track> tracks_;
  Predicate allowed_;
  std::string last_section_;
  int sections_ = 0;
};

}  // namespace

void ReadHaproxy(std::span<const Source> sources, const ImportOptions& options, Imported& into) {
  std::vector<HaproxySection> sections;
  for (const Source& source : sources) {
    auto more = ReadHaproxyConfig(source);
    sections.insert(sections.end(), std::make_move_iterator(more.begin()),
                    std::make_move_iterator(more.end()));
  }
  Reader reader(options, into);
  for (const HaproxySection& section : sections) {
    reader.CollectTables(section);
  }
  for (const HaproxySection& section : sections) {
    reader.Read(section);
  }
}

}  // namespace weir::import
