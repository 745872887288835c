// nginx's limit_req and limit_conn. A request is served by one location of one server, so for each
// zone the places of the configuration are one group in the order in which nginx chooses them; a
// place without the zone's limit keeps those behind it away.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/spelling.h"
#include "import/import.h"
#include "import/nginx_config.h"
#include "import/nginx_key.h"
#include "import/nginx_places.h"
#include "import/stable_order.h"

namespace weir::import {

namespace {

// A hold that nobody gives back: nginx knows when a request ends, a limiter beside it does not.
constexpr std::string_view kLease = "10min";

// What holds at a level of the configuration, and is inherited by those below.
struct Level {
  std::vector<NginxLimit> requests;
  std::vector<NginxLimit> connections;
  bool requests_dry = false;
  bool connections_dry = false;
  std::string requests_status = "503";
  std::string connections_status = "503";
};

// A place that serves requests.
struct Spot {
  Conditions when;
  Level level;
  std::string label;
};

// How nginx chooses: exact, ^~, regular expressions in their order, the longest prefix.
struct Location {
  int rank = 0;
  size_t order = 0;
  Spot spot;
};

std::optional<uint64_t> ToNumber(std::string_view text) {
  uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return whole && !text.empty() ? std::optional(number) : std::nullopt;
}

class Reader {
 public:
  Reader(const ImportOptions& options, Imported& into)
      : keys_(options.attributes, into), into_(into) {}

  void Read(const std::vector<NginxDirective>& root) {
    CollectMaps(root);
    CollectZones(root);
    Level level;
    ReadLevel(root, level);
    for (const bool conn : {false, true}) {
      for (const auto& [name, zone] : conn ? conn_zones_ : zones_) {
        WriteZone(*zone, conn);
      }
    }
  }

 private:
  [[noreturn]] static void Fail(const NginxDirective& at, const std::string& message) {
    throw Refused{at.place, at.name() + ": " + message};
  }

  // --- zones and variables, wherever they stand

  void CollectMaps(const std::vector<NginxDirective>& directives) {
    for (const NginxDirective& one : directives) {
      if (one.name() == "map" || one.name() == "geo") {
        keys_.AddMap(one);
      } else {
        CollectMaps(one.block);
      }
    }
  }

  void CollectZones(const std::vector<NginxDirective>& directives) {
    for (const NginxDirective& one : directives) {
      if (one.name() == "limit_req_zone") {
        ReadZone(one, true);
      } else if (one.name() == "limit_conn_zone") {
        ReadZone(one, false);
      }
      CollectZones(one.block);
    }
  }

  void ReadZone(const NginxDirective& at, bool has_rate) {
    auto zone = std::make_unique<NginxZone>();
    for (size_t i = 2; i < at.words.size(); ++i) {
      const std::string& word = at.words[i];
      if (word.starts_with("zone=")) {
        zone->name = word.substr(5, word.find(':') - 5);
      } else if (word.starts_with("rate=") && has_rate) {
        zone->rate = RateOf(at, word.substr(5));
      } else if (word != "sync") {
        Fail(at, "found " + base::Quoted(word) + "; expected a key, zone=NAME:SIZE" +
                     (has_rate ? " and rate=10r/s" : ""));
      }
    }
    if (at.words.size() < 3 || zone->name.empty() || (has_rate && zone->rate.empty())) {
      Fail(at, std::string("expected a key, zone=NAME:SIZE") + (has_rate ? " and rate=10r/s" : ""));
    }
    auto& zones = has_rate ? zones_ : conn_zones_;
    if (zones.contains(zone->name)) {
      Fail(at, "zone " + base::Quoted(zone->name) + " is there already");
    }
    zone->key = keys_.Read(at.words[1], at.place);
    zones.emplace(zone->name, std::move(zone));
  }

  static std::string RateOf(const NginxDirective& at, std::string_view text) {
    const bool by_minute = text.ends_with("r/m");
    const auto number = text.size() > 3 ? ToNumber(text.substr(0, text.size() - 3)) : std::nullopt;
    if (!number || *number == 0 || (!by_minute && !text.ends_with("r/s"))) {
      Fail(at, "found rate=" + std::string(text) + "; expected one such as 10r/s or 30r/m");
    }
    return std::to_string(*number) + (by_minute ? "/min" : "/s");
  }

  // --- levels

  void ReadLevel(const std::vector<NginxDirective>& directives, Level& level) {
    ReadLimits(directives, level);
    bool has_servers = false;
    for (const NginxDirective& one : directives) {
      if (one.name() == "http") {
        Level inner = level;
        ReadLevel(one.block, inner);
        return;
      }
      has_servers = has_servers || one.name() == "server";
    }
    if (!has_servers) {  // a part of a configuration
      ReadServer(directives, {}, level, "");
      return;
    }
    for (const int wanted : {0, 1, 2}) {
      for (const NginxDirective& one : directives) {
        if (one.name() != "server") {
          continue;
        }
        const Condition host = HostOf(one.block);
        const bool exact = std::all_of(host.any.begin(), host.any.end(), [](const Test& test) {
          return test.match == Match::kExact;
        });
        if (wanted == (host.any.empty() ? 2 : exact ? 0 : 1)) {
          ReadOneServer(one, host, level);
        }
      }
    }
  }

  void ReadOneServer(const NginxDirective& server, const Condition& host, const Level& above) {
    if (host.any.empty() && std::exchange(has_default_server_, true)) {
      into_.NoteOnce(Carry::kApproximated, server.place,
                     "several servers without a name: they are told apart by what they listen on, "
                     "which rules do not know; the first one counts");
    }
    Level level = above;
    ReadLimits(server.block, level);
    ReadServer(server.block, host.any.empty() ? Conditions() : Conditions{host}, level,
               host.any.empty() ? "" : host.any.front().text);
  }

  static Condition HostOf(const std::vector<NginxDirective>& server) {
    Condition host{"host", {}};
    for (const NginxDirective& one : server) {
      for (size_t i = 1; one.name() == "server_name" && i < one.words.size(); ++i) {
        const std::string& name = one.words[i];
        if (name.empty() || name == "_") {
          return {"host", {}};
        }
        if (name.starts_with('~')) {
          host.any.push_back(
              {Match::kRegex, WholeRegex(std::string_view(name).substr(1), true, false)});
        } else if (name.starts_with("*.")) {
          host.any.push_back({Match::kSuffix, name.substr(1)});
        } else if (name.ends_with(".*")) {
          host.any.push_back({Match::kPrefix, name.substr(0, name.size() - 1)});
        } else if (name.starts_with('.')) {
          host.any.push_back({Match::kExact, name.substr(1)});
          host.any.push_back({Match::kSuffix, name});
        } else {
          host.any.push_back({Match::kExact, name});
        }
      }
    }
    return host;
  }

  void ReadServer(const std::vector<NginxDirective>& directives, const Conditions& host,
                  const Level& level, const std::string& label) {
    std::vector<Location> locations;
    ReadLocations(directives, host, level, label, locations);
    StableOrder(locations, [](const Location& a, const Location& b) {
      return std::pair(a.rank, a.order) < std::pair(b.rank, b.order);
    });
    for (Location& location : locations) {
      spots_.push_back(std::move(location.spot));
    }
    spots_.push_back({host, level, label});
  }

  void ReadLocations(const std::vector<NginxDirective>& directives, const Conditions& host,
                     const Level& above, const std::string& label, std::vector<Location>& into) {
    for (const NginxDirective& one : directives) {
      if (one.name() == "if" || one.name() == "limit_except") {
        continue;  // no limits in there
      }
      if (one.name() != "location") {
        continue;
      }
      Level level = above;
      ReadLimits(one.block, level);
      const std::string modifier = one.words.size() > 2 ? one.words[1] : "";
      const std::string path = one.words.size() > 1 ? one.words.back() : "";
      if (path.empty() || one.words.size() > 3) {
        Fail(one, "expected a path, perhaps with =, ^~, ~ or ~* before it");
      }
      if (path.starts_with('@')) {
        continue;  // served after another location has been
      }
      Location location{.rank = 3, .order = 0, .spot = {host, level, label + path}};
      Condition condition{"path", {}};
      constexpr size_t kLongest = 1'000'000;
      const size_t by_length = kLongest - std::min(path.size(), kLongest);
      if (modifier == "=") {
        condition.any = {{Match::kExact, path}, {Match::kPrefix, path + "?"}};
        location.rank = 0;
      } else if (modifier == "~" || modifier == "~*") {
        condition.any = {{Match::kRegex, WholeRegex(path, modifier == "~*", true)}};
        location.rank = 2;
        location.order = into.size();
      } else if (modifier.empty() || modifier == "^~") {
        condition.any = {{Match::kPrefix, path}};
        location.rank = modifier.empty() ? 3 : 1;
        location.order = by_length;
      } else {
        Fail(one, "found " + base::Quoted(modifier) + "; expected =, ^~, ~ or ~*");
      }
      if (path != "/" || modifier == "=") {
        location.spot.when.push_back(std::move(condition));
      }
      into.push_back(std::move(location));
      ReadLocations(one.block, host, level, label, into);
    }
  }

  // The limits of a level take the place of those above it, kind by kind.
  void ReadLimits(const std::vector<NginxDirective>& directives, Level& level) {
    std::vector<NginxLimit> requests;
    std::vector<NginxLimit> connections;
    for (const NginxDirective& one : directives) {
      ReadDirective(one, level, requests, connections);
    }
    level.requests = requests.empty() ? level.requests : requests;
    level.connections = connections.empty() ? level.connections : connections;
    // Whether a limit only looks on is decided where the request is served.
    for (NginxLimit& use : level.requests) {
      use.dry_run = level.requests_dry;
    }
    for (NginxLimit& use : level.connections) {
      use.dry_run = level.connections_dry;
    }
  }

  void ReadDirective(const NginxDirective& one, Level& level, std::vector<NginxLimit>& requests,
                     std::vector<NginxLimit>& connections) {
    const std::string& name = one.name();
    const std::string value = one.words.size() > 1 ? one.words[1] : "";
    if (name == "limit_req") {
      if (auto use = ReadRequestLimit(one)) {
        requests.push_back(*std::move(use));
      }
    } else if (name == "limit_conn") {
      if (auto use = ReadConnectionLimit(one)) {
        connections.push_back(*std::move(use));
      }
    } else if (name == "limit_req_dry_run") {
      level.requests_dry = value == "on";
    } else if (name == "limit_conn_dry_run") {
      level.connections_dry = value == "on";
    } else if (name == "limit_req_status") {
      level.requests_status = value;
    } else if (name == "limit_conn_status") {
      level.connections_status = value;
    } else if (name == "limit_req_log_level" || name == "limit_conn_log_level") {
      into_.NoteOnce(Carry::kDropped, one.place,
                     name + ": what is logged of refusals is for the server");
    } else if (name == "limit_rate" || name == "limit_rate_after") {
      into_.Note(Carry::kDropped, one.place, name + ": bytes a second of an answer; not requests");
    } else if (name == "include" && !IsHarmless(value)) {
      into_.Note(Carry::kDropped, one.place,
                 "include " + value + ": it is not read; name that file too");
    }
  }

  // Files that come with nginx and have no limits.
  static bool IsHarmless(std::string_view file) {
    return file.ends_with("mime.types") || file.ends_with("_params") || file.ends_with(".types");
  }

  std::optional<NginxLimit> ReadRequestLimit(const NginxDirective& at) {
    std::string zone;
    uint64_t burst = 0;
    std::optional<uint64_t> delay;
    bool nodelay = false;
    for (size_t i = 1; i < at.words.size(); ++i) {
      const std::string_view word = at.words[i];
      if (word.starts_with("zone=")) {
        zone = word.substr(5);
      } else if (word.starts_with("burst=") && ToNumber(word.substr(6))) {
        burst = *ToNumber(word.substr(6));
      } else if (word.starts_with("delay=") && ToNumber(word.substr(6))) {
        delay = *ToNumber(word.substr(6));
      } else if (word == "nodelay") {
        nodelay = true;
      } else {
        Fail(at, "found " + base::Quoted(word) +
                     "; expected zone=NAME, burst=NUMBER, delay=NUMBER or nodelay");
      }
    }
    if (zone.empty()) {
      Fail(at, "expected zone=NAME");
    }
    const auto found = zones_.find(zone);
    if (found == zones_.end()) {
      into_.Note(
          Carry::kDropped, at.place,
          "limit_req zone=" + zone + ": there is no limit_req_zone of that name in what was given");
      return std::nullopt;
    }
    // What nginx calls burst comes on top of the request that it lets through.
    std::string limit = found->second->rate + " burst " + std::to_string(burst + 1);
    const uint64_t at_once = delay.value_or(0);
    if (!nodelay && at_once < burst) {
      limit += " queue";
      limit += at_once == 0 ? "" : " after " + std::to_string(at_once + 1);
    }
    return NginxLimit{found->second.get(), limit, Source(at), at.place, false};
  }

  std::optional<NginxLimit> ReadConnectionLimit(const NginxDirective& at) {
    const auto number = at.words.size() == 3 ? ToNumber(at.words[2]) : std::nullopt;
    if (!number) {
      Fail(at, "expected a zone and a number");
    }
    const auto found = conn_zones_.find(at.words[1]);
    if (found == conn_zones_.end()) {
      into_.Note(Carry::kDropped, at.place,
                 "limit_conn " + at.words[1] +
                     ": there is no limit_conn_zone of that name in what was given");
      return std::nullopt;
    }
    return NginxLimit{found->second.get(),
                      "concurrency " + std::to_string(*number) + " lease " + std::string(kLease),
                      Source(at), at.place, false};
  }

  static std::string Source(const NginxDirective& at) {
    std::string text;
    for (const std::string& word : at.words) {
      text += (text.empty() ? "" : " ") + word;
    }
    return text;
  }

  // --- rules

  void WriteZone(const NginxZone& zone, bool conn) {
    std::vector<NginxPlace> entries;
    bool used = false;
    for (const Spot& spot : spots_) {
      const std::vector<NginxLimit>& uses = conn ? spot.level.connections : spot.level.requests;
      const auto use = std::find_if(uses.begin(), uses.end(),
                                    [&](const NginxLimit& one) { return one.zone == &zone; });
      entries.push_back({spot.when, use == uses.end() ? nullptr : &*use, spot.label});
      if (use != uses.end()) {
        used = true;
        NoteStatus(conn ? spot.level.connections_status : spot.level.requests_status, *use);
      }
    }
    if (!used || !zone.key.has_value()) {
      return;
    }
    size_t limits = 0;
    // Shadow rules compete among themselves: each kind has its own.
    for (const bool shadow : {false, true}) {
      std::vector<NginxPlace> some = entries;
      for (NginxPlace& place : some) {
        place.limit =
            place.limit != nullptr && place.limit->dry_run == shadow ? place.limit : nullptr;
      }
      some = WithKey(JoinedPlaces(NeededPlaces(some)), *zone.key);
      for (size_t i = 0; i < some.size(); ++i) {
        const auto priority = static_cast<int>(some.size() > 1 ? some.size() - i : 0);
        limits += some[i].limit != nullptr ? 1 : 0;
        WriteEntry(zone, some[i], priority, conn, shadow);
      }
    }
    const Place first = FirstLimit(entries).place;
    if (limits > 1) {
      into_.Note(Carry::kApproximated, first,
                 "zone " + zone.name +
                     " is used with different limits or for places that one rule cannot name: "
                     "these count apart here");
    }
    if (conn) {
      into_.Note(Carry::kApproximated, first,
                 "limit_conn: whoever asks takes a hold and gives it back (/v1/reserve, "
                 "/v1/release); one that is not given back ends after " +
                     std::string(kLease));
    }
  }

  static const NginxLimit& FirstLimit(const std::vector<NginxPlace>& entries) {
    return *std::find_if(entries.begin(), entries.end(), [](const NginxPlace& entry) {
              return entry.limit != nullptr;
            })->limit;
  }

  // What the key's own map says about who is counted.
  std::vector<NginxPlace> WithKey(const std::vector<NginxPlace>& entries, const NginxKey& key) {
    std::vector<NginxPlace> all;
    for (const Condition& exception : key.exceptions) {
      all.push_back({{exception}, nullptr, "except"});
    }
    for (NginxPlace entry : entries) {
      bool never = false;
      if (key.only.has_value() && entry.limit != nullptr && !Add(entry.when, *key.only, never)) {
        if (!never) {
          into_.Note(
              Carry::kDropped, entry.limit->place,
              entry.limit->source + ": a rule cannot ask two different things of one attribute");
        }
        continue;
      }
      all.push_back(std::move(entry));
    }
    if (std::none_of(all.begin(), all.end(),
                     [](const NginxPlace& entry) { return entry.limit != nullptr; })) {
      return {};
    }
    return all;
  }

  void NoteStatus(const std::string& status, const NginxLimit& use) {
    if (status != "429") {
      into_.NoteOnce(Carry::kApproximated, use.place,
                     "refusals were answered by " + status +
                         "; here the front decides, 429 unless it is told otherwise");
    }
  }

  void WriteEntry(const NginxZone& zone, const NginxPlace& entry, int priority, bool conn,
                  bool shadow) {
    const std::string group = (conn ? "conn/" : "req/") + zone.name;
    const std::string name = zone.name + (entry.label.empty() ? "" : "/" + entry.label);
    Rule rule{.name = name,
              .group = group,
              .when = entry.when,
              .per = zone.key->per,
              .action = Action::kUnlimited,
              .shadow = shadow,
              .missing_is_shared = !zone.key->needs_all && !zone.key->per.empty(),
              .ipv6_prefix = 128,
              .priority = priority};
    if (entry.limit == nullptr) {
      rule.name += "/none";
      rule.source = "no limit of zone " + zone.name;
      rule.mentions = "keeps the limits behind it away";
      rule.per.clear();
    } else {
      rule.action = Action::kLimit;
      rule.limit = entry.limit->limit;
      rule.place = entry.limit->place;
      rule.source = entry.limit->source;
    }
    into_.rules.push_back(std::move(rule));
  }

  NginxKeys keys_;
  Imported& into_;
  std::map<std::string, std::unique_ptr<NginxZone>> zones_;
  std::map<std::string, std::unique_ptr<NginxZone>> conn_zones_;
  std::vector<Spot> spots_;
  bool has_default_server_ = false;
};

}  // namespace

void ReadNginx(std::span<const Source> sources, const ImportOptions& options, Imported& into) {
  std::vector<NginxDirective> root;
  for (const Source& source : sources) {
    auto directives = ReadNginxConfig(source);
    root.insert(root.end(), std::make_move_iterator(directives.begin()),
                std::make_move_iterator(directives.end()));
  }
  Reader(options, into).Read(root);
}

}  // namespace weir::import
