// Asks the admin address of a server, one question a connection.
#pragma once

#include <string>

#include "weir/result.h"

#include "apps/weir/target.h"

namespace weir::top {

class AdminClient {
 public:
  // `token` goes along as Authorization: Bearer, unless it is empty.
  AdminClient(app::Target target, std::string token)
      : target_(std::move(target)), token_(std::move(token)) {}

  // The body of a 200. Gives up after two seconds without an answer.
  [[nodiscard]] Result<std::string> Get(const std::string& path) const;

  [[nodiscard]] const std::string& address() const noexcept { return target_.authority; }

 private:
  app::Target target_;
  std::string token_;
};

}  // namespace weir::top
