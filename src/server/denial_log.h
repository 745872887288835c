// Log lines about denials: a few a second, so that an attack does not fill a disk. Keys appear as
// digests, which tell the same key from others and tell nobody what it was.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/rules.h"

#include "base/key_digest.h"
#include "server/log.h"

namespace weir::server {

// One per loop.
class DenialLog {
 public:
  static constexpr uint64_t kLinesPerSecond = 5;

  void Note(std::string_view front, const RuleReply& reply, WallTime now) {
    if (!Logs(LogLevel::kInfo)) {
      return;
    }
    const auto second = std::chrono::floor<std::chrono::seconds>(now);
    if (second != second_) {
      if (lines_ > kLinesPerSecond) {
        Log(LogLevel::kInfo, "more were denied", {{"not_logged", lines_ - kLinesPerSecond}});
      }
      second_ = second;
      lines_ = 0;
    }
    if (++lines_ > kLinesPerSecond) {
      return;
    }
    const RulePart* const part = reply.deciding();
    if (part != nullptr) {
      Log(LogLevel::kInfo, "denied",
          {{"front", front},
           {"rule", part->rule->name},
           {"key_digest", base::KeyDigest(part->key)},
           {"limit", part->decision.limit},
           {"retry_after_ms", reply.retry_after.count() / 1'000'000},
           {"basis", ToString(part->decision.basis)}});
    } else {
      const std::string_view rule =
          reply.refusing != nullptr ? std::string_view(reply.refusing->name) : "none";
      Log(LogLevel::kInfo, "refused",
          {{"front", front}, {"rule", rule}, {"reason", ToString(reply.why)}});
    }
  }

 private:
  std::chrono::sys_seconds second_{};
  uint64_t lines_ = 0;
};

}  // namespace weir::server
