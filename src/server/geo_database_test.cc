// Databases of addresses, made for the test by MaxMind's own writer.
#include "server/geo_database.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/ip_address.h"

namespace weir::server {
namespace {

std::string Make(const std::string& kind, const std::string& name, const std::string& networks) {
  const std::string path = testing::TempDir() + "/" + name;
  const std::string made = path + ".new";
  const std::string command =
      "perl tests/integration/make_geo_db.pl " + kind + " " + made + " " + networks;
  EXPECT_EQ(std::system(command.c_str()), 0) << command;  // NOLINT(concurrency-mt-unsafe)
  std::filesystem::rename(made, path);
  return path;
}

AddressBytes Bytes(std::string_view text) {
  const auto address = base::IpAddress::Parse(text);
  if (!address->is_v4) {
    return address->bytes;
  }
  AddressBytes bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  std::copy_n(address->bytes.begin(), 4, bytes.begin() + 12);
  return bytes;
}

std::string Known(const GeoDatabase& database, std::string_view address) {
  const AddressFacts facts = database.Find(Bytes(address));
  const size_t letters = facts.country[0] == '\0' ? 0 : facts.country.size();
  return std::to_string(facts.asn) + std::string(facts.country.data(), letters);
}

TEST(GeoDatabase, KnowsNetworkAndCountryOfBothFamilies) {
  const std::string asn = Make("ASN", "a.mmdb", "192.0.2.0/24=64496 2001:db8::/32=64497");
  const std::string country = Make("Country", "c.mmdb", "192.0.2.0/25=DE 2001:db8:1::/48=NL");
  const auto database = GeoDatabase::Open({asn, country});
  ASSERT_TRUE(database.ok()) << database.error().message;
  EXPECT_EQ(Known(**database, "192.0.2.1"), "64496DE");
  EXPECT_EQ(Known(**database, "192.0.2.200"), "64496");
  EXPECT_EQ(Known(**database, "2001:db8:1::5"), "64497NL");
  EXPECT_EQ(Known(**database, "198.51.100.1"), "0");
}

TEST(GeoDatabase, TakesANewFileAndKeepsTheOldOneIfTheNewOneIsBad) {
  const std::string path = Make("Country", "r.mmdb", "192.0.2.0/24=DE");
  const auto database = GeoDatabase::Open({path});
  ASSERT_TRUE(database.ok()) << database.error().message;
  auto reloaded = (*database)->Reload();
  EXPECT_TRUE(reloaded.ok() && !*reloaded) << "nothing has changed";
  Make("Country", "r.mmdb", "192.0.2.0/24=FR 203.0.113.0/24=NL");
  reloaded = (*database)->Reload();
  EXPECT_TRUE(reloaded.ok() && *reloaded);
  EXPECT_EQ(Known(**database, "192.0.2.1"), "0FR");
  std::ofstream(path) << "written over in place";
  EXPECT_EQ(Known(**database, "203.0.113.1"), "0NL") << "it was copied";
  EXPECT_FALSE((*database)->Reload().ok());
  EXPECT_TRUE((*database)->Reload().ok()) << "told once";
  EXPECT_EQ(Known(**database, "203.0.113.1"), "0NL");
  std::filesystem::remove(path);
  EXPECT_FALSE((*database)->Reload().ok());
  EXPECT_EQ(Known(**database, "203.0.113.1"), "0NL");
}

TEST(GeoDatabase, RefusesWhatIsNoDatabase) {
  const auto message = [](const std::string& path) {
    const auto database = GeoDatabase::Open({path});
    return database.ok() ? "" : database.error().message;
  };
  EXPECT_NE(message("/nonexistent/x.mmdb").find("cannot be read"), std::string::npos);
  EXPECT_NE(message("README.md").find("no database of MaxMind's format"), std::string::npos);
  EXPECT_NE(message("docs").find("expected a file"), std::string::npos);
}

}  // namespace
}  // namespace weir::server
