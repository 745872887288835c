#include <cstdlib>

#include "redis/client_test.h"

namespace weir::redis {
namespace {

using testing::RedisProcess;

// An authority of the test's own, and a server's and a client's certificate from it.
class ClientTlsTest : public ClientTest {
 protected:
  ClientTlsTest() {
    const std::string script =
        "cd " + folder.path() +
        " && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "
        "ca.key -out ca.pem -subj /CN=test "
        "-days 2 2>/dev/null"
        " && for name in server client; do openssl req -newkey ec -pkeyopt "
        "ec_paramgen_curve:prime256v1 -nodes -keyout $name.key "
        "-out $name.csr -subj /CN=$name 2>/dev/null"
        " && printf 'subjectAltName=IP:127.0.0.1,DNS:redis.test' > ext"
        " && openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial "
        "-out $name.pem -days 2 -extfile ext 2>/dev/null || exit 1; done";
    EXPECT_EQ(std::system(script.c_str()), 0);
  }

  RedisProcess::Options Server(const std::string& auth_clients) const {
    return {.config = {"tls-port " + std::to_string(tls_port),
                       "tls-cert-file " + folder.path() + "/server.pem",
                       "tls-key-file " + folder.path() + "/server.key",
                       "tls-ca-cert-file " + folder.path() + "/ca.pem",
                       "tls-auth-clients " + auth_clients}};
  }
  std::string Tls(const std::string& query, const std::string& host = "127.0.0.1") const {
    return "rediss://" + host + ":" + std::to_string(tls_port) + "?" + query;
  }
  std::string File(const std::string& name) const { return folder.path() + "/" + name; }

  testing::TemporaryFolder folder;
  uint16_t tls_port = testing::FreePort();
};

TEST_F(ClientTlsTest, SpeaksTlsToAServerThatItCanVerify) {
  RedisProcess redis(Server("no"));
  Make(Tls("ca=" + File("ca.pem")));
  ASSERT_TRUE(Until([&] { return client->ready(); }));
  EXPECT_EQ(Ask({"SET", "k", std::string(50'000, 'x')}), "OK");
  EXPECT_EQ(Ask({"STRLEN", "k"}), "50000");
  Tally tally;
  Crowd crowd(context, *client, 64, tally, std::chrono::seconds(5));
  EXPECT_TRUE(Until([&] { return tally.good > 2000; }));
  crowd.Stop();
  EXPECT_TRUE(Until([&] { return crowd.busy() == 0; }));
  EXPECT_EQ(tally.failed + tally.mismatched, 0U);
}

TEST_F(ClientTlsTest, RefusesAServerThatItCannotVerify) {
  RedisProcess redis(Server("no"));
  Make(Tls("timeout=10ms"));  // the system does not know that authority
  EXPECT_TRUE(Until([&] { return Saw(Trouble::kTls); }));
  EXPECT_NE(events.back().text.find("certificate verify failed"), std::string::npos)
      << events.back().text;
  Make(Tls("ca=" + File("ca.pem") + "&server-name=other.test"));
  events.clear();
  EXPECT_TRUE(Until([&] { return Saw(Trouble::kTls); }));
  EXPECT_FALSE(client->ready());
  Make(Tls("ca=" + File("ca.pem") + "&server-name=redis.test"));
  EXPECT_TRUE(Until([&] { return client->ready(); }));
  Make(Tls("verify=no"));
  EXPECT_TRUE(Until([&] { return client->ready(); }));
}

TEST_F(ClientTlsTest, ShowsItsCertificateWhereOneIsWanted) {
  RedisProcess redis(Server("yes"));
  Make(Tls("ca=" + File("ca.pem")));
  EXPECT_TRUE(Until([&] { return !events.empty(); }));
  EXPECT_FALSE(client->ready());
  Make(Tls("ca=" + File("ca.pem") + "&cert=" + File("client.pem") + "&key=" + File("client.key")));
  EXPECT_TRUE(Until([&] { return client->ready(); }));
}

TEST_F(ClientTlsTest, NamesTlsToAPlainPortAndPlainToATlsPort) {
  RedisProcess redis(Server("no"));
  Make("rediss://" + redis.address() + "?connect-timeout=300ms&ca=" + File("ca.pem"));
  EXPECT_TRUE(Until([&] { return Saw(Trouble::kTlsToPlain); }));
  EXPECT_NE(events.back().text.find("redis://"), std::string::npos);
  Make("redis://127.0.0.1:" + std::to_string(tls_port));
  EXPECT_TRUE(Until([&] { return Saw(Trouble::kPlainToTls) || Saw(Trouble::kLost); }));
  EXPECT_FALSE(client->ready());
}

TEST_F(ClientTlsTest, FilesThatCannotBeUsedAreNamed) {
  const auto refused = [&](const std::string& query) {
    auto made = Client::Create(context, *Options::Parse(Tls(query)), {});
    EXPECT_FALSE(made);
    return made ? "" : made.error().message;
  };
  EXPECT_NE(refused("ca=" + File("none")).find("ca='" + File("none")), std::string::npos);
  EXPECT_NE(refused("cert=" + File("client.pem") + "&key=" + File("server.key")).find("key='"),
            std::string::npos);
}

}  // namespace
}  // namespace weir::redis
