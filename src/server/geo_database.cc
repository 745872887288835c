#include "server/geo_database.h"

#include <fcntl.h>
#include <maxminddb.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/spelling.h"

namespace weir::server {

namespace {

constexpr off_t kMaxFileBytes = off_t{2} << 30;

class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

Error Cannot(const std::string& file, const std::string& why) {
  return Error::Invalid("--geo-db " + base::Quoted(file) + ": " + why);
}

// The library opens by name only: this is the name of a copy that nobody else can change.
Result<void> CopyInto(const std::string& file, int to) {
  const Descriptor from(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts{};
  if (from.get() < 0 || ::fstat(from.get(), &facts) != 0) {
    return Cannot(file, std::string("it cannot be read: ") + std::strerror(errno));
  }
  if (!S_ISREG(facts.st_mode) || facts.st_size > kMaxFileBytes) {
    return Cannot(file, "expected a file of at most 2 GiB");
  }
  std::vector<char> buffer(size_t{1} << 20);
  for (;;) {
    const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
    if (got == 0) {
      return {};
    }
    for (ssize_t done = 0; done < got;) {
      const ssize_t put = ::write(to, buffer.data() + done, static_cast<size_t>(got - done));
      if (put <= 0) {
        return Cannot(file, std::string("it cannot be copied: ") + std::strerror(errno));
      }
      done += put;
    }
    if (got < 0) {
      return Cannot(file, std::string("it cannot be read: ") + std::strerror(errno));
    }
  }
}

class File {
 public:
  static Result<std::unique_ptr<File>> Open(const std::string& name) {
    const Descriptor copy(::memfd_create("weir-geo", MFD_CLOEXEC));
    if (copy.get() < 0) {
      return Cannot(name, std::string("no memory for it: ") + std::strerror(errno));
    }
    if (auto copied = CopyInto(name, copy.get()); !copied) {
      return copied.error();
    }
    std::unique_ptr<File> file(new File());
    const std::string path = "/proc/self/fd/" + std::to_string(copy.get());
    const int status = MMDB_open(path.c_str(), MMDB_MODE_MMAP, &file->database_);
    if (status != MMDB_SUCCESS) {
      return Cannot(name,
                    std::string("it is no database of MaxMind's format: ") + MMDB_strerror(status));
    }
    file->open_ = true;
    const std::string_view type = file->database_.metadata.database_type;
    const auto mentions = [type](std::string_view word) {
      return type.find(word) != std::string_view::npos;
    };
    const bool countries = mentions("Country") || mentions("City");
    const bool networks = mentions("ASN") || mentions("ISP");
    file->has_asn_ = networks || !countries;
    file->has_country_ = countries || !networks;
    if (!file->IsSound()) {
      return Cannot(name, "it is damaged");
    }
    return file;
  }

  ~File() {
    if (open_) {
      MMDB_close(&database_);
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // False: the database is damaged.
  bool Find(const AddressBytes& address, AddressFacts& facts) const noexcept {
    sockaddr_in6 v6{};
    sockaddr_in v4{};
    constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    const bool is_v4 = std::equal(kMapped.begin(), kMapped.end(), address.begin());
    const sockaddr* where = nullptr;
    if (is_v4) {
      v4.sin_family = AF_INET;
      std::memcpy(&v4.sin_addr, address.data() + kMapped.size(), 4);
      where = reinterpret_cast<const sockaddr*>(&v4);
    } else {
      if (database_.metadata.ip_version == 4) {
        return true;
      }
      v6.sin6_family = AF_INET6;
      std::memcpy(&v6.sin6_addr, address.data(), address.size());
      where = reinterpret_cast<const sockaddr*>(&v6);
    }
    int error = MMDB_SUCCESS;
    MMDB_lookup_result_s found = MMDB_lookup_sockaddr(&database_, where, &error);
    if (error != MMDB_SUCCESS) {
      return false;
    }
    if (found.found_entry) {
      Read(found.entry, facts);
    }
    return true;
  }

 private:
  File() = default;

  [[nodiscard]] bool IsSound() const noexcept {
    AddressFacts facts;
    for (const uint8_t first : std::array<uint8_t, 4>{1, 8, 77, 203}) {
      AddressBytes v4 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, first, 2, 3, 4};
      AddressBytes v6 = {0x20, first};
      if (!Find(v4, facts) || !Find(v6, facts)) {
        return false;
      }
    }
    return true;
  }

  void Read(MMDB_entry_s& entry, AddressFacts& facts) const noexcept {
    MMDB_entry_data_s data{};
    if (has_asn_ && facts.asn == 0 &&
        MMDB_get_value(&entry, &data, "autonomous_system_number", nullptr) == MMDB_SUCCESS &&
        data.has_data) {
      facts.asn = data.type == MMDB_DATA_TYPE_UINT32   ? data.uint32
                  : data.type == MMDB_DATA_TYPE_UINT16 ? data.uint16
                                                       : 0;
    }
    if (has_country_ && facts.country[0] == '\0' &&
        MMDB_get_value(&entry, &data, "country", "iso_code", nullptr) == MMDB_SUCCESS &&
        data.has_data && data.type == MMDB_DATA_TYPE_UTF8_STRING && data.data_size == 2) {
      std::copy_n(data.utf8_string, 2, facts.country.begin());
    }
  }

  MMDB_s database_{};
  bool open_ = false;
  bool has_asn_ = false;
  bool has_country_ = false;
};

}  // namespace

struct GeoDatabase::Snapshot {
  std::vector<std::unique_ptr<File>> files;
};

// Enough to see that another file is there.
struct GeoDatabase::Stamp {
  ino_t inode = 0;
  off_t size = -1;
  int64_t changed_s = 0;
  int64_t changed_ns = 0;

  bool operator==(const Stamp& other) const = default;

  static std::vector<Stamp> Of(const std::vector<std::string>& files) {
    std::vector<Stamp> stamps;
    for (const std::string& file : files) {
      struct stat facts{};
      if (::stat(file.c_str(), &facts) == 0) {
        stamps.push_back(
            {facts.st_ino, facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec});
      } else {
        stamps.emplace_back();
      }
    }
    return stamps;
  }
};

GeoDatabase::GeoDatabase(std::vector<std::string> files, std::unique_ptr<Snapshot> snapshot,
                         std::vector<Stamp> stamps)
    : files_(std::move(files)), snapshot_(std::move(snapshot)), stamps_(std::move(stamps)) {}

GeoDatabase::~GeoDatabase() = default;

Result<std::unique_ptr<GeoDatabase::Snapshot>> GeoDatabase::Load(
    const std::vector<std::string>& files) {
  auto snapshot = std::make_unique<Snapshot>();
  for (const std::string& name : files) {
    auto file = File::Open(name);
    if (!file) {
      return file.error();
    }
    snapshot->files.push_back(*std::move(file));
  }
  return snapshot;
}

Result<std::unique_ptr<GeoDatabase>> GeoDatabase::Open(const std::vector<std::string>& files) {
  auto stamps = Stamp::Of(files);
  auto snapshot = Load(files);
  if (!snapshot) {
    return snapshot.error();
  }
  return std::unique_ptr<GeoDatabase>(
      new GeoDatabase(files, *std::move(snapshot), std::move(stamps)));
}

AddressFacts GeoDatabase::Find(const AddressBytes& address) const noexcept {
  AddressFacts facts;
  const void* const outer = gate_.Enter();
  for (const std::unique_ptr<File>& file : snapshot_->files) {
    (void)file->Find(address, facts);  // damaged there: nothing is known
  }
  gate_.Leave(outer);
  return facts;
}

Result<bool> GeoDatabase::Reload() {
  auto stamps = Stamp::Of(files_);
  if (stamps == stamps_) {
    return false;
  }
  stamps_ = std::move(stamps);
  auto snapshot = Load(files_);
  if (!snapshot) {
    return snapshot.error();
  }
  gate_.Exclusively([&] { std::swap(snapshot_, *snapshot); });
  return true;
}

}  // namespace weir::server
