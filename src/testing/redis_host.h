// The shipped scripts in real redis-servers: one, or the masters of a Cluster. All questions of a
// run are written before a reply is read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "testing/script_host.h"

namespace weir::testing {

class RedisHost final : public ScriptHost {
 public:
  // `spare_ms` other than 0: how long states outlive their use, in place of what the scripts say,
  // so that Redis does not drop what is live at the time that a test names.
  // kGiven, for one server: SetTime says what its TIME answers to the scripts.
  enum class Time : uint8_t { kOwn, kGiven };
  explicit RedisHost(const std::vector<uint16_t>& ports, uint64_t spare_ms = 0,
                     Time time = Time::kOwn);
  ~RedisHost() override;

  std::vector<ScriptReply> Run(std::span<const ScriptQuestion> questions) override;
  void SetTime(int64_t now_us) override;

  // Plain commands to the first server, pipelined.
  std::vector<ScriptReply> Ask(std::span<const std::vector<std::string>> commands);

 private:
  class Connection;

  Connection& ConnectionOf(const std::string& key);

  std::map<uint16_t, std::unique_ptr<Connection>> connections_;
  std::map<std::string, uint16_t> homes_;  // where a key was found to live, by its tag
  uint16_t first_ = 0;
  std::vector<std::string> hashes_;
};

}  // namespace weir::testing
