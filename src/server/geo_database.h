// Network and country of client addresses, from files of MaxMind's format (GeoLite2-ASN,
// GeoLite2-Country and the like).
//
// A file is copied into memory when it is opened, so that nobody who writes over it in place can
// pull it from under a look-up.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weir/result.h"
#include "weir/rules.h"

#include "base/reader_gate.h"

namespace weir::server {

class GeoDatabase final : public AddressSource {
 public:
  // Every file must be good. The error says which is not, and why.
  static Result<std::unique_ptr<GeoDatabase>> Open(const std::vector<std::string>& files);

  ~GeoDatabase() override;
  GeoDatabase(const GeoDatabase&) = delete;
  GeoDatabase& operator=(const GeoDatabase&) = delete;

  // Any thread.
  [[nodiscard]] AddressFacts Find(const AddressBytes& address) const noexcept override;

  // Looks whether the files are others than those in use, and takes them, all or none. False:
  // nothing has changed. After an error the same files are not looked at again. One thread.
  [[nodiscard]] Result<bool> Reload();

 private:
  struct Snapshot;
  struct Stamp;

  GeoDatabase(std::vector<std::string> files, std::unique_ptr<Snapshot> snapshot,
              std::vector<Stamp> stamps);

  static Result<std::unique_ptr<Snapshot>> Load(const std::vector<std::string>& files);

  const std::vector<std::string> files_;
  mutable base::ReaderGate gate_;
  std::unique_ptr<Snapshot> snapshot_;  // changes only while nobody is inside the gate
  std::vector<Stamp> stamps_;           // of the files that were looked at last
};

}  // namespace weir::server
