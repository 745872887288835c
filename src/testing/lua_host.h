// The shipped scripts in an embedded Lua 5.1, the language's version in Redis, on a ToyRedis.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "testing/script_host.h"
#include "testing/toy_redis.h"

namespace weir::testing {

class LuaHost final : public ScriptHost {
 public:
  LuaHost();
  ~LuaHost() override;

  std::vector<ScriptReply> Run(std::span<const ScriptQuestion> questions) override;
  void SetTime(int64_t us) override { redis_.set_now_us(us); }

  // Any text, as EVAL runs it.
  ScriptReply Eval(const std::string& text, std::span<const std::string> keys,
                   std::span<const std::string> arguments);

  ToyRedis& redis() noexcept { return redis_; }

 private:
  class Machine;

  ToyRedis redis_;
  std::unique_ptr<Machine> machine_;
};

}  // namespace weir::testing
