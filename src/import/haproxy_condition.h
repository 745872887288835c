// Conditions of HAProxy: ACLs, in braces or by name, with and, or and not. Those that look at a
// counter of a stick table are told apart from those that look at the request.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/haproxy_config.h"
#include "import/predicate.h"

namespace weir::import {

// What is not understood.
struct HaproxyRefused {
  std::string message;
};

// name(argument, argument),converter(argument)
struct HaproxySample {
  std::string name;
  std::vector<std::string> arguments;
  std::vector<std::string> converters;
};

[[nodiscard]] HaproxySample ReadSample(std::string_view text);

// The attribute behind a sample of the request; empty: none. Header names, query parameters and
// cookies are its arguments.
[[nodiscard]] std::string AttributeOf(const HaproxySample& sample, std::string_view name);

// sc_http_req_rate(0) gt 20
struct CounterTest {
  std::string counter;  // http_req_rate
  std::string tracked;  // "0" for sc0, "src" for src_...
  std::string table;    // empty: that of the tracking
  bool above = true;    // whether it holds above `value`, or up to it
  uint64_t value = 0;
};

class HaproxyConditions {
 public:
  // An `acl` line; those of one name add up.
  void Define(const HaproxyLine& line);

  // What stands behind `if` or `unless`. Counter tests are conditions of the attribute kCounter,
  // with their number as text. Throws HaproxyRefused, std::length_error.
  [[nodiscard]] Predicate Read(std::span<const std::string> words, bool unless);
  [[nodiscard]] const CounterTest& counter(size_t number) const { return counters_[number]; }

  static constexpr std::string_view kCounter = "\x01";

 private:
  Predicate Term(std::span<const std::string> words, size_t& at);
  Predicate Named(const std::string& name);
  Predicate Expression(std::span<const std::string> words);
  std::optional<Predicate> Counter(const HaproxySample& sample, std::span<const std::string> rest);
  [[nodiscard]] static std::vector<Test> Tests(const std::string& attribute, std::string_view how,
                                               bool ignore_case,
                                               std::span<const std::string> values);

  std::map<std::string, std::vector<std::vector<std::string>>> named_;
  std::vector<CounterTest> counters_;
  int depth_ = 0;
};

}  // namespace weir::import
