// What is called over gRPC. A service is a few of these in a table: nothing else has to know it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/grpc/call.h"
#include "codec/grpc/status.h"

namespace weir::codec::grpc {

class Method {
 public:
  enum class Shape : uint8_t {
    kUnary,         // one message, one answer
    kServerStream,  // one message, answers until the client has gone
    kBidiStream,    // each message has its answer; ends when the client ends
  };

  // `path` as on the wire: "/package.Service/Method".
  Method(std::string path, Shape shape) : path_(std::move(path)), shape_(shape) {}
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;
  virtual ~Method() = default;

  [[nodiscard]] std::string_view path() const noexcept { return path_; }
  [[nodiscard]] Shape shape() const noexcept { return shape_; }
  // How many messages it was given so far.
  [[nodiscard]] uint64_t messages() const noexcept { return messages_; }

  // A whole message. The answer goes by call.Reply, now or later (Call::AnswerLater); a status
  // other than ok ends the call instead.
  virtual Status OnMessage(Call& call, std::string_view message) = 0;
  // A server stream that is open: about once a second, and when the server begins to go.
  virtual Status OnWake(Call& call) {
    (void)call;
    return {};
  }

 private:
  friend class Session;

  const std::string path_;
  const Shape shape_;
  uint64_t messages_ = 0;
};

// All methods of a listener. Made once for each loop, so that methods may keep memory.
class MethodTable {
 public:
  void Add(std::unique_ptr<Method> method) { methods_.push_back(std::move(method)); }

  // Few, and of different lengths: what is asked for most should be added first.
  [[nodiscard]] Method* Find(std::string_view path) const noexcept {
    for (const std::unique_ptr<Method>& method : methods_) {
      if (method->path() == path) {
        return method.get();
      }
    }
    return nullptr;
  }

  [[nodiscard]] const std::vector<std::unique_ptr<Method>>& all() const noexcept {
    return methods_;
  }
  // "package.Service", each once.
  [[nodiscard]] std::vector<std::string> Services() const {
    std::vector<std::string> services;
    for (const std::unique_ptr<Method>& method : methods_) {
      std::string service(method->path().substr(1, method->path().rfind('/') - 1));
      if (services.empty() || services.back() != service) {
        services.push_back(std::move(service));
      }
    }
    return services;
  }

 private:
  std::vector<std::unique_ptr<Method>> methods_;
};

}  // namespace weir::codec::grpc
