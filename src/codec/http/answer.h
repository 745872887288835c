// Answers of the HTTP front: a decision as status line, headers and body, in one write.
//
//   AnswerWriter writer(options, rules->rules());          // once per rule set
//   writer.WriteCheck(out, Ruling(reply), context);       // per request
//
// What nobody counted is left out, never invented; rules with hidden headers are not told of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/decision.h"
#include "weir/rule_set.h"
#include "weir/rules.h"
#include "weir/time.h"

#include "base/byte_buffer.h"
#include "codec/http/answer_form.h"
#include "codec/http/request.h"

namespace weir::codec::http {

// Which headers tell of limits; add them up.
enum HeaderFamily : uint8_t {
  kXRateLimit = 1,       // X-RateLimit-Limit, -Remaining, -Reset
  kRateLimit = 2,        // RateLimit, RateLimit-Policy: IETF draft 10
  kRateLimit7 = 4,       // RateLimit: limit=…, remaining=…, reset=…: draft 7; not with kRateLimit
  kRateLimit3 = 8,       // RateLimit-Limit, -Remaining, -Reset: drafts 3 to 6
  kXRateLimitList = 16,  // X-RateLimit-* with the policies listed in -Limit; not with kXRateLimit
  kWeir = 32,            // X-Weir-Rule, X-Weir-Basis, X-Weir-Status
  kRetryAfter = 64,
};

enum class ResetStyle : uint8_t { kUnixSeconds, kDelta };

struct AnswerOptions {
  uint8_t families = kXRateLimit | kRateLimit | kWeir | kRetryAfter;
  ResetStyle reset = ResetStyle::kUnixSeconds;  // of X-RateLimit-Reset
};

// Who asks decides which status says "refused".
enum class AnswerMode : uint8_t {
  kCheck,    // POST /v1/check: 200 or 429, always with a JSON body
  kAuth403,  // nginx auth_request, which knows no 429: 204 or 403
  kAuth429,  // Traefik, Caddy, HAProxy: 204 or 429
};

enum class ErrorBody : uint8_t { kJson, kProblem };

// What a client that sends this Accept gets as the body of a refusal.
[[nodiscard]] ErrorBody ChooseErrorBody(std::string_view accept) noexcept;
[[nodiscard]] ErrorBody ChooseErrorBody(const Request& request) noexcept;

struct AnswerContext {
  std::string_view date{};  // of the Date header, e.g. from FormatDate; empty: none is sent
  WallTime now{};           // for reset as Unix seconds
  Duration jitter{};        // added to Retry-After; not negative
  AnswerMode mode = AnswerMode::kCheck;
  ErrorBody error_body = ErrorBody::kJson;
  bool keep_alive = true;
  bool old_client = false;  // HTTP/1.0: has to be told if the connection stays
  bool head = false;        // HEAD: the body is left out, its length told
};

// What there is to say: a RuleReply, or the same made by hand.
struct Ruling {
  Outcome outcome = Outcome::kAllowed;
  Problem problem = Problem::kNone;
  RuleRefusal why = RuleRefusal::kNone;
  StoreTrouble trouble = StoreTrouble::kNone;  // refused since the store could not be asked
  Duration retry_after{};
  Duration start_after{};  // allowed: wait so long first
  std::span<const RulePart> parts{};
  const RulePart* deciding = nullptr;
  const RuleView* refusing = nullptr;  // the rule that refused without counting
  std::string_view reservation{};      // of /v1/reserve: its number, in letters and digits

  Ruling() = default;
  explicit Ruling(const RuleReply& reply) noexcept
      : outcome(reply.outcome),
        problem(reply.problem),
        why(reply.why),
        trouble(reply.trouble),
        retry_after(reply.retry_after),
        start_after(reply.start_after),
        parts(reply.parts()),
        deciding(reply.deciding()),
        refusing(reply.refusing) {}

  [[nodiscard]] bool allowed() const noexcept { return outcome == Outcome::kAllowed; }
  // The rule that the answer names; nullptr: none had a say.
  [[nodiscard]] const RuleView* rule() const noexcept {
    return deciding != nullptr ? deciding->rule : refusing;
  }
};

template <class Paper>
class AnswerScript;

// Not for several threads at once: it learns the forms of the answers that it writes.
class AnswerWriter {
 public:
  // `rules` must outlive it, and be those that the parts of rulings point to.
  AnswerWriter(const AnswerOptions& options, std::span<const RuleView> rules);

  // Allocates at the first answer of its kind of a rule, and not again.
  void WriteCheck(base::ByteBuffer& out, const Ruling& ruling, const AnswerContext& context);

  // A batch is one answer, 200 with a list: {"checks":[…]}.
  class Batch;

 private:
  template <class Paper>
  friend class AnswerScript;

  // What is the same in all answers of a rule, as each place writes it.
  struct RulePieces {
    std::string field;   // X-Weir-Rule: login
    std::string json;    // ,"rule":"login"
    std::string policy;  // "login, as a structured field; the closing quote follows the quota
    bool several;        // quotas for one request, so that the policy names which
  };

  static constexpr size_t kVariantsWithForms = 4;
  static constexpr size_t kKindsOfForms = 9;  // allowed, and refused with two bodies, in 3 modes
  using RuleForms =
      std::array<std::array<std::unique_ptr<Form>, kKindsOfForms>, kVariantsWithForms>;

  [[nodiscard]] const RulePieces* PiecesOf(const RuleView* rule) const noexcept;
  [[nodiscard]] size_t MostBytes(const Ruling& ruling) const noexcept;
  [[nodiscard]] const Form* FindForm(const Ruling& ruling, const AnswerContext& context);

  AnswerOptions options_;
  std::span<const RuleView> rules_;
  std::vector<RulePieces> pieces_;                 // of each rule
  std::vector<std::unique_ptr<RuleForms>> forms_;  // of each rule that has answered
};

class AnswerWriter::Batch {
 public:
  // Writes the head; everything until End goes into the same buffer.
  Batch(const AnswerWriter& writer, base::ByteBuffer& out, const AnswerContext& context);
  // Returns what was written, good until the next.
  std::string_view Add(const Ruling& ruling, Duration jitter = {});
  // An answer as Add wrote it before.
  void AddWritten(std::string_view answer);
  void End();

 private:
  const AnswerWriter& writer_;
  base::ByteBuffer& out_;
  AnswerContext context_;
  size_t body_;  // where it begins
  bool first_ = true;
};

// Answers that are no decision.
struct PlainAnswer {
  int status = 200;
  std::string_view content_type = "application/json";
  std::string_view body{};
  std::string_view fields{};  // further header lines, each with its CR LF
};
void WritePlain(base::ByteBuffer& out, const PlainAnswer& answer, const AnswerContext& context);

// An error as problem+json. Closes the connection unless context.keep_alive. `allow`: the methods
// of a 405, "GET, HEAD".
void WriteError(base::ByteBuffer& out, int status, std::string_view detail,
                const AnswerContext& context, std::string_view allow = {});

// Nothing could be decided and the mode is to let pass: 200 or 204, basis "open", no limits.
void WriteOpen(base::ByteBuffer& out, const AnswerContext& context);

inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// "Sun, 06 Nov 1994 08:49:37 GMT"
inline constexpr size_t kDateBytes = 29;
std::string_view FormatDate(WallTime now, std::span<char, kDateBytes> to) noexcept;

}  // namespace weir::codec::http
