#include "testing/toy_redis.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace weir::testing {

namespace {

const char kWrongType[] = "WRONGTYPE Operation against a key holding the wrong kind of value";

int64_t Number(const std::string& text) {
  return std::strtoll(text.c_str(), nullptr, 10);
}

std::string ScoreText(double score) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", score);
  return text;
}

struct Bound {
  double score;
  bool open;  // the score itself is left out
};

Bound BoundOf(const std::string& text) {
  const bool open = text.starts_with('(');
  const std::string number = open ? text.substr(1) : text;
  if (number == "+inf") {
    return {std::numeric_limits<double>::infinity(), open};
  }
  return {std::strtod(number.c_str(), nullptr), open};
}

}  // namespace

size_t ToyRedis::CountWithoutTtl() const {
  size_t count = 0;
  for (const auto& [key, entry] : entries_) {
    count += entry.expires_ms.has_value() ? 0 : 1;
  }
  return count;
}

ToyRedis::Entry* ToyRedis::Find(const std::string& key) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) {
    return nullptr;
  }
  if (!keeps_ended_ && it->second.expires_ms.has_value() &&
      *it->second.expires_ms < now_us_ / 1000) {
    entries_.erase(it);
    return nullptr;
  }
  return &it->second;
}

ToyReply ToyRedis::Run(const Command& command) {
  const std::string& name = command[0];
  if (name == "TIME") {
    ToyReply reply = ToyReply::Array();
    reply.items.push_back(ToyReply::Text(std::to_string(now_us_ / 1'000'000)));
    reply.items.push_back(ToyReply::Text(std::to_string(now_us_ % 1'000'000)));
    return reply;
  }
  if (name == "SET") {
    return Set(command);
  }
  if (name == "INCRBY") {
    return IncrementBy(command);
  }
  if (name == "GETRANGE") {
    return GetRange(command);
  }
  if (name == "SETRANGE") {
    return SetRange(command);
  }
  if (name.starts_with('Z')) {
    return OnSortedSet(command);
  }
  Entry* const entry = Find(command[1]);
  if (name == "GET") {
    if (entry == nullptr) {
      return {};
    }
    const auto* const text = std::get_if<std::string>(&entry->value);
    return text != nullptr ? ToyReply::Text(*text) : ToyReply::Error(kWrongType);
  }
  if (name == "DEL") {
    entries_.erase(command[1]);
    return ToyReply::Integer(entry != nullptr ? 1 : 0);
  }
  if (name == "TYPE") {
    return ToyReply::Status(entry == nullptr                                    ? "none"
                            : std::holds_alternative<std::string>(entry->value) ? "string"
                                                                                : "zset");
  }
  if (name == "PTTL") {
    return ToyReply::Integer(entry == nullptr ? -2
                             : !entry->expires_ms.has_value()
                                 ? -1
                                 : std::max<int64_t>(*entry->expires_ms - now_us_ / 1000, 0));
  }
  if (name == "PERSIST") {
    const bool had = entry != nullptr && entry->expires_ms.has_value();
    if (had) {
      entry->expires_ms.reset();
    }
    return ToyReply::Integer(had ? 1 : 0);
  }
  if (name == "PEXPIRE") {
    if (entry != nullptr) {
      entry->expires_ms = now_us_ / 1000 + Number(command[2]);
    }
    return ToyReply::Integer(entry != nullptr ? 1 : 0);
  }
  return ToyReply::Error("ERR unknown command '" + name + "'");
}

ToyReply ToyRedis::Set(const Command& command) {
  Entry* const old = Find(command[1]);
  Entry entry{command[2], std::nullopt};
  for (size_t i = 3; i < command.size(); ++i) {
    if (command[i] == "PX") {
      entry.expires_ms = now_us_ / 1000 + Number(command[++i]);
    } else if (command[i] == "PXAT") {
      entry.expires_ms = Number(command[++i]);
    } else if (command[i] == "KEEPTTL") {
      entry.expires_ms = old != nullptr ? old->expires_ms : std::nullopt;
    } else if (command[i] == "NX" && old != nullptr) {
      return {};
    }
  }
  entries_[command[1]] = std::move(entry);
  return ToyReply::Status("OK");
}

ToyReply ToyRedis::IncrementBy(const Command& command) {
  const char kNoInteger[] = "ERR value is not an integer or out of range";
  Entry* entry = Find(command[1]);
  if (entry == nullptr) {
    entry = &(entries_[command[1]] = Entry{std::string("0"), std::nullopt});
  }
  auto* const text = std::get_if<std::string>(&entry->value);
  if (text == nullptr) {
    return ToyReply::Error(kWrongType);
  }
  const int64_t before = Number(*text);
  if (std::to_string(before) != *text) {
    return ToyReply::Error(kNoInteger);
  }
  int64_t after = 0;
  if (__builtin_add_overflow(before, Number(command[2]), &after)) {
    return ToyReply::Error("ERR increment or decrement would overflow");
  }
  *text = std::to_string(after);
  return ToyReply::Integer(after);
}

ToyReply ToyRedis::GetRange(const Command& command) {
  const Entry* const entry = Find(command[1]);
  if (entry == nullptr) {
    return ToyReply::Text("");
  }
  const auto* const text = std::get_if<std::string>(&entry->value);
  if (text == nullptr) {
    return ToyReply::Error(kWrongType);
  }
  // The scripts count from the front only.
  const auto begin = static_cast<size_t>(Number(command[2]));
  const auto last = static_cast<size_t>(Number(command[3]));
  return ToyReply::Text(
      begin >= text->size() || last < begin ? "" : text->substr(begin, last - begin + 1));
}

ToyReply ToyRedis::SetRange(const Command& command) {
  Entry* entry = Find(command[1]);
  if (entry == nullptr) {
    if (command[3].empty()) {
      return ToyReply::Integer(0);
    }
    entry = &(entries_[command[1]] = Entry{std::string(), std::nullopt});
  }
  auto* const text = std::get_if<std::string>(&entry->value);
  if (text == nullptr) {
    return ToyReply::Error(kWrongType);
  }
  const auto begin = static_cast<size_t>(Number(command[2]));
  if (!command[3].empty()) {
    text->resize(std::max(text->size(), begin + command[3].size()), '\0');
    text->replace(begin, command[3].size(), command[3]);
  }
  return ToyReply::Integer(static_cast<int64_t>(text->size()));
}

ToyReply ToyRedis::OnSortedSet(const Command& command) {
  const std::string& name = command[0];
  Entry* entry = Find(command[1]);
  if (entry != nullptr && std::holds_alternative<std::string>(entry->value)) {
    return ToyReply::Error(kWrongType);
  }
  if (name == "ZADD") {
    if (entry == nullptr) {
      entry = &(entries_[command[1]] = Entry{SortedSet(), std::nullopt});
    }
    auto& set = std::get<SortedSet>(entry->value);
    const double score = std::strtod(command[2].c_str(), nullptr);
    const auto [it, is_new] = set.scores.try_emplace(command[3], score);
    if (!is_new) {
      set.order.erase({it->second, command[3]});
      it->second = score;
    }
    set.order.insert({score, command[3]});
    return ToyReply::Integer(is_new ? 1 : 0);
  }
  if (entry == nullptr) {
    return name == "ZREM" || name == "ZREMRANGEBYSCORE" ? ToyReply::Integer(0)
           : name == "ZSCORE"                           ? ToyReply()
                                                        : ToyReply::Array();
  }
  auto& set = std::get<SortedSet>(entry->value);
  ToyReply reply;
  if (name == "ZSCORE") {
    const auto it = set.scores.find(command[2]);
    return it == set.scores.end() ? ToyReply() : ToyReply::Text(ScoreText(it->second));
  }
  if (name == "ZREM") {
    const auto it = set.scores.find(command[2]);
    reply = ToyReply::Integer(it == set.scores.end() ? 0 : 1);
    if (it != set.scores.end()) {
      set.order.erase({it->second, it->first});
      set.scores.erase(it);
    }
  } else if (name == "ZRANGE") {
    return ByRank(command, set);
  } else {
    reply = ByScore(command, set);
  }
  if (set.order.empty()) {
    entries_.erase(command[1]);
  }
  return reply;
}

ToyReply ToyRedis::ByRank(const Command& command, const SortedSet& set) {
  const auto size = static_cast<int64_t>(set.order.size());
  const auto rank = [&](const std::string& text) {
    const int64_t value = Number(text);
    return value < 0 ? value + size : value;
  };
  const bool with_scores = command.size() > 4;
  ToyReply reply = ToyReply::Array();
  int64_t i = 0;
  for (const auto& [score, member] : set.order) {
    if (i >= rank(command[2]) && i <= rank(command[3])) {
      reply.items.push_back(ToyReply::Text(member));
      if (with_scores) {
        reply.items.push_back(ToyReply::Text(ScoreText(score)));
      }
    }
    ++i;
  }
  return reply;
}

ToyReply ToyRedis::ByScore(const Command& command, SortedSet& set) {
  const Bound least = BoundOf(command[2]);
  const Bound most = BoundOf(command[3]);
  bool with_scores = false;
  int64_t skip = 0;
  int64_t limit = -1;
  for (size_t i = 4; i < command.size(); ++i) {
    if (command[i] == "WITHSCORES") {
      with_scores = true;
    } else if (command[i] == "LIMIT") {
      skip = Number(command[i + 1]);
      limit = Number(command[i + 2]);
      i += 2;
    }
  }
  std::vector<std::pair<double, std::string>> found;
  for (const auto& element : set.order) {
    const bool above = least.open ? element.first > least.score : element.first >= least.score;
    const bool below = most.open ? element.first < most.score : element.first <= most.score;
    if (!above || !below) {
      continue;
    }
    if (skip > 0) {
      --skip;
    } else if (limit < 0 || static_cast<int64_t>(found.size()) < limit) {
      found.push_back(element);
    }
  }
  if (command[0] == "ZREMRANGEBYSCORE") {
    for (const auto& element : found) {
      set.order.erase(element);
      set.scores.erase(element.second);
    }
    return ToyReply::Integer(static_cast<int64_t>(found.size()));
  }
  ToyReply reply = ToyReply::Array();
  for (const auto& [score, member] : found) {
    reply.items.push_back(ToyReply::Text(member));
    if (with_scores) {
      reply.items.push_back(ToyReply::Text(ScoreText(score)));
    }
  }
  return reply;
}

}  // namespace weir::testing
