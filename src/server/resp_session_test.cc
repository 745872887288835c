// The Redis protocol as bytes in and bytes out, without a socket.
#include "server/resp_session.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::server {
namespace {

using std::chrono::seconds;

constexpr char kRules[] = R"(
rules:
  - name: per-key
    per: key
    limit: 10/min
    burst: 2
  - name: jobs
    when: { job: present }
    per: job
    limit: concurrency 1 lease 60s
  - name: no-entry
    when: { internal: present }
    block: true
)";

// A shared store that allows all and tells which keys it was asked for.
class KeyStore final : public SharedStore {
 public:
  Result<const SharedQuota*> Bind(const Quota& quota, uint64_t scope) override {
    quotas_.push_back(std::make_unique<SharedQuota>(quota, scope));
    return quotas_.back().get();
  }
  void Decide(SharedRequest& request) noexcept override {
    for (SharedAsk& ask : request.asks) {
      ask.decision = {};
      ask.decision.outcome = Outcome::kAllowed;
      keys.emplace_back(ask.key);
    }
  }
  uint32_t GiveBack(std::span<SharedReceipt>) noexcept override { return 0; }
  bool Renew(SharedReceipt&, Duration) noexcept override { return false; }
  ResetOutcome Reset(const SharedQuota&, std::string_view) noexcept override {
    return ResetOutcome::kDone;
  }
  void Reserve(SharedRequest&, uint64_t, Duration, std::string_view) noexcept override {}
  SharedSettlement Settle(std::string_view, uint64_t) noexcept override { return {}; }
  bool RenewReserved(std::string_view, Duration) noexcept override { return false; }
  std::string Bound(const SharedQuota&, OnStoreFailure) const override { return {}; }
  SharedStoreStats Stats() const override { return {}; }

  std::vector<std::string> keys;

 private:
  std::vector<std::unique_ptr<SharedQuota>> quotas_;
};

class Resp : public ::testing::Test {
 protected:
  Resp() { Begin(nullptr); }

  void Begin(std::shared_ptr<SharedStore> shared) {
    const RuleParse parsed = RuleSet::Parse(kRules);
    for (const RuleIssue& issue : parsed.issues) {
      EXPECT_EQ(issue.level, IssueLevel::kWarning) << ToString(issue);
    }
    ServiceOptions options;
    options.memory_bytes = 8 << 20;
    options.clock = &clock_;
    options.rules.clock = &clock_;
    options.rules.shared = std::move(shared);
    session_.reset();
    context_.reset();
    service_ = *CheckService::Create(parsed.rules, options);
    Connect();
  }

  void Connect(const std::string& password = {},
               const net::Peer& peer = {.address = "127.0.0.1", .port = 1, .local = true}) {
    options_.password = password;
    session_.reset();
    context_.reset(new RespContext{*service_, options_, {}, {}, {}});
    session_ = std::make_unique<RespSession>(*context_, peer);
  }

  std::string Say(std::string_view text) {
    base::ByteBuffer output;
    std::string input(text);
    const size_t size = input.size();
    input.append(net::Session::kPadding, '\0');
    last_ = session_->OnBytes(std::span(input.data(), size), output);
    EXPECT_LE(last_.consumed, size);
    return std::string(output.view());
  }

  ManualClock clock_{WallTime(seconds(1'700'000'000))};
  std::unique_ptr<CheckService> service_;
  RespOptions options_;
  std::unique_ptr<RespContext> context_;
  std::unique_ptr<RespSession> session_;
  net::Session::Progress last_;
};

TEST_F(Resp, AnswersClThrottleAsRedisCell) {
  EXPECT_EQ(Say("CL.THROTTLE user123 15 30 60\r\n"), "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n");
  EXPECT_EQ(Say("cl.throttle user123 15 30 60 16\r\n"), "*5\r\n:1\r\n:16\r\n:15\r\n:2\r\n:2\r\n");
  EXPECT_EQ(Say("THROTTLE crab 5 1 1\r\n"), "*5\r\n:1\r\n:5\r\n:4\r\n:1\r\n:0\r\n");
}

TEST_F(Resp, AnswersAllOfAReadInOrder) {
  std::string many;
  std::string expected;
  for (int i = 0; i < 70; ++i) {
    many += "CL.THROTTLE k" + std::to_string(i) + " 0 1 60\r\n";
    expected += "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n";
    if (i % 13 == 5) {
      many += "PING\r\nCL.THROTTLE bad x 1 1\r\n";
      expected += "+PONG\r\n-Cell error: Store error: Couldn't parse as integer: x\r\n";
    }
  }
  EXPECT_EQ(Say(many), expected);
  EXPECT_EQ(last_.consumed, many.size());
  EXPECT_EQ(last_.next, net::Session::Next::kIdle);
}

// Questions to a shared store wait for one another, so their keys must outlive the next command.
TEST_F(Resp, TypedLinesThatWaitForASharedStoreKeepTheirKeys) {
  const std::string longer(60, 'b');  // not so long that the key is a digest
  for (const char* const form : {"%s", "\"%s\"", "'%s'", "%.1s\"%s\""}) {
    const auto store = std::make_shared<KeyStore>();
    Begin(store);
    const auto word = [form](const std::string& key) {
      char text[512];
      std::snprintf(text, sizeof text, form, key.c_str(), key.c_str());
      return std::string(text);
    };
    const std::string one = word("a");
    const std::string two = word(longer);
    Say("WEIR.CHECK key " + one + "\r\nWEIR.CHECK key " + two + "\r\nCL.THROTTLE " + one +
        " 1 1 1\r\nCL.THROTTLE " + two + " 1 1 1\r\n");
    ASSERT_EQ(store->keys.size(), 4U) << form;
    for (size_t i = 0; i < 4; i += 2) {
      EXPECT_TRUE(store->keys[i].ends_with('a')) << form << ' ' << i << ' ' << store->keys[i];
      EXPECT_TRUE(store->keys[i + 1].ends_with(longer)) << form << ' ' << store->keys[i + 1];
    }
  }
}

TEST_F(Resp, WaitsForTheRestOfACommand) {
  EXPECT_EQ(Say("*1\r\n$4\r\nPI"), "");
  EXPECT_EQ(last_.next, net::Session::Next::kMessage);
}

TEST_F(Resp, EndsAConnectionThatIsNoRedis) {
  EXPECT_EQ(Say("PING\r\n*1\r\n!4\r\n"), "+PONG\r\n-ERR Protocol error: expected '$', got '!'\r\n");
  EXPECT_EQ(last_.next, net::Session::Next::kClose);
  EXPECT_EQ(context_->counters.protocol_errors.load(), 1U);
}

TEST_F(Resp, SpeaksVersionThreeWhenAsked) {
  const std::string hello = Say("HELLO 3 SETNAME me\r\n");
  EXPECT_TRUE(hello.starts_with("%7\r\n$6\r\nserver\r\n$4\r\nweir\r\n")) << hello;
  EXPECT_EQ(Say("CLIENT GETNAME\r\n"), "$2\r\nme\r\n");
  EXPECT_TRUE(Say("WEIR.CHECK key a\r\n").starts_with("%8\r\n$7\r\nallowed\r\n#t\r\n"));
  EXPECT_TRUE(Say("HELLO 4\r\n").starts_with("-NOPROTO"));
  EXPECT_EQ(Say("RESET\r\n"), "+RESET\r\n");
  EXPECT_TRUE(Say("HELLO\r\n").starts_with("*14\r\n"));
}

TEST_F(Resp, WantsThePasswordIfThereIsOne) {
  Connect("sesame");
  EXPECT_EQ(Say("CL.THROTTLE k 1 1 1\r\n"), "-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(Say("PING\r\n"), "-NOAUTH Authentication required.\r\n");
  EXPECT_TRUE(Say("AUTH wrong\r\n").starts_with("-WRONGPASS"));
  EXPECT_TRUE(Say("AUTH other sesame\r\n").starts_with("-WRONGPASS"));
  EXPECT_TRUE(Say("HELLO 3\r\n").starts_with("-NOAUTH"));
  EXPECT_EQ(Say("AUTH sesame\r\n"), "+OK\r\n");
  EXPECT_EQ(Say("PING\r\n"), "+PONG\r\n");
  Connect("sesame");
  EXPECT_TRUE(Say("HELLO 3 AUTH default sesame\r\n").starts_with("%7"));
  // RESET leaves nothing of it, its limits neither.
  EXPECT_EQ(Say("RESET\r\n"), "+RESET\r\n");
  EXPECT_EQ(Say("*11\r\n"), "-ERR Protocol error: unauthenticated multibulk length\r\n");
}

TEST_F(Resp, OperatorsAskFromThisMachineOrWithThePassword) {
  const net::Peer far{.address = "192.0.2.1", .port = 1};
  for (const std::string name : {"WEIR.RESET", "weir.explain"}) {
    Connect();
    EXPECT_FALSE(Say(name + " key a\r\n").starts_with('-'));
    Connect({}, far);
    EXPECT_TRUE(Say(name + " key a\r\n").starts_with("-NOPERM ")) << name;
    EXPECT_TRUE(Say("WEIR.CHECK key a\r\n").starts_with("*16"));
    Connect("sesame", far);
    EXPECT_TRUE(Say(name + " key a\r\n").starts_with("-NOAUTH ")) << name;
    Say("AUTH sesame\r\n");
    EXPECT_FALSE(Say(name + " key a\r\n").starts_with('-'));
  }
}

TEST_F(Resp, DecidesByTheRules) {
  EXPECT_TRUE(Say("WEIR.CHECK key a\r\n").starts_with("*16\r\n$7\r\nallowed\r\n:1\r\n"));
  const std::string peek = Say("WEIR.PEEK key a\r\n");
  EXPECT_NE(peek.find("$9\r\nremaining\r\n:0\r\n"), std::string::npos) << peek;
  Say("WEIR.CHECK key a\r\n");
  const std::string denied = Say("WEIR.CHECK key a\r\n");
  EXPECT_TRUE(
      denied.starts_with("*16\r\n$7\r\nallowed\r\n:0\r\n$7\r\noutcome\r\n$6\r\ndenied\r\n"
                         "$14\r\nretry_after_ms\r\n:6000\r\n"))
      << denied;
  EXPECT_NE(denied.find("$4\r\nrule\r\n$7\r\nper-key\r\n"), std::string::npos);
  EXPECT_NE(Say("WEIR.USAGE key a\r\n").find("$5\r\nquota\r\n"), std::string::npos);
  EXPECT_NE(Say("WEIR.EXPLAIN key a\r\n").find("per-key"), std::string::npos);
}

TEST_F(Resp, NamesTheRuleThatRefusesWithoutCounting) {
  EXPECT_EQ(Say("WEIR.CHECK internal 1\r\n"),
            "*10\r\n$7\r\nallowed\r\n:0\r\n$7\r\noutcome\r\n$6\r\ndenied\r\n"
            "$14\r\nretry_after_ms\r\n:0\r\n$6\r\nreason\r\n$7\r\nblocked\r\n"
            "$4\r\nrule\r\n$8\r\nno-entry\r\n");
}

TEST_F(Resp, SaysWhatIsWrongWithAQuestion) {
  EXPECT_TRUE(Say("WEIR.CHECK\r\n").starts_with("-ERR wrong number"));
  EXPECT_TRUE(Say("WEIR.CHECK key a b\r\n").starts_with("-ERR attributes come in pairs"));
  EXPECT_TRUE(Say("WEIR.CHECK COST x key a\r\n").starts_with("-ERR COST 'x'"));
  EXPECT_TRUE(Say("WEIR.CHECK COST 3 key a\r\n").starts_with("-ERR "));
  EXPECT_TRUE(Say("FLUSHALL\r\n").starts_with("-ERR unknown command 'FLUSHALL'"));
}

TEST_F(Resp, HoldsAndReleases) {
  const std::string held = Say("WEIR.HOLD TTL 5000 job j1\r\n");
  const size_t at = held.find("$5\r\ntoken\r\n$32\r\n");
  ASSERT_NE(at, std::string::npos) << held;
  const std::string token = held.substr(at + 16, 32);
  EXPECT_TRUE(Say("WEIR.HOLD job j1\r\n").starts_with("*16\r\n$7\r\nallowed\r\n:0\r\n"));
  EXPECT_EQ(Say("WEIR.RENEW " + token + "\r\n"), ":1\r\n");
  EXPECT_EQ(Say("WEIR.RELEASE " + token + "\r\n"), ":1\r\n");
  EXPECT_EQ(Say("WEIR.RELEASE " + token + "\r\n"), ":0\r\n");
  EXPECT_TRUE(Say("WEIR.RELEASE nonsense\r\n").starts_with("-ERR no such token"));
  EXPECT_NE(Say("WEIR.HOLD TTL 5000 job j1\r\n").find("token"), std::string::npos);
  clock_.Advance(seconds(6));
  EXPECT_NE(Say("WEIR.HOLD job j1\r\n").find("token"), std::string::npos) << "the lease has ended";
}

TEST_F(Resp, DelStartsAThrottledKeyAnew) {
  Say("CL.THROTTLE k 0 1 60\r\n");
  EXPECT_TRUE(Say("CL.THROTTLE k 0 1 60\r\n").starts_with("*5\r\n:1\r\n"));
  EXPECT_EQ(Say("DEL k nosuch\r\n"), ":1\r\n");
  EXPECT_EQ(Say("DEL k\r\n"), ":0\r\n");
  EXPECT_TRUE(Say("CL.THROTTLE k 0 1 60\r\n").starts_with("*5\r\n:0\r\n"));
}

TEST_F(Resp, TellsStockClientsWhatTheyAsk) {
  EXPECT_EQ(Say("SELECT 0\r\n"), "+OK\r\n");
  EXPECT_TRUE(Say("SELECT 1\r\n").starts_with("-ERR DB index"));
  EXPECT_EQ(Say("CONFIG GET save\r\n"), "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
  EXPECT_TRUE(Say("COMMAND\r\n").starts_with("*"));
  EXPECT_EQ(Say("COMMAND DOCS\r\n"), "*0\r\n");
  EXPECT_TRUE(Say("COMMAND LIST\r\n").starts_with("*23\r\n$4\r\nauth\r\n"));
  EXPECT_TRUE(Say("COMMAND INFO Ping nosuch\r\n").starts_with("*2\r\n*6\r\n$4\r\nping\r\n:-1\r\n"));
  EXPECT_EQ(Say("CLIENT GETNAME\r\n"), "$-1\r\n");
  EXPECT_NE(Say("INFO\r\n").find("redis_version:"), std::string::npos);
  EXPECT_EQ(Say("CLIENT SETINFO LIB-NAME x\r\n"), "+OK\r\n");
  EXPECT_EQ(Say("ECHO hi\r\n"), "$2\r\nhi\r\n");
  EXPECT_EQ(Say("QUIT\r\n"), "+OK\r\n");
  EXPECT_EQ(last_.next, net::Session::Next::kClose);
}

}  // namespace
}  // namespace weir::server
