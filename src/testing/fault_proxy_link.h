// One connection through the fault proxy: two sockets and what is on its way between them.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "weir/time.h"

#include "base/byte_buffer.h"
#include "codec/resp/reply_parser.h"
#include "testing/fault_proxy.h"
#include "testing/random.h"

namespace weir::testing {

// What all connections of a proxy share. Guarded by the proxy's lock.
struct FaultWorld {
  Faults faults;
  FaultCounts counts;
  Random random{1};

  [[nodiscard]] bool Happens(double share) {
    return share > 0 && static_cast<double>(random.Next() >> 11) * 0x1p-53 < share;
  }
};

// REQUIRES: all under the proxy's lock.
class FaultLink {
 public:
  FaultLink(FaultWorld& world, int client, int server)
      : world_(world), client_(client), server_(server) {}
  ~FaultLink();
  FaultLink(const FaultLink&) = delete;
  FaultLink& operator=(const FaultLink&) = delete;

  [[nodiscard]] int client() const noexcept { return client_; }
  [[nodiscard]] int server() const noexcept { return server_; }
  // For poll(), of either side.
  [[nodiscard]] short client_events() const noexcept;
  [[nodiscard]] short server_events() const noexcept;

  // Moves what can be moved. False: this connection has ended.
  bool OnClient(short events);
  bool OnServer(short events, Timestamp now);
  bool Deliver(Timestamp now);
  // When Deliver has something to do by time alone; Timestamp::max() if never.
  [[nodiscard]] Timestamp NextDue() const noexcept;
  // Ends with a reset, as a machine that died would.
  void Reset() noexcept;

 private:
  struct Item {  // one reply on its way to the client
    std::string bytes;
    Timestamp due;
    bool counts = true;        // pushes do not
    bool waits = false;        // for a reply of another connection
    uint64_t others_seen = 0;  // that had passed when this one came
    bool is_end = false;       // the connection is cut here
  };

  void Take(std::string_view reply, bool counts, Timestamp now);
  void TakeReplies(Timestamp now);
  bool Write(int socket, base::ByteBuffer& from);

  FaultWorld& world_;
  const int client_;
  const int server_;
  base::ByteBuffer to_server_;
  base::ByteBuffer from_server_;
  base::ByteBuffer to_client_;
  codec::resp::ReplyParser parser_;
  std::deque<Item> items_;
  uint64_t delivered_ = 0;
  bool raw_ = false;  // what it carries are no replies
  bool server_ended_ = false;
  bool ended_ = false;  // a lost reply was its last
  // Bytes are missing once some were swallowed, so it stays so: for the server, for the client.
  bool deaf_ = false;
  bool mute_ = false;
};

}  // namespace weir::testing
