#include "codec/http/answer.h"

#include <algorithm>

#include "weir/quota.h"

#include "base/wide_math.h"
#include "codec/http/answer_parts.h"
#include "codec/http/json_text.h"

namespace weir::codec::http {
namespace {

constexpr std::string_view kQuotaExceeded =
    "https://iana.org/assignments/http-problem-types#quota-exceeded";

// Somebody kept count, so that there are numbers to tell.
bool IsCounted(const Decision& decision) {
  return decision.outcome != Outcome::kRefused && decision.basis != Basis::kOpen &&
         decision.basis != Basis::kClosed;
}

bool IsTold(const RulePart& part) {
  return !part.shadow && part.rule->headers == HeaderVisibility::kVisible &&
         IsCounted(part.decision);
}

// Refused for want of quota, so that waiting helps.
bool IsLimited(const Verdict& verdict) {
  return verdict.outcome == Outcome::kDenied && verdict.why == RuleRefusal::kNone;
}

bool IsBlocked(const Verdict& verdict) {
  return verdict.why == RuleRefusal::kBlocked || verdict.why == RuleRefusal::kMissing;
}

int StatusOf(const Verdict& verdict, AnswerMode mode) {
  if (verdict.allowed()) {
    return mode == AnswerMode::kCheck ? 200 : 204;
  }
  if (mode == AnswerMode::kAuth403 || IsBlocked(verdict)) {
    return 403;
  }
  return IsLimited(verdict) ? 429 : 400;
}

std::string_view StatusWord(const Verdict& verdict) {
  return verdict.allowed()    ? "allowed"
         : IsLimited(verdict) ? "limited"
         : IsBlocked(verdict) ? "blocked"
                              : "refused";
}

std::string_view ErrorWord(const Verdict& verdict) {
  return IsLimited(verdict)                     ? "rate_limit_exceeded"
         : verdict.why == RuleRefusal::kBlocked ? "blocked"
         : verdict.why == RuleRefusal::kMissing ? "missing_attribute"
                                                : "invalid_request";
}

uint64_t RetryAfter(const Verdict& verdict, const AnswerContext& context) {
  return std::max<uint64_t>(CeilSeconds(verdict.retry_after + context.jitter), 1);
}

// For people, without quotes around it.
void AppendMessage(base::ByteBuffer& out, const Verdict& verdict, const AnswerContext& context) {
  if (IsLimited(verdict)) {
    const uint64_t seconds = RetryAfter(verdict, context);
    out.Append("Rate limit exceeded. Try again in ");
    out.AppendNumber(seconds);
    out.Append(seconds == 1 ? " second." : " seconds.");
    return;
  }
  switch (verdict.why) {
    case RuleRefusal::kBlocked:
      out.Append("The request is on a block list or met a rule that blocks.");
      break;
    case RuleRefusal::kMissing:
      out.Append("A rule counts by an attribute that the request does not have.");
      break;
    case RuleRefusal::kAttributeTooLong:
      out.Append("An attribute is longer than 2048 bytes.");
      break;
    case RuleRefusal::kTooManyAttributes:
      out.Append("The request has more than 128 attributes.");
      break;
    case RuleRefusal::kKeysTooLong:
      out.Append("The keys of all rules together are longer than 16384 bytes.");
      break;
    case RuleRefusal::kBadMode:
    case RuleRefusal::kNone:
      out.Append(Explain(verdict.problem));
  }
}

// The units of a policy and the whole seconds they are for. A window that is no whole number of
// seconds is told of as the next one, with as many units as fit.
uint64_t UnitsPerWindow(const RuleQuota& quota) {
  const auto window_ns = static_cast<uint64_t>(quota.quota.window().count());
  const uint64_t told_ns = quota.window_s * 1'000'000'000;
  const bool whole = quota.window_s == 0 || quota.quota.algorithm() == Algorithm::kCalendar ||
                     window_ns == 0 || window_ns == told_ns;
  return whole ? quota.quota.limit() : base::MulDivFloor(quota.quota.limit(), told_ns, window_ns);
}

void AppendField(base::ByteBuffer& out, std::string_view name, uint64_t number) {
  out.Append(name);
  out.AppendNumber(number);
  out.Append("\r\n");
}

// A rule's name for a header: other than visible ASCII as %XX.
std::string HeaderText(std::string_view name) {
  constexpr std::string_view kHexDigits = "0123456789ABCDEF";
  std::string text;
  for (const char character : name) {
    const auto byte = static_cast<uint8_t>(character);
    if (byte >= 0x20 && byte < 0x7F) {
      text += character;
    } else {
      text += {'%', kHexDigits[byte >> 4], kHexDigits[byte & 15]};
    }
  }
  return text;
}

// The begin of a String of RFC 9651, with what needs it escaped.
std::string StructuredText(std::string_view name) {
  std::string text = "\"";
  for (const char character : HeaderText(name)) {
    if (character == '"' || character == '\\') {
      text += '\\';
    }
    text += character;
  }
  return text;
}

std::string JsonText(std::string_view name) {
  base::ByteBuffer out;
  AppendJsonText(out, name);
  return std::string(out.view());
}

}  // namespace

AnswerWriter::AnswerWriter(const AnswerOptions& options, std::span<const RuleView> rules)
    : options_(options), rules_(rules) {
  pieces_.reserve(rules.size());
  for (const RuleView& rule : rules) {
    const bool several =
        std::any_of(rule.variants.begin(), rule.variants.end(),
                    [](const RuleVariant& variant) { return variant.quotas.size() > 1; });
    pieces_.push_back({.field = "X-Weir-Rule: " + HeaderText(rule.name) + "\r\n",
                       .json = ",\"rule\":" + JsonText(rule.name),
                       .policy = StructuredText(rule.name),
                       .several = several});
  }
}

const AnswerWriter::RulePieces* AnswerWriter::PiecesOf(const RulePart& part) const noexcept {
  const auto index = static_cast<size_t>(part.rule - rules_.data());
  return index < pieces_.size() ? &pieces_[index] : nullptr;
}

void AnswerWriter::WriteCheck(base::ByteBuffer& out, const Verdict& verdict,
                              const AnswerContext& context) const {
  const int status = StatusOf(verdict, context.mode);
  AppendHead(out, status, context);
  AppendFields(out, verdict, context);
  if (status == 204) {
    out.Append("\r\n");
    return;
  }
  const bool problem = !verdict.allowed() && context.error_body == ErrorBody::kProblem;
  const size_t body = BeginBody(out, problem ? kProblemJson : kJson);
  if (problem) {
    AppendProblem(out, verdict, status, context);
  } else {
    AppendJson(out, verdict, context);
  }
  EndBody(out, body, context);
}

void AnswerWriter::AppendFields(base::ByteBuffer& out, const Verdict& verdict,
                                const AnswerContext& context) const {
  const RulePart* const deciding = verdict.deciding;
  const RulePieces* const pieces = deciding == nullptr ? nullptr : PiecesOf(*deciding);
  const bool visible = pieces != nullptr && deciding->rule->headers == HeaderVisibility::kVisible;
  if ((options_.families & kWeir) != 0) {
    out.Append("X-Weir-Status: ");
    out.Append(StatusWord(verdict));
    out.Append("\r\n");
    if (visible) {
      out.Append(pieces->field);
      out.Append("X-Weir-Basis: ");
      out.Append(ToString(deciding->decision.basis));
      out.Append("\r\n");
    }
  }
  if ((options_.families & kRetryAfter) != 0 && IsLimited(verdict)) {
    AppendField(out, "Retry-After: ", RetryAfter(verdict, context));
  }
  if (visible && IsTold(*deciding)) {
    AppendDeciding(out, deciding->decision, *deciding->quota, *pieces, context);
  }
  if ((options_.families & kRateLimit) != 0) {
    AppendRateLimit(out, verdict);
  }
}

// The families that tell of one quota only.
void AnswerWriter::AppendDeciding(base::ByteBuffer& out, const Decision& decision,
                                  const RuleQuota& quota, const RulePieces& pieces,
                                  const AnswerContext& context) const {
  const uint64_t reset = CeilSeconds(decision.reset_after);
  if ((options_.families & kXRateLimit) != 0) {
    AppendField(out, "X-RateLimit-Limit: ", decision.limit);
    AppendField(out, "X-RateLimit-Remaining: ", decision.remaining);
    AppendField(out, "X-RateLimit-Reset: ",
                options_.reset == ResetStyle::kDelta
                    ? reset
                    : CeilSeconds(context.now.time_since_epoch() + decision.reset_after));
  } else if ((options_.families & kXRateLimitList) != 0) {
    out.Append("X-RateLimit-Limit: ");
    out.AppendNumber(uint64_t{decision.limit});
    out.Append(", ");
    out.AppendNumber(UnitsPerWindow(quota));
    if (quota.window_s != 0) {
      out.Append(";w=");
      out.AppendNumber(quota.window_s);
    }
    out.Append(";name=");
    out.Append(pieces.policy);
    out.Append("\"\r\n");
    AppendField(out, "X-RateLimit-Remaining: ", decision.remaining);
    AppendField(out, "X-RateLimit-Reset: ", reset);
  }
  if ((options_.families & kRateLimit3) != 0) {
    AppendField(out, "RateLimit-Limit: ", decision.limit);
    AppendField(out, "RateLimit-Remaining: ", decision.remaining);
    AppendField(out, "RateLimit-Reset: ", reset);
  }
  if ((options_.families & kRateLimit7) != 0 && (options_.families & kRateLimit) == 0) {
    out.Append("RateLimit: limit=");
    out.AppendNumber(uint64_t{decision.limit});
    out.Append(", remaining=");
    out.AppendNumber(uint64_t{decision.remaining});
    AppendField(out, ", reset=", reset);
  }
}

void AnswerWriter::AppendPolicyName(base::ByteBuffer& out, const RulePart& part,
                                    const RulePieces& pieces) const {
  out.Append(pieces.policy);
  if (pieces.several) {
    out.Append(' ');
    out.Append(part.quota->text);
  }
  out.Append('"');
}

// RateLimit-Policy: "login";q=5;w=60    RateLimit: "login";r=0;t=12    One item for each quota.
void AnswerWriter::AppendRateLimit(base::ByteBuffer& out, const Verdict& verdict) const {
  const auto list = [&](std::string_view field, auto append_parameters) {
    bool first = true;
    for (const RulePart& part : verdict.parts) {
      const RulePieces* const pieces = PiecesOf(part);
      if (pieces == nullptr || !IsTold(part)) {
        continue;
      }
      out.Append(first ? field : ", ");
      first = false;
      AppendPolicyName(out, part, *pieces);
      append_parameters(part);
    }
    if (!first) {
      out.Append("\r\n");
    }
  };
  list("RateLimit-Policy: ", [&](const RulePart& part) {
    out.Append(";q=");
    out.AppendNumber(UnitsPerWindow(*part.quota));
    if (part.quota->quota.algorithm() == Algorithm::kConcurrency) {
      out.Append(";qu=\"concurrent-requests\"");
    } else if (part.quota->window_s != 0) {
      out.Append(";w=");
      out.AppendNumber(part.quota->window_s);
    }
  });
  list("RateLimit: ", [&](const RulePart& part) {
    out.Append(";r=");
    out.AppendNumber(uint64_t{part.decision.remaining});
    // Retry-After must not be earlier than any t, so of a refusal only the refusing quotas tell.
    if (!part.decision.allowed()) {
      out.Append(";t=");
      out.AppendNumber(CeilSeconds(part.decision.retry_after));
    } else if (verdict.allowed()) {
      out.Append(";t=");
      out.AppendNumber(CeilSeconds(part.decision.reset_after));
    }
  });
}

void AnswerWriter::AppendJson(base::ByteBuffer& out, const Verdict& verdict,
                              const AnswerContext& context) const {
  const bool check = context.mode == AnswerMode::kCheck;
  out.Append('{');
  if (check) {
    out.Append(verdict.allowed() ? "\"allowed\":true" : "\"allowed\":false,");
  }
  if (!verdict.allowed()) {
    out.Append("\"error\":\"");
    out.Append(ErrorWord(verdict));
    out.Append("\",\"message\":\"");
    AppendMessage(out, verdict, context);
    out.Append('"');
    if (IsLimited(verdict)) {
      out.Append(",\"retry_after\":");
      out.AppendNumber(RetryAfter(verdict, context));
    }
  }
  const RulePart* const deciding = verdict.deciding;
  const RulePieces* const pieces = deciding == nullptr ? nullptr : PiecesOf(*deciding);
  if (check && pieces != nullptr && deciding->rule->headers == HeaderVisibility::kVisible) {
    const Decision& decision = deciding->decision;
    out.Append(pieces->json);
    if (IsCounted(decision)) {
      out.Append(",\"limit\":");
      out.AppendNumber(uint64_t{decision.limit});
      out.Append(",\"remaining\":");
      out.AppendNumber(uint64_t{decision.remaining});
      out.Append(verdict.allowed() ? ",\"retry_after\":0,\"reset_after\":" : ",\"reset_after\":");
      AppendSeconds(out, decision.reset_after);
    }
    out.Append(",\"basis\":\"");
    out.Append(ToString(decision.basis));
    out.Append('"');
  }
  if (check && verdict.allowed() && verdict.start_after > Duration::zero()) {
    out.Append(",\"start_after\":");
    AppendSeconds(out, verdict.start_after);
  }
  if (check && !verdict.reservation.empty()) {
    out.Append(",\"reservation\":");
    AppendJsonText(out, verdict.reservation);
  }
  out.Append('}');
}

void AnswerWriter::AppendProblem(base::ByteBuffer& out, const Verdict& verdict, int status,
                                 const AnswerContext& context) const {
  out.Append("{\"type\":\"");
  out.Append(IsLimited(verdict) ? kQuotaExceeded : "about:blank");
  out.Append("\",\"title\":\"");
  out.Append(ReasonPhrase(IsLimited(verdict) ? 429 : status));
  out.Append("\",\"status\":");
  out.AppendNumber(static_cast<uint64_t>(status));
  out.Append(",\"detail\":\"");
  AppendMessage(out, verdict, context);
  out.Append('"');
  if (IsLimited(verdict)) {
    out.Append(",\"violated-policies\":[");
    bool first = true;
    for (const RulePart& part : verdict.parts) {
      const RulePieces* const pieces = PiecesOf(part);
      if (pieces == nullptr || !IsTold(part) || part.decision.allowed()) {
        continue;
      }
      out.Append(first ? "" : ",");
      first = false;
      AppendPolicyName(out, part, *pieces);
    }
    out.Append(']');
  }
  out.Append('}');
}

AnswerWriter::Batch::Batch(const AnswerWriter& writer, base::ByteBuffer& out,
                           const AnswerContext& context)
    : writer_(writer), out_(out), context_(context) {
  context_.mode = AnswerMode::kCheck;
  AppendHead(out_, 200, context_);
  body_ = BeginBody(out_, kJson);
  out_.Append("{\"checks\":[");
}

void AnswerWriter::Batch::Add(const Verdict& verdict) {
  if (!first_) {
    out_.Append(',');
  }
  first_ = false;
  writer_.AppendJson(out_, verdict, context_);
}

void AnswerWriter::Batch::End() {
  out_.Append("]}");
  EndBody(out_, body_, context_);
}

}  // namespace weir::codec::http
