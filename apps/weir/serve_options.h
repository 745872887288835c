// What weir serve is told, and the same as a file for --config.
#pragma once

#include <string>

#include "server/config.h"

namespace weir::app {

struct ServeOptions {
  server::ServerConfig config;
  // Secrets are in files; only their names are told.
  std::string resp_password_file;
  std::string admin_token_file;
  std::string fleet_secret_file;
  std::string config_file;
  bool print_config = false;
  bool envoy_compat = false;
};

// As TOML. Read back it comes to the same options; a list that is empty is left out.
[[nodiscard]] std::string ToToml(const ServeOptions& options);

}  // namespace weir::app
