// What an importer makes of another program's limits: rules of ours, and what it has to say about
// them. Readers of formats fill it in, finish.h makes it fit for a rule file, rule_writer.h writes
// it down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::import {

// A file, or standard input.
struct Source {
  std::string name;
  std::string text;
};

struct Place {
  std::string file;
  uint32_t line = 0;  // from 1; 0: the file as a whole
  uint32_t column = 0;
};

// "limits.conf:7:12", as much of it as is known.
[[nodiscard]] std::string ToString(const Place& place);

// Thrown by readers of formats for input that is wrong; Import turns it into an error.
struct Refused {
  Place place;
  std::string message;
};

enum class Match : uint8_t {
  kExact,
  kPrefix,
  kSuffix,
  kContains,
  kGlob,
  kRegex,
  kPattern,  // of a path, as `path: /users/{id}`
  kPresent,
  kAbsent,
};

struct Test {
  Match match = Match::kExact;
  std::string text;

  bool operator==(const Test& other) const = default;
};

// Holds if any of its tests does.
struct Condition {
  std::string attribute;
  std::vector<Test> any;

  bool operator==(const Condition& other) const = default;
};

using Conditions = std::vector<Condition>;  // an attribute once

enum class Action : uint8_t {
  kLimit,
  kUnlimited,  // keeps later rules of its group away
  kBlock,
};

struct Rule {
  std::string name{};
  std::string group{};
  Conditions when{};
  std::vector<std::string> per{};  // none: everybody together
  Action action = Action::kLimit;
  std::string limit{};  // a quota's text
  bool shadow = false;
  bool missing_is_shared = false;
  unsigned ipv6_prefix = 0;  // how much of an IPv6 address counts; 0: the server's own choice
  int priority = 0;
  std::string expires{};

  Place place{};
  std::string source{};    // what it was, in the words of the other program
  std::string mentions{};  // a short comment: why there is such a rule
};

enum class Carry : uint8_t { kCarried, kApproximated, kDropped };

[[nodiscard]] std::string_view ToString(Carry carry) noexcept;

struct Finding {
  Carry carry = Carry::kDropped;
  Place place;
  std::string what;
  size_t before = 0;  // the number of rules that were there: where it stands in the output
};

struct Imported {
  std::vector<Rule> rules;  // those of one group in the order in which they are to be tried
  std::vector<Finding> findings;

  void Note(Carry carry, const Place& place, std::string what) {
    findings.push_back({carry, place, std::move(what), rules.size()});
  }
  // The same, but once for all places where it holds.
  void NoteOnce(Carry carry, const Place& place, const std::string& what);
};

// Whether no request meets both.
[[nodiscard]] bool AreExclusive(const Conditions& a, const Conditions& b);

// Both at once. nullopt: a rule cannot say that; `never` is then true if no request meets both.
[[nodiscard]] std::optional<Conditions> Both(const Conditions& a, const Conditions& b, bool& never);

// A condition more. False: as Both.
[[nodiscard]] bool Add(Conditions& to, const Condition& more, bool& never);

// What RE2 takes as this text and nothing else.
[[nodiscard]] std::string RegexOf(std::string_view text);

}  // namespace weir::import
