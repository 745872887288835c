// What answering one HTTP request takes in memory, used again and again. One for each request that
// is being answered at the same time: as a rule one in all, but those that wait for a store have
// theirs meanwhile.
#pragma once

#include <array>
#include <string>

#include "weir/rules.h"

#include "base/ip_address.h"
#include "codec/http/check_json.h"

namespace weir::server {

struct HttpDesk {
  RuleReply reply;
  codec::http::JsonReader json;
  // What was sent, and who sent it.
  std::array<Attribute, kMaxAttributes + 1> attributes;
  // What attributes of a request were decoded to.
  std::string text;
  std::string path;
  std::string names;
  std::string id;  // as it is kept, with who asks
  std::array<char, base::IpAddress::kTextBytes> address;
};

}  // namespace weir::server
