// One request as bytes, with holes where the key goes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

#include "base/byte_buffer.h"

namespace weir::bench {

struct HttpMessage {
  std::string method;
  std::string host;                  // with its port, as the Host field has it
  std::string path;                  // and query
  std::vector<std::string> headers;  // "NAME: VALUE"
  std::string body;
};

class Message {
 public:
  // Every part but the host may name {key}, for keys of `key_bytes` bytes each.
  static Result<Message> Http(const HttpMessage& parts, size_t key_bytes);
  // Words of a Redis command, with blanks between them; any byte may be written as \xNN.
  static Result<Message> Resp(std::string_view command, size_t key_bytes);

  // REQUIRES: key.size() is the key_bytes that it was made for.
  void Append(std::string_view key, base::ByteBuffer& to) const;

  [[nodiscard]] size_t bytes() const noexcept { return bytes_.size(); }

 private:
  Message(std::string_view text, size_t key_bytes);

  std::string bytes_;
  std::vector<size_t> holes_;  // where in bytes_ the key goes
};

}  // namespace weir::bench
