// Status and body of answers.
#include "codec/http/answer.h"

#include <gtest/gtest.h>

#include "codec/http/answer_testing.h"

namespace weir::codec::http {
namespace {

using namespace std::chrono_literals;

Decision Allowed() {
  return MakeDecision(Outcome::kAllowed, 5, 4, 0ns, 12'000'000'001ns);
}
Decision Denied() {
  return MakeDecision(Outcome::kDenied, 5, 0, 36'100ms, 59s);
}

AnswerScene Login() {
  return AnswerScene({MakeRule("login", {"5/min"})});
}

TEST(Answer, TellsAnAllowedCheck) {
  AnswerScene scene = Login();
  scene.Meet(0, 0, Allowed());
  const ReadAnswer answer = Read(scene.Write());
  EXPECT_EQ(answer.status, "200 OK");
  EXPECT_EQ(answer.Field("Content-Type"), "application/json");
  EXPECT_EQ(answer.body,
            R"({"allowed":true,"rule":"login","limit":5,"remaining":4,"retry_after":0,)"
            R"("reset_after":12.001,"basis":"store"})");
}

TEST(Answer, TellsARefusedCheckInTheSeedsWords) {
  AnswerScene scene = Login();
  scene.Meet(0, 0, Denied());
  const ReadAnswer answer = Read(scene.Write());
  EXPECT_EQ(answer.status, "429 Too Many Requests");
  EXPECT_EQ(answer.body,
            R"({"allowed":false,"error":"rate_limit_exceeded",)"
            R"("message":"Rate limit exceeded. Try again in 37 seconds.","retry_after":37,)"
            R"("rule":"login","limit":5,"remaining":0,"reset_after":59,"basis":"store"})");
  const ReadAnswer proxy = Read(scene.Write({.mode = AnswerMode::kAuth429}));
  EXPECT_EQ(proxy.body,
            R"({"error":"rate_limit_exceeded",)"
            R"("message":"Rate limit exceeded. Try again in 37 seconds.","retry_after":37})");
}

TEST(Answer, TellsARefusalAsAProblem) {
  AnswerScene scene({MakeRule("polite", {"10/min", "500/h"}), MakeRule("a \"b\"", {"1/s"})});
  scene.Meet(0, 0, Denied());
  scene.Meet(0, 1, Allowed());
  scene.Meet(1, 0, Denied());
  const ReadAnswer answer = Read(scene.Write({.error_body = ErrorBody::kProblem}));
  EXPECT_EQ(answer.Field("Content-Type"), "application/problem+json");
  const Json body(answer.body);
  EXPECT_EQ(body.Text("type"), "https://iana.org/assignments/http-problem-types#quota-exceeded");
  EXPECT_EQ(body.Text("title"), "Too Many Requests");
  EXPECT_EQ(body.Number("status"), 429);
  EXPECT_EQ(body.Text("detail"), "Rate limit exceeded. Try again in 37 seconds.");
  EXPECT_EQ(simdjson::minify(body["violated-policies"]), R"(["polite 10/min","a \"b\""])");
}

TEST(Answer, HasTheStatusThatTheAskerUnderstands) {
  const auto status = [](const Decision& decision, AnswerMode mode, RuleRefusal why) {
    AnswerScene scene = Login();
    scene.Meet(0, 0, decision);
    scene.ruling().why = why;
    return Read(scene.Write({.mode = mode})).status;
  };
  using enum AnswerMode;
  using enum RuleRefusal;
  EXPECT_EQ(status(Allowed(), kCheck, kNone), "200 OK");
  EXPECT_EQ(status(Allowed(), kAuth403, kNone), "204 No Content");
  EXPECT_EQ(status(Allowed(), kAuth429, kNone), "204 No Content");
  EXPECT_EQ(status(Denied(), kAuth403, kNone), "403 Forbidden");
  EXPECT_EQ(status(Denied(), kAuth429, kNone), "429 Too Many Requests");
  EXPECT_EQ(status(Denied(), kCheck, kBlocked), "403 Forbidden");
  EXPECT_EQ(status(Denied(), kAuth429, kMissing), "403 Forbidden");
  EXPECT_EQ(status(Denied(), kCheck, kAttributeTooLong), "400 Bad Request");
  Decision refused;
  refused.outcome = Outcome::kRefused;
  refused.problem = Problem::kCostAboveBurst;
  EXPECT_EQ(status(refused, kCheck, kNone), "400 Bad Request");
  EXPECT_EQ(status(refused, kAuth403, kNone), "403 Forbidden");
}

TEST(Answer, NamesTheRuleThatRefusesWithoutCounting) {
  const std::vector<RuleView> rules = {MakeRule("open", {"1/s"}), MakeRule("closed", {"1/s"})};
  Ruling ruling;
  ruling.outcome = Outcome::kDenied;
  ruling.why = RuleRefusal::kBlocked;
  ruling.refusing = &rules[1];
  base::ByteBuffer out;
  AnswerWriter({}, rules).WriteCheck(out, ruling, {});
  const ReadAnswer answer = Read(out.view());
  EXPECT_EQ(answer.Field("X-Weir-Rule"), "closed");
  EXPECT_EQ(answer.Field("X-Weir-Basis"), "");
  EXPECT_TRUE(answer.body.ends_with(R"(blocks.","rule":"closed"})")) << answer.body;
}

TEST(Answer, AStoreOutOfReachIsATemporarilyReducedCapacity) {
  AnswerScene scene = Login();
  scene.Meet(0, 0, Denied()).decision.basis = Basis::kClosed;
  scene.ruling().trouble = StoreTrouble::kTimeout;
  const ReadAnswer answer = Read(scene.Write({.error_body = ErrorBody::kProblem}));
  EXPECT_EQ(answer.status, "503 Service Unavailable");
  EXPECT_EQ(Json(answer.body).Text("type"),
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity");
}

TEST(Answer, SaysWhyWhereNoQuotaDid) {
  Ruling ruling;
  ruling.outcome = Outcome::kRefused;
  ruling.why = RuleRefusal::kBlocked;
  base::ByteBuffer out;
  AnswerWriter({}, {}).WriteCheck(out, ruling, {});
  const ReadAnswer answer = Read(out.view());
  EXPECT_EQ(answer.body, R"({"allowed":false,"error":"blocked","message":)"
                         R"("The request is on a block list or met a rule that blocks."})");
  EXPECT_EQ(answer.Field("Retry-After"), "");
  EXPECT_EQ(answer.Field("X-Weir-Status"), "blocked");
}

TEST(Answer, SaysNothingOfWhatNobodyCounted) {
  AnswerScene nobody({});
  const ReadAnswer none = Read(nobody.Write());
  EXPECT_EQ(none.body, R"({"allowed":true})");
  EXPECT_EQ(none.fields.count("RateLimit") + none.fields.count("X-RateLimit-Limit"), 0U);

  AnswerScene scene = Login();
  Decision open = Allowed();
  open.basis = Basis::kOpen;
  scene.Meet(0, 0, open);
  const ReadAnswer answer = Read(scene.Write());
  EXPECT_EQ(answer.body, R"({"allowed":true,"rule":"login","basis":"open"})");
  EXPECT_EQ(answer.Field("X-Weir-Basis"), "open");
  EXPECT_EQ(answer.fields.count("RateLimit") + answer.fields.count("RateLimit-Policy") +
                answer.fields.count("X-RateLimit-Limit"),
            0U);
}

TEST(Answer, KeepsHiddenRulesToItself) {
  RuleView secret = MakeRule("secret", {"5/min"});
  secret.headers = HeaderVisibility::kHidden;
  AnswerScene scene({secret, MakeRule("plan", {"100/h"})});
  scene.Meet(0, 0, Denied());
  scene.Meet(1, 0, Allowed());
  for (const ErrorBody body : {ErrorBody::kJson, ErrorBody::kProblem}) {
    const std::string bytes = scene.Write({.error_body = body});
    EXPECT_EQ(bytes.find("secret"), std::string::npos) << bytes;
    EXPECT_EQ(bytes.find("X-RateLimit"), std::string::npos) << bytes;
    EXPECT_EQ(Read(bytes).Field("Retry-After"), "37");
    EXPECT_EQ(Read(bytes).Field("RateLimit"), "\"plan\";r=4");
  }
}

TEST(Answer, TellsWhenAQueueLetsStart) {
  AnswerScene scene = Login();
  scene.Meet(0, 0, Allowed());
  scene.ruling().start_after = 250ms;
  EXPECT_EQ(double(Json(Read(scene.Write()).body)["start_after"]), 0.25);
}

TEST(Answer, TellsTheNumberOfAReservation) {
  AnswerScene scene = Login();
  scene.Meet(0, 0, Allowed());
  scene.ruling().reservation = "00ff";
  EXPECT_EQ(Json(Read(scene.Write()).body).Text("reservation"), "00ff");
}

TEST(Answer, EscapesNamesForEachPlace) {
  AnswerScene scene({MakeRule("a\"b\\c\r\nX: y \xC3\xA4\xFF", {"5/min"})});
  scene.Meet(0, 0, Denied());
  const ReadAnswer answer = Read(scene.Write());
  EXPECT_EQ(answer.Field("X-Weir-Rule"), "a\"b\\c%0D%0AX: y %C3%A4%FF");
  EXPECT_EQ(answer.Field("RateLimit"), R"("a\"b\\c%0D%0AX: y %C3%A4%FF";r=0;t=37)");
  EXPECT_EQ(Json(answer.body).Text("rule"), "a\"b\\c\r\nX: y \xC3\xA4\xEF\xBF\xBD");
  const ReadAnswer problem = Read(scene.Write({.error_body = ErrorBody::kProblem}));
  EXPECT_EQ(std::string_view(Json(problem.body).List("violated-policies").at(0)),
            "a\"b\\c%0D%0AX: y %C3%A4%FF");
}

TEST(Answer, WritesABatchAsOneAnswer) {
  const std::vector<RuleView> rules = {MakeRule("login", {"5/min"})};
  AnswerWriter writer({}, rules);
  RulePart part;
  part.rule = rules.data();
  part.quota = rules[0].variants[0].quotas.data();
  part.decision = Denied();
  Ruling ruling;
  ruling.outcome = Outcome::kDenied;
  ruling.retry_after = part.decision.retry_after;
  ruling.parts = {&part, 1};
  ruling.deciding = &part;
  base::ByteBuffer out;
  AnswerWriter::Batch batch(writer, out, {});
  batch.Add(ruling);
  batch.Add(Ruling());
  batch.End();
  const ReadAnswer answer = Read(out.view());
  EXPECT_EQ(answer.status, "200 OK");
  const Json body(answer.body);
  const simdjson::dom::array checks = body.List("checks");
  ASSERT_EQ(checks.size(), 2U);
  EXPECT_FALSE(bool(checks.at(0)["allowed"]));
  EXPECT_EQ(int64_t(checks.at(0)["retry_after"]), 37);
  EXPECT_EQ(simdjson::minify(checks.at(1)), R"({"allowed":true})");
}

TEST(Answer, IsSmall) {
  AnswerScene scene = Login();
  scene.Meet(0, 0, Denied());
  constexpr std::string_view kDate = "Sun, 06 Nov 1994 08:49:37 GMT";
  for (const AnswerMode mode : {AnswerMode::kCheck, AnswerMode::kAuth403, AnswerMode::kAuth429}) {
    for (const ErrorBody body : {ErrorBody::kJson, ErrorBody::kProblem}) {
      const std::string all =
          scene.Write({.date = kDate, .mode = mode, .error_body = body},
                      {.families = kXRateLimit | kRateLimit | kRateLimit3 | kWeir | kRetryAfter});
      EXPECT_LE(all.size(), 640U) << all;
    }
  }
  const std::string bare =
      scene.Write({.date = kDate, .mode = AnswerMode::kAuth429}, {.families = 0});
  EXPECT_LE(bare.size(), 240U) << bare;
}

TEST(Answer, AnswersHeadWithoutItsBody) {
  AnswerScene scene = Login();
  scene.Meet(0, 0, Denied());
  const std::string whole = scene.Write();
  const std::string head = scene.Write({.head = true});
  EXPECT_EQ(head, whole.substr(0, whole.find("\r\n\r\n") + 4));
}

TEST(Answer, IgnoresShadowParts) {
  AnswerScene scene({MakeRule("real", {"5/min"}), MakeRule("tried", {"1/min"})});
  scene.Meet(0, 0, Allowed());
  scene.Meet(1, 0, Denied()).shadow = true;
  const std::string bytes = scene.Write();
  EXPECT_EQ(Read(bytes).status, "200 OK");
  EXPECT_EQ(bytes.find("tried"), std::string::npos);
}

}  // namespace
}  // namespace weir::codec::http
