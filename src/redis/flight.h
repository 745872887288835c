// A call on its way: what was asked, encoded once, and how far it has come. Kept for reuse, so that
// a warm client does not allocate. It outlives its call where an answer is still to come.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weir/time.h"

#include "base/byte_buffer.h"
#include "redis/call.h"
#include "redis/wheel.h"

namespace weir::redis {

struct Node;

struct Flight : Wheel::Entry {
  enum class State : uint8_t {
    kFree,
    kQueued,   // its node is being connected for the first time
    kSent,     // in a connection's queue of answers to come
    kPausing,  // until it is tried again
    kFailing,  // to be told at the end of the turn
  };

  Call* call = nullptr;  // nullptr: nobody waits for it any more
  const Script* script = nullptr;
  Node* node = nullptr;  // that it was last sent to, or waits for
  std::string tail;      // the command as Redis reads it; of a script from the count of keys on
  uint32_t bulks = 0;    // texts in it
  uint16_t slot = 0;
  State state = State::kFree;
  bool with_text = false;  // EVAL in place of EVALSHA
  bool asking = false;     // after ASKING
  uint8_t redirects = 0;
  uint8_t retries = 0;
  Timestamp deadline{};
  Failure failure;  // of kFailing; its text lives for ever

  // REQUIRES: kFree. False: larger than `bytes_max`, and nothing is encoded.
  bool Encode(const Request& request, size_t bytes_max);
  // As the server reads it, with ASKING before it if need be.
  void WriteTo(base::ByteBuffer& output) const;
};

class FlightPool {
 public:
  FlightPool() = default;
  FlightPool(const FlightPool&) = delete;
  FlightPool& operator=(const FlightPool&) = delete;

  [[nodiscard]] Flight& Take();
  void Give(Flight& flight);

  template <class Visit>
  void ForEach(Visit visit) {
    for (size_t i = 0; i < all_.size(); ++i) {  // visiting may take more
      visit(*all_[i]);
    }
  }

 private:
  std::vector<std::unique_ptr<Flight>> all_;
  std::vector<Flight*> free_;
};

// *2\r\n$3\r\nGET\r\n…
void WriteCommand(std::initializer_list<std::string_view> words, base::ByteBuffer& output);

}  // namespace weir::redis
