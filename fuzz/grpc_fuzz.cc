// Any bytes as an HTTP/2 connection, whole and in pieces: no crash, and bounded memory. The answers
// may differ, as nghttp2 opens windows with what it has been given so far. Behind the preface, so
// that not every input has to find it; the settings of the client follow it.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "codec/grpc/health.h"
#include "codec/grpc/reflection.h"
#include "codec/grpc/session.h"
#include "fuzz/pieces.h"

namespace {

using namespace weir::codec::grpc;  // NOLINT(google-build-using-namespace): all of it is used
using weir::fuzz::Require;

constexpr std::string_view kPreface =
    std::string_view("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
constexpr size_t kOutputBytesMax = size_t{1} << 20;
constexpr weir::Timestamp kNow{std::chrono::seconds(1000)};

template <class NextSize>
void Run(std::string_view input, NextSize next_size) {
  SessionShared shared{.methods = {}, .calls = {}, .memory = MemoryPool(0), .limits = {}};
  AddHealth(shared.methods, [](std::string_view service) {
    return service.empty() ? Health::kServing : Health::kUnknownService;
  });
  AddReflection(shared.methods);
  shared.limits.held_bytes_max = 4096;
  shared.limits.message_bytes_max = 1024;
  Session session(shared, kNow);
  bool going_on = session.Receive(kPreface, kNow);
  for (size_t fed = 0; fed < input.size() && going_on;) {
    const size_t size = std::min<size_t>(next_size(), input.size() - fed);
    going_on = session.Receive(input.substr(fed, size), kNow);
    fed += size;
  }
  weir::base::ByteBuffer output;
  for (int turns = 0; session.Send(output) && turns < 64; ++turns) {
  }
  Require(output.size() <= kOutputBytesMax + 64 * input.size());
  session.OnWake(kNow + std::chrono::seconds(11));
  session.Drain(kNow + std::chrono::seconds(12));
  session.Send(output);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = weir::fuzz::Text(data, size);
  weir::fuzz::Pieces pieces(input);
  Run(input, [size] { return size; });
  Run(input, [&] { return pieces.Next(); });
  return 0;
}
