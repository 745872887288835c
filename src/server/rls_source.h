// Files of descriptors for Envoy's questions: read at the start, and again whenever told to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weir/result.h"

#include "envoy/rls_service.h"

namespace weir::server {

// `paths` are files, or folders of *.yaml and *.yml files. The error names what was not taken; then
// nothing has changed.
Result<void> LoadDescriptors(envoy::RlsService& service, const std::vector<std::string>& paths);

}  // namespace weir::server
