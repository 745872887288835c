#include "import/nginx_places.h"

#include <algorithm>
#include <cstddef>

namespace weir::import {

namespace {

// Whether all requests that meet `inner` meet `outer`, as far as can be told.
bool Covers(const Conditions& outer, const Conditions& inner) {
  return std::all_of(outer.begin(), outer.end(), [&](const Condition& wide) {
    return std::any_of(inner.begin(), inner.end(), [&](const Condition& narrow) {
      return narrow == wide ||
             (narrow.attribute == wide.attribute &&
              std::all_of(narrow.any.begin(), narrow.any.end(), [&](const Test& test) {
                return (test.match == Match::kExact || test.match == Match::kPrefix) &&
                       std::any_of(wide.any.begin(), wide.any.end(), [&](const Test& other) {
                         return other.match == Match::kPrefix && test.text.starts_with(other.text);
                       });
              }));
    });
  });
}

bool SameLimit(const NginxLimit* a, const NginxLimit* b) {
  return a == b || (a != nullptr && b != nullptr && a->SameAs(*b));
}

// Makes `to` hold for both, if they differ in one attribute only.
bool Join(Conditions& to, const Conditions& more) {
  if (to.size() != more.size()) {
    return false;
  }
  size_t differing = to.size();
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == more[i]) {
      continue;
    }
    if (to[i].attribute != more[i].attribute || differing != to.size()) {
      return false;
    }
    differing = i;
  }
  if (differing < to.size()) {
    to[differing].any.insert(to[differing].any.end(), more[differing].any.begin(),
                             more[differing].any.end());
  }
  return true;
}

}  // namespace

std::vector<NginxPlace> NeededPlaces(const std::vector<NginxPlace>& entries) {
  std::vector<NginxPlace> kept;  // the last first
  for (size_t i = entries.size(); i > 0; --i) {
    const NginxPlace& entry = entries[i - 1];
    bool needed = entry.limit != nullptr;
    for (size_t j = kept.size(); j > 0; --j) {
      const NginxPlace& later = kept[j - 1];
      if (AreExclusive(entry.when, later.when)) {
        continue;
      }
      needed = !SameLimit(entry.limit, later.limit);
      if (needed || Covers(later.when, entry.when)) {
        break;
      }
      needed = entry.limit != nullptr;
    }
    if (needed) {
      kept.push_back(entry);
    }
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

std::vector<NginxPlace> JoinedPlaces(std::vector<NginxPlace> entries) {
  for (size_t i = 0; i < entries.size(); ++i) {
    for (size_t j = i + 1; j < entries.size();) {
      const bool in_order = std::all_of(
          entries.begin() + static_cast<ptrdiff_t>(i) + 1,
          entries.begin() + static_cast<ptrdiff_t>(j),
          [&](const NginxPlace& between) { return AreExclusive(between.when, entries[j].when); });
      if (entries[i].limit == nullptr || !SameLimit(entries[i].limit, entries[j].limit) ||
          !in_order || !Join(entries[i].when, entries[j].when)) {
        ++j;
      } else {
        entries.erase(entries.begin() + static_cast<ptrdiff_t>(j));
      }
    }
  }
  return entries;
}

}  // namespace weir::import
