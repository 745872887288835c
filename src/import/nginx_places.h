// The places of an nginx configuration that serve requests, in the order in which nginx chooses
// them, and what they have of one zone's limits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "import/imported.h"
#include "import/nginx_key.h"

namespace weir::import {

struct NginxZone {
  std::string name;
  std::string rate;  // "10/s"; of limit_conn_zone empty
  std::optional<NginxKey> key;
};

// One limit_req or limit_conn.
struct NginxLimit {
  const NginxZone* zone = nullptr;
  std::string limit;  // a quota's text
  std::string source;
  Place place;
  bool dry_run = false;

  [[nodiscard]] bool SameAs(const NginxLimit& other) const {
    return limit == other.limit && dry_run == other.dry_run;
  }
};

struct NginxPlace {
  Conditions when;
  const NginxLimit* limit = nullptr;  // nullptr: no limit of this zone
  std::string label;
};

// Without those that make no difference.
[[nodiscard]] std::vector<NginxPlace> NeededPlaces(const std::vector<NginxPlace>& entries);

// Places with the same limit share its count, where one rule can say them all.
[[nodiscard]] std::vector<NginxPlace> JoinedPlaces(std::vector<NginxPlace> entries);

}  // namespace weir::import
