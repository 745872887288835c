// How many connections one address may have, over all loops. Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ip_address.h"
#include "base/mutex.h"

namespace weir::net {

class AddressCap {
 public:
  // `most` 0: as many as they like. Of an IPv6 address so many bits count. Addresses in `exempt`
  // are not counted, nor are unix sockets.
  AddressCap(size_t most, unsigned ipv6_bits, std::vector<base::IpPrefix> exempt)
      : most_(most), ipv6_bits_(ipv6_bits), exempt_(std::move(exempt)) {}

  AddressCap(const AddressCap&) = delete;
  AddressCap& operator=(const AddressCap&) = delete;

  // Held by a connection for as long as it lives. REQUIRES: the cap lives longer.
  class Place {
   public:
    ~Place() { cap_.Leave(address_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    friend class AddressCap;
    Place(AddressCap& cap, std::string address) : cap_(cap), address_(std::move(address)) {}

    AddressCap& cap_;
    const std::string address_;
  };

  // False: that address has as many as it may. True without a place: it is not counted.
  [[nodiscard]] bool Take(std::string_view address, std::unique_ptr<Place>& place);

  [[nodiscard]] size_t addresses() const;

 private:
  void Leave(const std::string& address);

  const size_t most_;
  const unsigned ipv6_bits_;
  const std::vector<base::IpPrefix> exempt_;
  mutable base::Mutex mutex_;
  std::unordered_map<std::string, size_t> counts_ WEIR_GUARDED_BY(mutex_);  // none is 0
};

}  // namespace weir::net
