// Where a test runs the shipped scripts: in an embedded Lua, or in a real Redis.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/redis/script_set.h"

namespace weir::testing {

struct ScriptReply {
  std::string error;              // "": none
  std::vector<int64_t> integers;  // of an array
  std::string text;               // of a bulk string
};

struct ScriptQuestion {
  script::Id script = script::Id::kReset;
  std::vector<std::string> keys;
  std::vector<std::string> arguments;
};

class ScriptHost {
 public:
  ScriptHost() = default;
  ScriptHost(const ScriptHost&) = delete;
  ScriptHost& operator=(const ScriptHost&) = delete;
  virtual ~ScriptHost() = default;

  // In order. A real Redis gets all of them before it is read.
  virtual std::vector<ScriptReply> Run(std::span<const ScriptQuestion> questions) = 0;
  // For those that run on a clock of the test's own.
  virtual void SetTime(int64_t us) = 0;
};

}  // namespace weir::testing
