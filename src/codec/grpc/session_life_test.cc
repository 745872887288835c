// How connections end: of age, at a drain, in silence, and by what a peer does too often.
#include <chrono>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "codec/grpc/health.h"
#include "codec/grpc/session_testing.h"

namespace weir::codec::grpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kCheck = "/grpc.health.v1.Health/Check";
constexpr std::string_view kWatch = "/grpc.health.v1.Health/Watch";
constexpr int32_t kAnyStream = 0x7fffffff;

class SessionLifeTest : public testing::Test {
 protected:
  SessionLifeTest() {
    AddHealth(shared_.methods, [](std::string_view) { return Health::kServing; });
    shared_.limits.age_grace = seconds(30);
  }

  void Open() {
    session_ = std::make_unique<Session>(shared_, now_);
    ASSERT_TRUE(client_.Exchange(*session_, now_));
  }
  bool Wake(Duration after) {
    now_ += after;
    const bool going_on = session_->OnWake(now_);
    client_.Receive(TestClient::Take(*session_));
    return going_on;
  }
  // A frame by hand.
  static std::string Frame(uint8_t type, uint8_t flags, int32_t stream, std::string_view payload) {
    const auto size = static_cast<uint32_t>(payload.size());
    const auto id = static_cast<uint32_t>(stream);
    std::string frame = {
        static_cast<char>(size >> 16), static_cast<char>(size >> 8), static_cast<char>(size),
        static_cast<char>(type),       static_cast<char>(flags),     static_cast<char>(id >> 24),
        static_cast<char>(id >> 16),   static_cast<char>(id >> 8),   static_cast<char>(id)};
    return frame.append(payload);
  }

  Timestamp now_{seconds(1000)};
  SessionShared shared_;
  TestClient client_;
  std::unique_ptr<Session> session_;
};

TEST_F(SessionLifeTest, ADrainTellsTwiceAndAnswersWhatIsUnderWay) {
  Open();
  const int32_t open = client_.Ask(TestClient::Asking(kCheck), "", false);
  ASSERT_TRUE(client_.Exchange(*session_, now_));
  EXPECT_TRUE(session_->Drain(now_));
  client_.Receive(TestClient::Take(*session_));
  ASSERT_EQ(client_.goaways().size(), 1U);
  EXPECT_EQ(client_.goaways()[0].first, kAnyStream);
  // On its way before the client has read the first word.
  EXPECT_EQ(client_.pings(), 1);
  ASSERT_TRUE(client_.Exchange(*session_, now_));
  ASSERT_EQ(client_.goaways().size(), 2U);
  EXPECT_EQ(client_.goaways()[1].first, open);
  EXPECT_EQ(client_.goaways()[1].second, uint32_t{NGHTTP2_NO_ERROR});
  client_.SendMore(open, Framed(""), true);
  EXPECT_FALSE(client_.Exchange(*session_, now_));  // the last is answered: it ends
  EXPECT_EQ(client_.answer(open).fields.at("grpc-status"), "0");
  EXPECT_EQ(session_->fault(), "");
}

TEST_F(SessionLifeTest, AResetOfAStreamThatWasNotBegunHarmsNobody) {
  Open();
  const std::string reset = Frame(NGHTTP2_RST_STREAM, 0, 99, std::string(4, '\0'));
  const int32_t asked = client_.Ask(TestClient::Asking(kCheck), Framed(""), true);
  ASSERT_TRUE(session_->Receive(reset, now_));
  ASSERT_TRUE(client_.Exchange(*session_, now_));
  EXPECT_EQ(client_.answer(asked).fields.at("grpc-status"), "0");
  // Nor is it for nothing: a flood of them ends the connection.
  uint32_t taken = 0;
  while (taken < 2 * shared_.limits.flood.idle_frames_max && session_->Receive(reset, now_)) {
    ++taken;
  }
  EXPECT_GE(taken, shared_.limits.flood.idle_frames_max);
  EXPECT_LT(taken, 2 * shared_.limits.flood.idle_frames_max);
  EXPECT_NE(session_->fault(), "");
}

TEST_F(SessionLifeTest, AClientThatIsSilentIsToldTheLastCallAfterASecond) {
  Open();
  session_->Drain(now_);
  TestClient::Take(*session_);
  now_ += milliseconds(500);
  EXPECT_TRUE(session_->OnWake(now_));
  EXPECT_EQ(TestClient::Take(*session_), "");
  now_ += milliseconds(500);
  EXPECT_TRUE(session_->OnWake(now_));
  EXPECT_EQ(TestClient::Take(*session_), Frame(NGHTTP2_GOAWAY, 0, 0, std::string(8, '\0')));
  EXPECT_FALSE(session_->Receive({}, now_));
}

TEST_F(SessionLifeTest, OldConnectionsAreAskedToComeAnewAndCutOffAfterTheGrace) {
  shared_.limits.age_max = seconds(100);
  shared_.limits.keepalive = Duration::zero();
  Open();
  EXPECT_EQ(session_->NextWake(now_), now_ + seconds(100));
  client_.Call(kWatch, "");
  ASSERT_TRUE(client_.Exchange(*session_, now_));
  EXPECT_TRUE(Wake(seconds(99)));
  EXPECT_EQ(client_.goaways().size(), 0U);
  EXPECT_TRUE(Wake(seconds(1)));
  EXPECT_EQ(client_.goaways().size(), 1U);
  EXPECT_TRUE(Wake(seconds(1)));
  EXPECT_EQ(client_.goaways().size(), 2U);
  EXPECT_TRUE(Wake(seconds(28)));
  EXPECT_FALSE(Wake(seconds(1)));
}

TEST_F(SessionLifeTest, IdleConnectionsEnd) {
  Open();
  client_.Call(kCheck, "");
  ASSERT_TRUE(client_.Exchange(*session_, now_));
  EXPECT_TRUE(Wake(seconds(299)));
  EXPECT_EQ(client_.goaways().size(), 0U);
  EXPECT_TRUE(Wake(seconds(1)));
  EXPECT_EQ(client_.goaways().size(), 1U);
}

TEST_F(SessionLifeTest, ASilentPeerIsAskedWhetherItIsThere) {
  Open();
  client_.Call(kWatch, "");
  ASSERT_TRUE(client_.Exchange(*session_, now_));
  EXPECT_TRUE(Wake(seconds(59)));
  EXPECT_EQ(client_.pings(), 0);
  EXPECT_TRUE(Wake(seconds(1)));
  EXPECT_EQ(client_.pings(), 1);
  ASSERT_TRUE(client_.Exchange(*session_, now_));  // it answers
  EXPECT_TRUE(Wake(seconds(59)));
  EXPECT_TRUE(Wake(seconds(1)));
  EXPECT_EQ(client_.pings(), 2);
  EXPECT_TRUE(Wake(seconds(19)));
  EXPECT_FALSE(Wake(seconds(1)));  // it does not
  EXPECT_NE(session_->fault(), "");
}

TEST_F(SessionLifeTest, FloodsOfFramesEndTheConnection) {
  for (const std::string& frame :
       {Frame(NGHTTP2_PING, 0, 0, "12345678"), Frame(NGHTTP2_SETTINGS, 0, 0, ""),
        Frame(NGHTTP2_PRIORITY, 0, 1, std::string_view("\0\0\0\0\1", 5)),
        Frame(NGHTTP2_WINDOW_UPDATE, 0, 0, std::string_view("\0\0\0\1", 4)), Frame(0x42, 0, 0, ""),
        Frame(0xff, 0, 1, "a type that nobody knows"), Frame(NGHTTP2_ALTSVC, 0, 0, ""),
        Frame(NGHTTP2_PRIORITY_UPDATE, 0, 0, "")}) {
    TestClient client;
    Session session(shared_, now_);
    ASSERT_TRUE(client.Exchange(session, now_));
    int taken = 0;
    while (taken < 5000 && session.Receive(frame, now_)) {
      client.Receive(TestClient::Take(session));
      ++taken;
    }
    EXPECT_GT(taken, 900);
    EXPECT_LT(taken, 1100);
    EXPECT_NE(session.fault(), "");
    // Answers to its own floods have made the client give up: the last word as it is.
    const std::string last = TestClient::Take(session);
    ASSERT_EQ(last.size(), 17U);
    EXPECT_EQ(last[3], NGHTTP2_GOAWAY);
    EXPECT_EQ(last[16], NGHTTP2_ENHANCE_YOUR_CALM);
  }
}

TEST_F(SessionLifeTest, ASecondLaterTheSameIsFine) {
  Open();
  const std::string ping = Frame(NGHTTP2_PING, 0, 0, "12345678");
  for (int second = 0; second < 5; ++second) {
    for (int i = 0; i < 900; ++i) {
      ASSERT_TRUE(session_->Receive(ping, now_));
      TestClient::Take(*session_);
    }
    now_ += seconds(1);
  }
}

TEST_F(SessionLifeTest, CallsThatAreResetBeforeTheirAnswerEndTheConnection) {
  Open();
  int calls = 0;
  bool going_on = true;
  while (going_on && calls < 2000) {
    const int32_t stream = client_.Ask(TestClient::Asking(kCheck), "", false);
    std::string bytes = client_.TakeBytes();
    client_.Reset(stream);
    bytes += client_.TakeBytes();
    going_on = session_->Receive(bytes, now_);
    TestClient::Take(*session_);
    ++calls;
  }
  EXPECT_FALSE(going_on);
  EXPECT_EQ(calls, 501);
}

// Envoy resets what was not answered within 20 ms. A server that stalls for a moment must not lose
// it: here every third call of 3000 within a second.
TEST_F(SessionLifeTest, AnEnvoyWithTimeoutsIsNotCutOff) {
  Open();
  for (int i = 0; i < 3000; ++i) {
    const bool slow = i % 3 == 0;
    const int32_t stream = client_.Ask(TestClient::Asking(kCheck), slow ? "" : Framed(""), !slow);
    std::string bytes = client_.TakeBytes();
    if (slow) {
      client_.Reset(stream);
      bytes += client_.TakeBytes();
    }
    ASSERT_TRUE(session_->Receive(bytes, now_)) << i;
    client_.Receive(TestClient::Take(*session_));
    if (!slow) {
      ASSERT_EQ(client_.answer(stream).fields.at("grpc-status"), "0");
    }
  }
  // And 500 a second that are all reset.
  for (int second = 0; second < 3; ++second) {
    now_ += seconds(1);
    for (int i = 0; i < 500; ++i) {
      const int32_t stream = client_.Ask(TestClient::Asking(kCheck), "", false);
      std::string bytes = client_.TakeBytes();
      client_.Reset(stream);
      ASSERT_TRUE(session_->Receive(bytes + client_.TakeBytes(), now_)) << i;
      client_.Receive(TestClient::Take(*session_));
    }
  }
}

TEST_F(SessionLifeTest, ContinuationsAreBounded) {
  Open();
  std::string bytes = Frame(NGHTTP2_HEADERS, 0, 1, std::string("\x82", 1));
  for (int i = 0; i < 12; ++i) {
    bytes += Frame(NGHTTP2_CONTINUATION, 0, 1, "");
  }
  EXPECT_FALSE(session_->Receive(bytes, now_));
}

TEST_F(SessionLifeTest, OversizedHeaderFieldsAgainAndAgainEndTheConnection) {
  Open();
  TestClient::Fields fields = TestClient::Asking(kCheck);
  fields.emplace_back("x", std::string(17'000, 'x'));
  int calls = 0;
  do {
    client_.Ask(fields, "");
    ++calls;
  } while (client_.Exchange(*session_, now_) && calls < 100);
  EXPECT_EQ(calls, 17);
}

TEST_F(SessionLifeTest, WhatIsNotHttp2IsLeftAtOnce) {
  session_ = std::make_unique<Session>(shared_, now_);
  EXPECT_FALSE(session_->Receive("GET / HTTP/1.1\r\n\r\n", now_));
  EXPECT_EQ(session_->fault(), "not HTTP/2");
}

}  // namespace
}  // namespace weir::codec::grpc
