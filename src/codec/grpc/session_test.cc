// Calls over HTTP/2 in memory: how they are answered, and how they fail.
#include "codec/grpc/session.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "codec/grpc/health.h"
#include "codec/grpc/reflection.h"
#include "codec/grpc/session_testing.h"

namespace weir::codec::grpc {
namespace {

using std::chrono::seconds;

constexpr std::string_view kReverse = "/test.Words/Reverse";
constexpr std::string_view kLater = "/test.Words/Later";
constexpr std::string_view kCheck = "/grpc.health.v1.Health/Check";
constexpr std::string_view kWatch = "/grpc.health.v1.Health/Watch";

class Reverse final : public Method {
 public:
  Reverse() : Method(std::string(kReverse), Shape::kUnary) {}
  Status OnMessage(Call& call, std::string_view message) override {
    if (message == "fail") {
      return {Code::kUnavailable, "50% of\nit\xc3\xa4"};
    }
    std::copy(message.rbegin(), message.rend(), call.Reply(message.size()));
    return {};
  }
};

// Answers when it is told to, or at once to "now".
class AnswersLater final : public Method {
 public:
  AnswersLater() : Method(std::string(kLater), Shape::kUnary) {}
  Status OnMessage(Call& call, std::string_view message) override {
    asked.push_back(call.AnswerLater());
    if (message == "now") {
      Answer(asked.size() - 1, "at once");
    }
    return {};
  }
  // Whether anybody still wanted it.
  bool Answer(size_t index, std::string_view text, Status status = {}) {
    Call* const call = asked[index].Find();
    if (call == nullptr) {
      return false;
    }
    if (status.ok()) {
      std::copy(text.begin(), text.end(), call->Reply(text.size()));
    }
    call->End(std::move(status));
    return true;
  }

  std::vector<Call::Later> asked;
};

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    shared_.methods.Add(std::make_unique<Reverse>());
    auto later = std::make_unique<AnswersLater>();
    later_ = later.get();
    shared_.methods.Add(std::move(later));
    AddHealth(shared_.methods, [this](std::string_view service) {
      return service.empty() ? health_ : Health::kUnknownService;
    });
    AddReflection(shared_.methods);
  }

  Session& Open() {
    session_ = std::make_unique<Session>(shared_, now_);
    return *session_;
  }
  bool Exchange() { return client_.Exchange(*session_, now_); }
  TestClient::Answer& Ask(std::string_view path, std::string body) {
    if (session_ == nullptr) {
      Open();
    }
    const int32_t stream = client_.Ask(TestClient::Asking(path), std::move(body));
    EXPECT_TRUE(Exchange());
    return client_.answer(stream);
  }
  void Wake(Duration after) {
    now_ += after;
    session_->OnWake(now_);
    client_.Receive(TestClient::Take(*session_));
  }

  Health health_ = Health::kServing;
  Timestamp now_{seconds(1000)};
  SessionShared shared_;
  AnswersLater* later_ = nullptr;
  TestClient client_;
  std::unique_ptr<Session> session_;
};

TEST_F(SessionTest, ACallIsAnsweredWithItsMessageAndStatusZero) {
  const TestClient::Answer& answer = Ask(kReverse, Framed("abc"));
  EXPECT_EQ(answer.fields.at(":status"), "200");
  EXPECT_EQ(answer.fields.at("content-type"), "application/grpc");
  EXPECT_EQ(answer.fields.at("grpc-status"), "0");
  EXPECT_EQ(answer.body, Framed("cba"));
  EXPECT_TRUE(answer.closed);
  EXPECT_EQ(session_->answers(), 1U);
  EXPECT_EQ(session_->errors(), 0U);
}

TEST_F(SessionTest, AMethodMayAnswerLaterAndInAnyOrder) {
  int told = 0;
  Open().OnLater([&told] { ++told; });
  TestClient::Answer& first = Ask(kLater, Framed("a"));
  TestClient::Answer& second = Ask(kLater, Framed("b"));
  EXPECT_FALSE(first.closed);
  EXPECT_EQ(session_->answers(), 0U);
  EXPECT_TRUE(later_->Answer(1, "two"));
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(Exchange());
  EXPECT_EQ(second.body, Framed("two"));
  EXPECT_EQ(second.fields["grpc-status"], "0");
  EXPECT_TRUE(second.closed);
  EXPECT_FALSE(first.closed);
  EXPECT_TRUE(later_->Answer(0, "", {Code::kUnavailable, "away"}));
  EXPECT_TRUE(Exchange());
  EXPECT_EQ(first.fields["grpc-status"], "14");
  EXPECT_EQ(session_->answers(), 0U) << "who answered later counts them";
  EXPECT_FALSE(later_->Answer(0, "again")) << "once";
}

TEST_F(SessionTest, LaterMayBeAtOnce) {
  TestClient::Answer& answer = Ask(kLater, Framed("now"));
  EXPECT_EQ(answer.body, Framed("at once"));
  EXPECT_EQ(answer.fields["grpc-status"], "0");
  EXPECT_EQ(Ask(kReverse, Framed("abc")).body, Framed("cba")) << "no bytes are counted twice";
}

TEST_F(SessionTest, WhoWantsAnAnswerLaterMayHaveGone) {
  Open();
  auto fields = TestClient::Asking(kLater);
  fields.emplace_back("grpc-timeout", "50m");
  const int32_t stream = client_.Ask(fields, Framed("a"));
  EXPECT_TRUE(Exchange());
  Wake(seconds(1));
  EXPECT_EQ(client_.answer(stream).fields["grpc-status"], "4");
  EXPECT_FALSE(later_->Answer(0, "too late"));
  (void)Ask(kLater, Framed("b"));
  session_ = nullptr;
  EXPECT_FALSE(later_->Answer(1, "to nobody"));
}

TEST_F(SessionTest, ReadsTheSameWhereverItsBytesAreCut) {
  Open();
  const int32_t stream = client_.Ask(TestClient::Asking(kReverse), Framed(std::string(300, 'x')));
  const std::string bytes = client_.TakeBytes();
  for (const char byte : bytes) {
    ASSERT_TRUE(session_->Receive({&byte, 1}, now_));
  }
  client_.Receive(TestClient::Take(*session_));
  EXPECT_EQ(client_.answer(stream).body, Framed(std::string(300, 'x')));
}

TEST_F(SessionTest, APrefixMayBeSplitOverFrames) {
  Open();
  const int32_t stream = client_.Ask(TestClient::Asking(kReverse), std::string("\0\0", 2), false);
  ASSERT_TRUE(Exchange());
  client_.SendMore(stream, std::string("\0\0\2", 3), false);
  ASSERT_TRUE(Exchange());
  client_.SendMore(stream, "a", false);
  ASSERT_TRUE(Exchange());
  client_.SendMore(stream, "b", true);
  ASSERT_TRUE(Exchange());
  EXPECT_EQ(client_.answer(stream).body, Framed("ba"));
}

TEST_F(SessionTest, AnErrorIsHeaderFieldsAlone) {
  const TestClient::Answer& answer = Ask(kReverse, Framed("fail"));
  EXPECT_EQ(answer.fields.at("grpc-status"), "14");
  EXPECT_EQ(answer.fields.at("grpc-message"), "50%25 of%0Ait%C3%A4");
  EXPECT_EQ(answer.body, "");
  EXPECT_EQ(session_->errors(), 1U);
}

TEST_F(SessionTest, WhatCannotBeAnsweredSaysWhy) {
  struct Case {
    const char* name;
    std::string path;
    std::string body;
    const char* status;
  };
  const Case cases[] = {
      {"unknown method", "/test.Words/Forward", Framed("a"), "12"},
      {"compressed", std::string(kReverse), Framed("a", true), "12"},
      {"too large", std::string(kReverse), std::string("\0\x7f\0\0\0", 5), "8"},
      {"no message", std::string(kReverse), "", "12"},
      {"two messages", std::string(kReverse), Framed("a") + Framed("b"), "12"},
      {"half a message", std::string(kReverse), std::string("\0\0\0\0\5ab", 7), "13"},
      {"not a message of the type", std::string(kCheck), Framed("\xff\xff"), "13"},
  };
  for (const Case& one : cases) {
    const TestClient::Answer& answer = Ask(one.path, one.body);
    EXPECT_EQ(answer.fields.at("grpc-status"), one.status) << one.name;
    EXPECT_NE(answer.fields.at("grpc-message"), "") << one.name;
    EXPECT_TRUE(answer.closed) << one.name;
  }
  EXPECT_EQ(client_.answer(3).fields.at("grpc-accept-encoding"), "identity");
}

TEST_F(SessionTest, OtherThanGrpcIsRefusedInTermsOfHttp) {
  Open();
  const struct {
    std::string name;
    std::string value;
    std::string status;
  } cases[] = {{"content-type", "application/json", "415"},
               {"content-type", "application/grpc-web", "415"},
               {":method", "GET", "405"},
               {"te", std::string(17'000, 'x'), "431"}};
  for (const auto& one : cases) {
    TestClient::Fields fields = TestClient::Asking(kReverse);
    for (auto& [name, value] : fields) {
      value = name == one.name ? one.value : value;
      name = one.status == "431" && name == "te" ? "x" : name;
    }
    const int32_t stream = client_.Ask(fields, Framed("a"));
    ASSERT_TRUE(Exchange());
    EXPECT_EQ(client_.answer(stream).fields[":status"], one.status);
    EXPECT_NE(client_.answer(stream).fields["grpc-message"], "");
  }
}

TEST_F(SessionTest, ATimeoutThatIsOverBeforeTheRequestIsEndsTheCall) {
  Open();
  TestClient::Fields fields = TestClient::Asking(kReverse);
  fields.emplace_back("grpc-timeout", "20m");
  const int32_t slow = client_.Ask(fields, "", false);
  const int32_t quick = client_.Ask(fields, Framed("ab"));
  ASSERT_TRUE(Exchange());
  EXPECT_EQ(client_.answer(quick).fields.at("grpc-status"), "0");
  now_ += std::chrono::milliseconds(20);
  client_.SendMore(slow, Framed("ab"), true);
  ASSERT_TRUE(Exchange());
  EXPECT_EQ(client_.answer(slow).fields.at("grpc-status"), "4");
  fields.back().second = "20x";
  const int32_t bad = client_.Ask(fields, Framed("ab"));
  ASSERT_TRUE(Exchange());
  EXPECT_EQ(client_.answer(bad).fields.at("grpc-status"), "13");
}

TEST_F(SessionTest, ARequestThatDoesNotComeIsGivenUp) {
  Open();
  const int32_t stream = client_.Ask(TestClient::Asking(kReverse), "", false);
  ASSERT_TRUE(Exchange());
  Wake(seconds(9));
  EXPECT_FALSE(client_.answer(stream).closed);
  Wake(seconds(1));
  EXPECT_EQ(client_.answer(stream).fields.at("grpc-status"), "4");
  EXPECT_TRUE(client_.answer(stream).closed);
}

TEST_F(SessionTest, UnfinishedRequestsHoldBoundedMemory) {
  shared_.limits.held_bytes_max = 1000;
  Open();
  std::vector<int32_t> streams;
  for (int i = 0; i < 12; ++i) {
    std::string part = Framed(std::string(200, 'x'));
    part.resize(100);
    streams.push_back(client_.Ask(TestClient::Asking(kReverse), part, false));
  }
  ASSERT_TRUE(Exchange());
  int refused = 0;
  for (const int32_t stream : streams) {
    refused += client_.answer(stream).fields["grpc-status"] == "8" ? 1 : 0;
  }
  EXPECT_EQ(refused, 2);
  for (const int32_t stream : streams) {
    client_.Reset(stream);
  }
  ASSERT_TRUE(Exchange());
  EXPECT_EQ(Ask(kReverse, Framed("ab")).body, Framed("ba"));
}

TEST_F(SessionTest, HealthIsCheckedAndWatched) {
  Open();
  EXPECT_EQ(Ask(kCheck, Framed("")).body, Framed("\x08\x01"));
  EXPECT_EQ(Ask(kCheck, Framed("\x0a\x01x")).fields.at("grpc-status"), "5");
  const int32_t watch = client_.Call(kWatch, "");
  const int32_t unknown = client_.Call(kWatch, "\x0a\x01x");
  ASSERT_TRUE(Exchange());
  EXPECT_EQ(client_.answer(watch).body, Framed("\x08\x01"));
  EXPECT_EQ(client_.answer(unknown).body, Framed("\x08\x03"));
  Wake(seconds(1));
  EXPECT_EQ(client_.answer(watch).body, Framed("\x08\x01"));  // no news
  health_ = Health::kNotServing;
  Wake(seconds(1));
  EXPECT_EQ(client_.answer(watch).body, Framed("\x08\x01") + Framed("\x08\x02"));
  EXPECT_FALSE(client_.answer(watch).closed);
}

TEST_F(SessionTest, ReflectionTellsOfEveryService) {
  Open();
  for (const std::string version : {"v1", "v1alpha"}) {
    const std::string path =
        "/grpc.reflection." + version + ".ServerReflection/ServerReflectionInfo";
    const int32_t stream = client_.Ask(TestClient::Asking(path), Framed("\x3a\x01*"), false);
    ASSERT_TRUE(Exchange());
    EXPECT_NE(client_.answer(stream).body.find("grpc.health.v1.Health"), std::string::npos);
    client_.answer(stream).body.clear();
    client_.SendMore(stream, Framed("\x22\x15grpc.health.v1.Health") + Framed("\x22\x01?"), true);
    ASSERT_TRUE(Exchange());
    EXPECT_NE(client_.answer(stream).body.find("HealthCheckRequest"), std::string::npos);
    EXPECT_NE(client_.answer(stream).body.find("not found: ?"), std::string::npos);
    EXPECT_EQ(client_.answer(stream).fields.at("grpc-status"), "0");
  }
}

TEST_F(SessionTest, AnswersOfOneReadLeaveTogether) {
  Open();
  ASSERT_TRUE(Exchange());
  for (int i = 0; i < 50; ++i) {
    client_.Call(kReverse, "ab");
  }
  ASSERT_TRUE(session_->Receive(client_.TakeBytes(), now_));
  base::ByteBuffer output;
  EXPECT_FALSE(session_->Send(output));
  client_.Receive(output.view());
  for (int32_t stream = 1; stream < 100; stream += 2) {
    EXPECT_EQ(client_.answer(stream).body, Framed("ba"));
  }
}

}  // namespace
}  // namespace weir::codec::grpc
