// Asks the admin address of a server, one question a connection.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "weir/result.h"

#include "apps/weir/target.h"

namespace weir::app {

class AdminClient {
 public:
  // `token` goes along as Authorization: Bearer, unless it is empty.
  AdminClient(Target target, std::string token)
      : target_(std::move(target)), token_(std::move(token)) {}

  // `server` as a user names it: http://HOST:PORT; `token_file` may be empty.
  static Result<AdminClient> Open(const std::string& server, const std::string& token_file);

  // The body of a 200. Gives up after two seconds without an answer.
  [[nodiscard]] Result<std::string> Get(const std::string& path) const;
  // The same for a question in JSON.
  [[nodiscard]] Result<std::string> Post(const std::string& path, std::string_view accept,
                                         std::string_view json) const;

  [[nodiscard]] const std::string& address() const noexcept { return target_.authority; }

 private:
  [[nodiscard]] Result<std::string> Ask(std::string request, std::string_view body) const;

  Target target_;
  std::string token_;
};

// The first line of the file; nothing for no file.
[[nodiscard]] Result<std::string> ReadToken(const std::string& path);

}  // namespace weir::app
