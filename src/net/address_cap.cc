#include "net/address_cap.h"

#include <algorithm>

namespace weir::net {

bool AddressCap::Take(std::string_view address, std::unique_ptr<Place>& place) {
  const auto parsed = base::IpAddress::Parse(address);
  if (most_ == 0 || !parsed) {
    return true;
  }
  const base::IpAddress peer = parsed->Unwrapped();
  if (std::any_of(exempt_.begin(), exempt_.end(),
                  [&peer](const base::IpPrefix& prefix) { return prefix.Contains(peer); })) {
    return true;
  }
  char text[base::IpAddress::kTextBytes];
  std::string counted((peer.is_v4 ? peer : peer.Masked(ipv6_bits_)).Format(text));
  const base::MutexLock lock(mutex_);
  size_t& count = counts_[counted];
  if (count == most_) {
    return false;
  }
  ++count;
  place.reset(new Place(*this, std::move(counted)));
  return true;
}

void AddressCap::Leave(const std::string& address) {
  const base::MutexLock lock(mutex_);
  const auto found = counts_.find(address);
  if (--found->second == 0) {
    counts_.erase(found);
  }
}

size_t AddressCap::addresses() const {
  const base::MutexLock lock(mutex_);
  return counts_.size();
}

}  // namespace weir::net
