// The script of an answer: what is told of a ruling, in which order. Only for answer.cc.
//
// `Paper` is a Sheet or a Draft (answer_form.h). Numbers of the deciding quota go through Fill, so
// that a form can be made of the answer; those of a list with several items must not be in a form.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "weir/quota.h"

#include "base/wide_math.h"
#include "codec/http/answer.h"
#include "codec/http/answer_parts.h"

namespace weir::codec::http {

// Somebody kept count, so that there are numbers to tell.
inline bool IsCounted(const Decision& decision) {
  return decision.outcome != Outcome::kRefused && decision.basis != Basis::kOpen &&
         decision.basis != Basis::kClosed;
}

inline bool IsTold(const RulePart& part) {
  return !part.shadow && part.rule->headers == HeaderVisibility::kVisible &&
         IsCounted(part.decision);
}

// Refused since a store that others share was away, and a rule says so.
inline bool IsAway(const Ruling& ruling) {
  return ruling.outcome == Outcome::kDenied && ruling.deciding != nullptr &&
         ruling.deciding->decision.basis == Basis::kClosed && ruling.trouble != StoreTrouble::kNone;
}

// Refused for want of quota, so that waiting helps.
inline bool IsLimited(const Ruling& ruling) {
  return ruling.outcome == Outcome::kDenied && ruling.why == RuleRefusal::kNone && !IsAway(ruling);
}

inline uint64_t RetryAfter(const Ruling& ruling, const AnswerContext& context) {
  return std::max<uint64_t>(CeilSeconds(ruling.retry_after + context.jitter), 1);
}

inline uint64_t ResetAt(const Decision& decision, ResetStyle style, const AnswerContext& context) {
  return CeilSeconds(style == ResetStyle::kDelta
                         ? decision.reset_after
                         : context.now.time_since_epoch() + decision.reset_after);
}

template <class Paper>
class AnswerScript {
 public:
  AnswerScript(const AnswerWriter& writer, Paper& out, const Ruling& ruling,
               const AnswerContext& context)
      : writer_(writer),
        options_(writer.options_),
        out_(out),
        verdict_(ruling),
        context_(context),
        deciding_(ruling.deciding),
        pieces_(writer.PiecesOf(ruling.rule())),
        visible_(pieces_ != nullptr && ruling.rule()->headers == HeaderVisibility::kVisible) {}

  void WriteAll() {
    const int status = Status();
    AppendHead(out_, status, context_);
    WriteFields();
    if (status == 204) {
      out_.Append("\r\n");
      return;
    }
    const bool problem = !verdict_.allowed() && context_.error_body == ErrorBody::kProblem;
    BeginBody(out_, problem ? kProblemJson : kJson);
    if (problem) {
      WriteProblem(status);
    } else {
      WriteJson();
    }
    out_.EndBody(context_.head);
  }

  void WriteJson() {
    const bool check = context_.mode == AnswerMode::kCheck;
    out_.Append('{');
    if (check) {
      out_.Append(verdict_.allowed() ? "\"allowed\":true" : "\"allowed\":false,");
    }
    if (!verdict_.allowed()) {
      out_.Append("\"error\":\"");
      out_.Append(ErrorWord());
      out_.Append("\",\"message\":\"");
      WriteMessage();
      out_.Append('"');
      if (IsLimited(verdict_) || IsAway(verdict_)) {
        out_.Append(",\"retry_after\":");
        out_.Fill(Hole::kRetryAfter, RetryAfter(verdict_, context_));
      }
    }
    if (check && visible_) {
      out_.Append(pieces_->json);
      if (deciding_ != nullptr) {
        WriteDecidingJson(deciding_->decision);
      }
    }
    if (check && verdict_.allowed() && verdict_.start_after > Duration::zero()) {
      out_.Append(",\"start_after\":");
      out_.FillSeconds(Hole::kNone, verdict_.start_after);
    }
    if (check && !verdict_.reservation.empty()) {
      out_.Append(",\"reservation\":\"");
      out_.Append(verdict_.reservation);
      out_.Append('"');
    }
    out_.Append('}');
  }

 private:
  [[nodiscard]] bool IsBlocked() const {
    return verdict_.why == RuleRefusal::kBlocked || verdict_.why == RuleRefusal::kMissing;
  }

  [[nodiscard]] int Status() const {
    if (verdict_.allowed()) {
      return context_.mode == AnswerMode::kCheck ? 200 : 204;
    }
    if (context_.mode == AnswerMode::kAuth403 || IsBlocked()) {
      return 403;
    }
    return IsLimited(verdict_) ? 429 : IsAway(verdict_) ? 503 : 400;
  }

  [[nodiscard]] std::string_view StatusWord() const {
    return verdict_.allowed()    ? "allowed"
           : IsLimited(verdict_) ? "limited"
           : IsAway(verdict_)    ? "away"
           : IsBlocked()         ? "blocked"
                                 : "refused";
  }

  [[nodiscard]] std::string_view ErrorWord() const {
    return IsLimited(verdict_)                     ? "rate_limit_exceeded"
           : IsAway(verdict_)                      ? "store_unavailable"
           : verdict_.why == RuleRefusal::kBlocked ? "blocked"
           : verdict_.why == RuleRefusal::kMissing ? "missing_attribute"
                                                   : "invalid_request";
  }

  // For people, without quotes around it.
  void WriteMessage() {
    if (IsLimited(verdict_)) {
      const uint64_t seconds = RetryAfter(verdict_, context_);
      out_.Append("Rate limit exceeded. Try again in ");
      out_.Fill(Hole::kRetryAfter, seconds);
      out_.Append(seconds == 1 ? " second." : " seconds.");
      return;
    }
    if (IsAway(verdict_)) {
      out_.Append("The store that counts this is out of reach. Try again in ");
      out_.Fill(Hole::kRetryAfter, RetryAfter(verdict_, context_));
      out_.Append(" s.");
      return;
    }
    switch (verdict_.why) {
      case RuleRefusal::kBlocked:
        out_.Append("The request is on a block list or met a rule that blocks.");
        break;
      case RuleRefusal::kMissing:
        out_.Append("A rule counts by an attribute that the request does not have.");
        break;
      case RuleRefusal::kAttributeTooLong:
        out_.Append("An attribute is longer than 2048 bytes.");
        break;
      case RuleRefusal::kTooManyAttributes:
        out_.Append("The request has more than 128 attributes.");
        break;
      case RuleRefusal::kKeysTooLong:
        out_.Append("The keys of all rules together are longer than 16384 bytes.");
        break;
      case RuleRefusal::kBadMode:
      case RuleRefusal::kNone:
        out_.Append(Explain(verdict_.problem));
    }
  }

  void WriteFields() {
    if ((options_.families & kWeir) != 0) {
      out_.Append("X-Weir-Status: ");
      out_.Append(StatusWord());
      out_.Append("\r\n");
      if (visible_) {
        out_.Append(pieces_->field);
        if (deciding_ != nullptr) {
          out_.Append("X-Weir-Basis: ");
          out_.Append(ToString(deciding_->decision.basis));
          out_.Append("\r\n");
        }
      }
    }
    if ((options_.families & kRetryAfter) != 0 && (IsLimited(verdict_) || IsAway(verdict_))) {
      WriteField("Retry-After: ", Hole::kRetryAfter, RetryAfter(verdict_, context_));
    }
    if (visible_ && deciding_ != nullptr && IsTold(*deciding_)) {
      WriteDeciding(deciding_->decision, *deciding_->quota);
    }
    if ((options_.families & kRateLimit) != 0) {
      WriteRateLimit();
    }
  }

  void WriteField(std::string_view name, Hole hole, uint64_t number) {
    out_.Append(name);
    out_.Fill(hole, number);
    out_.Append("\r\n");
  }

  // The families that tell of one quota only.
  void WriteDeciding(const Decision& decision, const RuleQuota& quota) {
    const uint64_t reset = CeilSeconds(decision.reset_after);
    if ((options_.families & kXRateLimit) != 0) {
      WriteField("X-RateLimit-Limit: ", Hole::kLimit, decision.limit);
      WriteField("X-RateLimit-Remaining: ", Hole::kRemaining, decision.remaining);
      WriteField("X-RateLimit-Reset: ", Hole::kResetAt,
                 ResetAt(decision, options_.reset, context_));
    } else if ((options_.families & kXRateLimitList) != 0) {
      out_.Append("X-RateLimit-Limit: ");
      out_.Fill(Hole::kLimit, decision.limit);
      out_.Append(", ");
      out_.AppendNumber(UnitsPerWindow(quota));
      if (quota.window_s != 0) {
        out_.Append(";w=");
        out_.AppendNumber(quota.window_s);
      }
      out_.Append(";name=");
      out_.Append(pieces_->policy);
      out_.Append("\"\r\n");
      WriteField("X-RateLimit-Remaining: ", Hole::kRemaining, decision.remaining);
      WriteField("X-RateLimit-Reset: ", Hole::kResetIn, reset);
    }
    if ((options_.families & kRateLimit3) != 0) {
      WriteField("RateLimit-Limit: ", Hole::kLimit, decision.limit);
      WriteField("RateLimit-Remaining: ", Hole::kRemaining, decision.remaining);
      WriteField("RateLimit-Reset: ", Hole::kResetIn, reset);
    }
    if ((options_.families & kRateLimit7) != 0 && (options_.families & kRateLimit) == 0) {
      out_.Append("RateLimit: limit=");
      out_.Fill(Hole::kLimit, decision.limit);
      out_.Append(", remaining=");
      out_.Fill(Hole::kRemaining, decision.remaining);
      WriteField(", reset=", Hole::kResetIn, reset);
    }
  }

  void WriteDecidingJson(const Decision& decision) {
    if (IsCounted(decision)) {
      out_.Append(",\"limit\":");
      out_.Fill(Hole::kLimit, decision.limit);
      out_.Append(",\"remaining\":");
      out_.Fill(Hole::kRemaining, decision.remaining);
      out_.Append(verdict_.allowed() ? ",\"retry_after\":0,\"reset_after\":" : ",\"reset_after\":");
      out_.FillSeconds(Hole::kResetExact, decision.reset_after);
    }
    out_.Append(",\"basis\":\"");
    out_.Append(ToString(decision.basis));
    out_.Append('"');
  }

  void WritePolicyName(const RulePart& part, const AnswerWriter::RulePieces& pieces) {
    out_.Append(pieces.policy);
    if (pieces.several) {
      out_.Append(' ');
      out_.Append(part.quota->text);
    }
    out_.Append('"');
  }

  // One item for each quota that is told of.
  template <class Parameters>
  void WriteList(std::string_view field, Parameters parameters) {
    bool first = true;
    for (const RulePart& part : verdict_.parts) {
      const auto* const pieces = writer_.PiecesOf(part.rule);
      if (pieces == nullptr || !IsTold(part)) {
        continue;
      }
      out_.Append(first ? field : ", ");
      first = false;
      WritePolicyName(part, *pieces);
      parameters(part);
    }
    if (!first) {
      out_.Append("\r\n");
    }
  }

  // RateLimit-Policy: "login";q=5;w=60    RateLimit: "login";r=0;t=12
  void WriteRateLimit() {
    WriteList("RateLimit-Policy: ", [this](const RulePart& part) {
      out_.Append(";q=");
      out_.AppendNumber(UnitsPerWindow(*part.quota));
      if (part.quota->quota.algorithm() == Algorithm::kConcurrency) {
        out_.Append(";qu=\"concurrent-requests\"");
      } else if (part.quota->window_s != 0) {
        out_.Append(";w=");
        out_.AppendNumber(part.quota->window_s);
      }
    });
    WriteList("RateLimit: ", [this](const RulePart& part) {
      out_.Append(";r=");
      out_.Fill(Hole::kRemaining, part.decision.remaining);
      // Retry-After must not be earlier than any t, so of a refusal only the refusing quotas tell.
      if (!part.decision.allowed()) {
        out_.Append(";t=");
        out_.Fill(Hole::kRetryIn, CeilSeconds(part.decision.retry_after));
      } else if (verdict_.allowed()) {
        out_.Append(";t=");
        out_.Fill(Hole::kResetIn, CeilSeconds(part.decision.reset_after));
      }
    });
  }

  // The units of a policy and the whole seconds they are for. A window that is no whole number of
  // seconds is told of as the next one, with as many units as fit.
  static uint64_t UnitsPerWindow(const RuleQuota& quota) {
    const auto window_ns = static_cast<uint64_t>(quota.quota.window().count());
    const uint64_t told_ns = quota.window_s * 1'000'000'000;
    const bool whole = quota.window_s == 0 || quota.quota.algorithm() == Algorithm::kCalendar ||
                       window_ns == 0 || window_ns == told_ns;
    return whole ? quota.quota.limit() : base::MulDivFloor(quota.quota.limit(), told_ns, window_ns);
  }

  void WriteProblem(int status) {
    constexpr std::string_view kQuotaExceeded =
        "https://iana.org/assignments/http-problem-types#quota-exceeded";
    constexpr std::string_view kReducedCapacity =
        "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
    out_.Append("{\"type\":\"");
    out_.Append(IsLimited(verdict_) ? kQuotaExceeded
                : IsAway(verdict_)  ? kReducedCapacity
                                    : "about:blank");
    out_.Append("\",\"title\":\"");
    out_.Append(ReasonPhrase(IsLimited(verdict_) ? 429 : status));
    out_.Append("\",\"status\":");
    out_.AppendNumber(static_cast<uint64_t>(status));
    out_.Append(",\"detail\":\"");
    WriteMessage();
    out_.Append('"');
    if (IsLimited(verdict_)) {
      out_.Append(",\"violated-policies\":[");
      bool first = true;
      for (const RulePart& part : verdict_.parts) {
        const auto* const pieces = writer_.PiecesOf(part.rule);
        if (pieces == nullptr || !IsTold(part) || part.decision.allowed()) {
          continue;
        }
        out_.Append(first ? "" : ",");
        first = false;
        WritePolicyName(part, *pieces);
      }
      out_.Append(']');
    }
    out_.Append('}');
  }

  const AnswerWriter& writer_;
  const AnswerOptions& options_;
  Paper& out_;
  const Ruling& verdict_;
  const AnswerContext& context_;
  const RulePart* deciding_;
  const AnswerWriter::RulePieces* pieces_;
  bool visible_;
};

}  // namespace weir::codec::http
