#include "redis/flight.h"

#include "base/decimal.h"

namespace weir::redis {

namespace {

constexpr size_t kKeptBytes = 4096;
constexpr size_t kHeadBytesMax = base::kDecimalBytesMax + 5;  // $, the digits, CR LF twice

size_t BytesOf(std::span<const std::string_view> texts) {
  size_t bytes = 0;
  for (const std::string_view text : texts) {
    bytes += text.size() + kHeadBytesMax;
  }
  return bytes;
}

char* WriteBulk(char* at, std::string_view text) {
  *at++ = '$';
  at = base::WriteDecimal(at, static_cast<uint64_t>(text.size()));
  *at++ = '\r';
  *at++ = '\n';
  text.copy(at, text.size());
  at += text.size();
  *at++ = '\r';
  *at++ = '\n';
  return at;
}

}  // namespace

bool Flight::Encode(const Request& request, size_t bytes_max) {
  script = request.script;
  const size_t most = BytesOf(request.arguments) +
                      (script != nullptr ? BytesOf(request.keys) + 2 * kHeadBytesMax : 0);
  if (most > bytes_max) {
    return false;
  }
  tail.resize(most);
  char* at = tail.data();
  bulks = static_cast<uint32_t>(request.arguments.size());
  if (script != nullptr) {
    bulks += static_cast<uint32_t>(request.keys.size()) + 1;
    char digits[base::kDecimalBytesMax];
    const char* const end = base::WriteDecimal(digits, static_cast<uint64_t>(request.keys.size()));
    at = WriteBulk(at, {digits, static_cast<size_t>(end - digits)});
    for (const std::string_view key : request.keys) {
      at = WriteBulk(at, key);
    }
  }
  for (const std::string_view argument : request.arguments) {
    at = WriteBulk(at, argument);
  }
  tail.resize(static_cast<size_t>(at - tail.data()));
  return true;
}

void Flight::WriteTo(base::ByteBuffer& output) const {
  if (asking) {
    output.Append("*1\r\n$6\r\nASKING\r\n");
  }
  const uint64_t words = bulks + (script == nullptr ? 0U : 2U);
  const std::string_view named = script == nullptr ? std::string_view()
                                 : with_text       ? script->text()
                                                   : script->sha1();
  char* const begin = output.Reserve(tail.size() + named.size() + 4 * kHeadBytesMax);
  char* at = begin;
  *at++ = '*';
  at = base::WriteDecimal(at, words);
  *at++ = '\r';
  *at++ = '\n';
  if (script != nullptr) {
    at = WriteBulk(at, with_text ? "EVAL" : "EVALSHA");
    at = WriteBulk(at, named);
  }
  tail.copy(at, tail.size());
  at += tail.size();
  output.Commit(static_cast<size_t>(at - begin));
}

Flight& FlightPool::Take() {
  if (free_.empty()) {
    all_.push_back(std::make_unique<Flight>());
    free_.reserve(all_.size());  // so that giving one back never allocates
    return *all_.back();
  }
  Flight& flight = *free_.back();
  free_.pop_back();
  return flight;
}

void FlightPool::Give(Flight& flight) {
  flight.call = nullptr;
  flight.node = nullptr;
  flight.state = Flight::State::kFree;
  flight.with_text = flight.asking = false;
  flight.redirects = flight.retries = 0;
  if (flight.tail.capacity() > kKeptBytes) {
    std::string().swap(flight.tail);
  }
  free_.push_back(&flight);
}

void WriteCommand(std::initializer_list<std::string_view> words, base::ByteBuffer& output) {
  const std::span<const std::string_view> all(words.begin(), words.size());
  char* const begin = output.Reserve(BytesOf(all) + kHeadBytesMax);
  char* at = begin;
  *at++ = '*';
  at = base::WriteDecimal(at, static_cast<uint64_t>(words.size()));
  *at++ = '\r';
  *at++ = '\n';
  for (const std::string_view word : words) {
    at = WriteBulk(at, word);
  }
  output.Commit(static_cast<size_t>(at - begin));
}

}  // namespace weir::redis
