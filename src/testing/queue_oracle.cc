#include "testing/queue_oracle.h"

#include <algorithm>

namespace weir::testing {

FifoServer::FifoServer(const Quota& quota)
    : limit_(quota.limit()),
      window_(quota.window().count()),
      burst_(quota.burst()),
      undelayed_(quota.undelayed()) {}

Int128 FifoServer::ServedAt(int64_t now, uint64_t cost) const {
  const Int128 here = now * limit_;
  Int128 last = served_.empty() ? here : served_.back();
  for (uint64_t i = 0; i < cost; ++i) {
    last = std::max(last, here) + window_;
  }
  return last;
}

std::optional<Int128> FifoServer::WaitOf(int64_t now, uint64_t cost,
                                         std::optional<int64_t> max_wait_ns) const {
  const Int128 unserved = ServedAt(now, cost) - now * limit_;
  if (unserved > window_ * static_cast<Int128>(burst_)) {
    return std::nullopt;
  }
  const Int128 wait = std::max<Int128>(0, unserved - window_ * static_cast<Int128>(undelayed_));
  if (max_wait_ns.has_value() && wait > *max_wait_ns * limit_) {
    return std::nullopt;
  }
  return wait;
}

void FifoServer::Admit(int64_t now, uint64_t cost) {
  for (uint64_t i = 0; i < cost; ++i) {
    served_.push_back(ServedAt(now, 1));
  }
}

uint64_t FifoServer::Remaining(int64_t now, std::optional<int64_t> max_wait_ns) const {
  uint64_t fits = 0;
  while (fits < burst_ && WaitOf(now, fits + 1, max_wait_ns).has_value()) {
    ++fits;
  }
  return fits;
}

std::optional<int64_t> NginxLimitReq::Request(int64_t now_ms) {
  int64_t excess = 0;  // a key's first request is no excess
  if (last_ms_.has_value()) {
    excess = std::max<int64_t>(0, excess_ - rate_ * (now_ms - *last_ms_) / 1000 + 1000);
  }
  if (excess > burst_) {
    return std::nullopt;
  }
  excess_ = excess;
  last_ms_ = now_ms;
  return excess <= delay_ ? 0 : (excess - delay_) * 1000 / rate_;
}

bool ObeyTheRate(const Quota& quota, const std::vector<Start>& starts) {
  const Int128 window = quota.window().count();
  for (size_t first = 0; first < starts.size(); ++first) {
    const uint64_t at_once = std::max<uint64_t>(quota.undelayed(), starts[first].cost);
    uint64_t units = 0;
    for (size_t i = first; i < starts.size(); ++i) {
      if (i > first && starts[i].at < starts[i - 1].at) {
        return false;
      }
      units += starts[i].cost;
      const Int128 more = units > at_once ? static_cast<Int128>(units - at_once) : 0;
      if (more * window > (starts[i].at - starts[first].at) * static_cast<Int128>(quota.limit())) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace weir::testing
