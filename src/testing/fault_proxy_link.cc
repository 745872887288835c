#include "testing/fault_proxy_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace weir::testing {

namespace {

using codec::resp::ReplyState;
using codec::resp::ReplyType;

constexpr size_t kReadBytes = size_t{64} << 10;
constexpr size_t kHeldBytesMax = size_t{8} << 20;

// What is there, to the end of `into`. False: the peer has ended.
bool ReadAll(int socket, base::ByteBuffer& into) {
  for (;;) {
    const ssize_t size = ::recv(socket, into.Reserve(kReadBytes), kReadBytes, 0);
    if (size > 0) {
      into.Commit(static_cast<size_t>(size));
      continue;
    }
    return size < 0 && (errno == EAGAIN || errno == EINTR);
  }
}

}  // namespace

FaultLink::~FaultLink() {
  ::close(client_);
  ::close(server_);
}

short FaultLink::client_events() const noexcept {
  const bool room = to_server_.size() < kHeldBytesMax;
  return static_cast<short>((room ? POLLIN : 0) | (to_client_.empty() ? 0 : POLLOUT));
}

short FaultLink::server_events() const noexcept {
  const bool room =
      from_server_.size() + to_client_.size() < kHeldBytesMax && items_.size() < 65536;
  return static_cast<short>((room && !server_ended_ ? POLLIN : 0) |
                            (to_server_.empty() ? 0 : POLLOUT));
}

bool FaultLink::OnClient(short events) {
  if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) {
    if (!ReadAll(client_, to_server_)) {
      return false;
    }
    deaf_ = deaf_ || world_.faults.half_open;
    if (deaf_) {
      world_.counts.swallowed_bytes += to_server_.size();
      to_server_.Clear();
    }
  }
  return Write(server_, to_server_) && Write(client_, to_client_);
}

bool FaultLink::OnServer(short events, Timestamp now) {
  if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) {
    server_ended_ = !ReadAll(server_, from_server_);
    mute_ = mute_ || world_.faults.half_open || world_.faults.mute_replies;
    TakeReplies(now);
    if (server_ended_ && mute_) {
      return true;  // nor does its end come through
    }
  }
  return Write(server_, to_server_) && Deliver(now);
}

void FaultLink::TakeReplies(Timestamp now) {
  while (!from_server_.empty() && !raw_) {
    const ReplyState state = parser_.Parse(from_server_.view());
    if (state == ReplyState::kMore) {
      return;
    }
    if (state == ReplyState::kError) {
      raw_ = true;
      break;
    }
    Take(from_server_.view().substr(0, parser_.consumed()),
         parser_.reply().type != ReplyType::kPush, now);
    from_server_.Consume(parser_.consumed());
  }
  if (raw_ && !from_server_.empty()) {
    Take(from_server_.view(), true, now);
    from_server_.Clear();
  }
}

// Decides what becomes of one reply.
void FaultLink::Take(std::string_view reply, bool counts, Timestamp now) {
  FaultCounts& count = world_.counts;
  const Faults& faults = world_.faults;
  count.replies += counts ? 1 : 0;
  if (mute_ || ended_) {
    count.swallowed_bytes += reply.size();
    return;
  }
  Item item{.bytes = std::string(reply), .due = now, .counts = counts};
  if (counts && world_.Happens(faults.drop_share)) {
    item.bytes.clear();
    item.is_end = ended_ = true;
    ++count.dropped;
  } else if (counts && world_.Happens(faults.delay_share)) {
    ++count.delayed;
    const uint32_t most = std::max(faults.delay_min_ms, faults.delay_max_ms);
    item.due += std::chrono::milliseconds(world_.random.Between(faults.delay_min_ms, most));
  } else if (counts && count.open > 1 && world_.Happens(faults.reorder_share)) {
    item.waits = true;
    item.others_seen = count.delivered - delivered_;
    item.due += std::chrono::milliseconds(faults.reorder_max_ms);
  }
  if (!items_.empty()) {
    item.due = std::max(item.due, items_.back().due);
  }
  items_.push_back(std::move(item));
}

bool FaultLink::Deliver(Timestamp now) {
  mute_ = mute_ || world_.faults.half_open || world_.faults.mute_replies;
  if (mute_) {
    items_.clear();
  }
  while (!items_.empty()) {
    Item& item = items_.front();
    const bool overtaken = item.waits && world_.counts.delivered - delivered_ > item.others_seen;
    if (item.due > now && !overtaken) {
      break;
    }
    if (item.is_end) {
      ++world_.counts.cut;
      (void)Write(client_, to_client_);
      Reset();
      return false;
    }
    to_client_.Append(item.bytes);
    world_.counts.reordered += overtaken ? 1 : 0;
    world_.counts.delivered += item.counts ? 1 : 0;
    delivered_ += item.counts ? 1 : 0;
    if (overtaken) {  // those behind it were made to wait as long
      for (Item& behind : items_) {
        behind.due = behind.waits ? behind.due : std::min(behind.due, now);
      }
    }
    items_.pop_front();
  }
  if (!Write(client_, to_client_)) {
    return false;
  }
  return !server_ended_ || mute_ || !items_.empty() || !to_client_.empty();
}

Timestamp FaultLink::NextDue() const noexcept {
  return items_.empty() ? Timestamp::max() : items_.front().due;
}

bool FaultLink::Write(int socket, base::ByteBuffer& from) {
  while (!from.empty()) {
    const ssize_t size = ::send(socket, from.data(), from.size(), MSG_NOSIGNAL);
    if (size < 0) {
      return errno == EAGAIN || errno == EINTR || errno == ENOTCONN;
    }
    from.Consume(static_cast<size_t>(size));
  }
  return true;
}

void FaultLink::Reset() noexcept {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(client_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

}  // namespace weir::testing
