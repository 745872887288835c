// The files of RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY, as users of the original lay
// them out: by hand, by a symbolic link that is swapped, by a ConfigMap.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weir/result.h"

#include "envoy/rls_service.h"

namespace weir::envoy {

struct RuntimeDirectory {
  static constexpr size_t kMaxFiles = 1000;
  static constexpr size_t kMaxBytes = size_t{64} << 20;  // of all files

  std::string root = "/srv/runtime_data/current";
  std::string subdirectory;
  std::string app_directory = "config";
  bool ignore_dot_files = false;

  [[nodiscard]] std::string path() const;

  // Every *.yaml and *.yml in it and in folders below, by name: their path from here, with dots for
  // slashes. Names with a leading dot only unless told to ignore them; what begins with two dots,
  // where a ConfigMap keeps its versions, never. A folder that is not there has no files.
  [[nodiscard]] Result<std::vector<ConfigFile>> Read() const;
};

}  // namespace weir::envoy
