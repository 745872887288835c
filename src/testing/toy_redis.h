// The few commands of Redis that weir's scripts use, on a clock of the test's own. What it answers
// is held against a real redis-server, call by call, in tests/conformance/redis_shim_test.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace weir::testing {

struct ToyReply {
  enum class Kind : uint8_t { kNull, kInteger, kText, kStatus, kError, kArray };
  Kind kind = Kind::kNull;
  int64_t integer = 0;
  std::string text;
  std::vector<ToyReply> items;

  static ToyReply Integer(int64_t value) { return {Kind::kInteger, value, {}, {}}; }
  static ToyReply Text(std::string text) { return {Kind::kText, 0, std::move(text), {}}; }
  static ToyReply Status(std::string text) { return {Kind::kStatus, 0, std::move(text), {}}; }
  static ToyReply Error(std::string text) { return {Kind::kError, 0, std::move(text), {}}; }
  static ToyReply Array() { return {Kind::kArray, 0, {}, {}}; }

  friend bool operator==(const ToyReply&, const ToyReply&) = default;
};

class ToyRedis {
 public:
  using Command = std::vector<std::string>;

  void set_now_us(int64_t us) noexcept { now_us_ = us; }
  [[nodiscard]] int64_t now_us() const noexcept { return now_us_; }

  ToyReply Run(const Command& command);

  [[nodiscard]] size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] size_t CountWithoutTtl() const;
  void Clear() { entries_.clear(); }
  // What has ended stays, for those who set the clock back.
  void KeepEnded() noexcept { keeps_ended_ = true; }

 private:
  // As Redis orders them: by score, then by member.
  struct SortedSet {
    std::map<std::string, double> scores;
    std::set<std::pair<double, std::string>> order;
  };
  struct Entry {
    std::variant<std::string, SortedSet> value;
    std::optional<int64_t> expires_ms;
  };

  Entry* Find(const std::string& key);
  ToyReply Set(const Command& command);
  ToyReply IncrementBy(const Command& command);
  ToyReply GetRange(const Command& command);
  ToyReply SetRange(const Command& command);
  ToyReply OnSortedSet(const Command& command);
  ToyReply ByScore(const Command& command, SortedSet& set);
  ToyReply ByRank(const Command& command, const SortedSet& set);

  std::map<std::string, Entry> entries_;
  int64_t now_us_ = 0;
  bool keeps_ended_ = false;
};

}  // namespace weir::testing
