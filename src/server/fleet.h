// The store that the nodes of a fleet share, as the server uses it: made from its configuration,
// told to its loops, shown in its metrics and log.
#pragma once

#include <memory>

#include "weir/result.h"
#include "weir/shared_store.h"

#include "net/loop.h"
#include "server/config.h"

namespace weir::shared {
class FleetStore;
}

namespace weir::server {

// None is asked for: null. A Redis that is away is no error; one that forgets keys is.
Result<std::shared_ptr<shared::FleetStore>> OpenFleet(const ServerConfig& config);

// Lets the loop's sessions wait for the store, which is asked on the loop itself. Before the loop
// has connections; `store` must outlive the loop's run.
void Join(net::Loop& loop, shared::FleetStore* store);

}  // namespace weir::server
