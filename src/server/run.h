// The server as a process: started, watched, and ended by signals.
#pragma once

#include "server/config.h"

namespace weir::server {

// Serves until SIGTERM or SIGINT; SIGHUP looks at the rule files at once. Prints where it listens,
// and what to try, on standard output. False: it could not start, and standard error says why.
bool RunUntilSignal(const ServerConfig& given);

}  // namespace weir::server
