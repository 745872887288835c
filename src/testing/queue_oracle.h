// What a queue that delays must answer, worked out the slow way: as a server that has one counter,
// and as nginx's limit_req does it. Neither shares code or vocabulary with src/algorithm.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "weir/quota.h"

#include "testing/oracle.h"

namespace weir::testing {

// A server that serves one unit every W/L, in order of arrival, and knows of every unit when it
// will have been served. Times are nanoseconds times L, so that W/L is a whole number: W.
class FifoServer {
 public:
  // REQUIRES: a queue.
  explicit FifoServer(const Quota& quota);

  // How long a request that comes now would wait; nothing if it is turned away: because more than
  // `burst` units would be unserved, or because it would wait longer than `max_wait_ns`.
  [[nodiscard]] std::optional<Int128> WaitOf(int64_t now, uint64_t cost,
                                             std::optional<int64_t> max_wait_ns) const;
  void Admit(int64_t now, uint64_t cost);

  // The largest cost that is not turned away, 0 if each is.
  [[nodiscard]] uint64_t Remaining(int64_t now, std::optional<int64_t> max_wait_ns) const;

  [[nodiscard]] Int128 scale() const { return limit_; }

 private:
  // When the last of `cost` more units will have been served.
  [[nodiscard]] Int128 ServedAt(int64_t now, uint64_t cost) const;

  Int128 limit_;
  Int128 window_;
  uint64_t burst_;
  uint64_t undelayed_;
  std::vector<Int128> served_;  // when each admitted unit will have been
};

// ngx_http_limit_req_lookup and _account: one key, a cost of 1, milliseconds, excess in thousandths
// of a request. Written from nginx's documentation of burst, delay and nodelay.
class NginxLimitReq {
 public:
  // `delay` may be larger than the burst: nodelay.
  NginxLimitReq(int64_t rate_per_s, int64_t burst, int64_t delay)
      : rate_(rate_per_s * 1000), burst_(burst * 1000), delay_(delay * 1000) {}

  // The delay in milliseconds; nothing if the request is rejected.
  std::optional<int64_t> Request(int64_t now_ms);

 private:
  int64_t rate_;
  int64_t burst_;
  int64_t delay_;
  int64_t excess_ = 0;
  std::optional<int64_t> last_ms_;
};

// A started request, for the law that starts obey.
struct Start {
  int64_t at = 0;  // Unix nanoseconds
  uint64_t cost = 1;
};

// Whether in every interval the requests that start there cost at most max(undelayed, the cost of
// the first) + d * L/W units. `starts` in order of admission; starts that come earlier than one
// admitted before them are found out too.
[[nodiscard]] bool ObeyTheRate(const Quota& quota, const std::vector<Start>& starts);

}  // namespace weir::testing
