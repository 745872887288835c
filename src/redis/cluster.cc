#include "redis/cluster.h"

#include <charconv>

#include "redis/call.h"

namespace weir::redis {

namespace {

using codec::resp::Reply;
using codec::resp::ReplyType;

Error Bad(const char* what) {
  return Error{ErrorCode::kUnavailable, std::string("CLUSTER SLOTS: ") + what};
}

bool IsSlot(const Reply& reply) {
  return reply.type == ReplyType::kInteger && reply.integer >= 0 && reply.integer < kSlots;
}

std::string HostOr(std::string_view host, const Address& asked) {
  return host.empty() ? asked.host : std::string(host);
}

}  // namespace

Result<std::vector<SlotRange>> ReadClusterSlots(const Reply& reply, const Address& asked) {
  if (reply.type != ReplyType::kArray) {
    return Bad("not an array");
  }
  std::vector<SlotRange> ranges;
  for (const Reply& range : reply.elements()) {
    if (range.type != ReplyType::kArray || range.size < 3 || !IsSlot(range.element(0)) ||
        !IsSlot(range.element(1)) || range.element(0).integer > range.element(1).integer) {
      return Bad("a range without its ends");
    }
    const Reply& master = range.element(2);
    if (master.type != ReplyType::kArray || master.size < 2 ||
        master.element(1).type != ReplyType::kInteger || master.element(1).integer <= 0 ||
        master.element(1).integer > 0xffff) {
      return Bad("a master without its address");
    }
    const std::string_view host = master.element(0).text;
    if (host == "?") {
      continue;  // it has a name that is not known yet
    }
    ranges.push_back({.first = static_cast<uint16_t>(range.element(0).integer),
                      .last = static_cast<uint16_t>(range.element(1).integer),
                      .master = {.host = HostOr(host, asked),
                                 .port = static_cast<uint16_t>(master.element(1).integer),
                                 .unix_path = {}}});
  }
  return ranges;
}

std::optional<Redirect> ReadRedirect(std::string_view text, const Address& asked) {
  const size_t first = text.find(' ');
  const size_t second = first == std::string_view::npos ? first : text.find(' ', first + 1);
  if (second == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view where = text.substr(second + 1);
  const size_t colon = where.rfind(':');  // of an IPv6 address, too, the last
  if (where.substr(0, colon) == "?") {
    return std::nullopt;  // it has a name that is not known yet
  }
  uint32_t slot = 0;
  uint16_t port = 0;
  const char* const slot_end = text.data() + second;
  const char* const end = text.data() + text.size();
  if (colon == std::string_view::npos ||
      std::from_chars(text.data() + first + 1, slot_end, slot).ptr != slot_end || slot >= kSlots ||
      std::from_chars(where.data() + colon + 1, end, port).ptr != end || port == 0) {
    return std::nullopt;
  }
  return Redirect{
      .slot = static_cast<uint16_t>(slot),
      .to = {.host = HostOr(where.substr(0, colon), asked), .port = port, .unix_path = {}}};
}

}  // namespace weir::redis
