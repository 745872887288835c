#include "codec/http/answer.h"

#include <algorithm>
#include <utility>

#include "base/json_text.h"
#include "base/pen.h"
#include "codec/http/answer_script.h"

namespace weir::codec::http {
namespace {

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
  base::AppendJsonText(out, name);
  return std::string(out.view());
}

// Which of a quota's forms an answer can be made from; -1: none, it has more to tell than numbers.
int FormFor(const Ruling& ruling, const AnswerContext& context) {
  const bool plain = ruling.parts.size() == 1 && ruling.deciding == ruling.parts.data() &&
                     ruling.deciding->decision.basis == Basis::kStore && IsTold(*ruling.deciding) &&
                     ruling.start_after == Duration::zero() && ruling.reservation.empty() &&
                     context.keep_alive && !context.old_client && !context.head &&
                     !context.date.empty();
  const bool limited = IsLimited(ruling);
  if (!plain || (!ruling.allowed() && (!limited || RetryAfter(ruling, context) == 1))) {
    return -1;
  }
  const int mode = static_cast<int>(context.mode);
  return ruling.allowed() ? mode : 3 + 2 * mode + static_cast<int>(context.error_body);
}

}  // namespace

AnswerWriter::AnswerWriter(const AnswerOptions& options, std::span<const RuleView> rules)
    : options_(options), rules_(rules), forms_(rules.size()) {
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

const AnswerWriter::RulePieces* AnswerWriter::PiecesOf(const RuleView* rule) const noexcept {
  const auto index = static_cast<size_t>(rule - rules_.data());
  return rule != nullptr && index < pieces_.size() ? &pieces_[index] : nullptr;
}

// What it takes at most. kWords is for everything that no rule has a say in.
size_t AnswerWriter::MostBytes(const Ruling& ruling) const noexcept {
  constexpr size_t kWords = 2048;
  constexpr size_t kItemWords = 96;    // of an item of a list, its numbers included
  constexpr size_t kListsOfItems = 3;  // RateLimit-Policy, RateLimit, violated-policies
  size_t bytes = kWords + ruling.reservation.size();
  if (const RulePieces* const speaks = PiecesOf(ruling.rule())) {
    bytes += speaks->field.size() + speaks->json.size() + speaks->policy.size();
  }
  for (const RulePart& part : ruling.parts) {
    if (const RulePieces* const pieces = PiecesOf(part.rule)) {
      bytes += kListsOfItems * (pieces->policy.size() + part.quota->text.size() + kItemWords);
    }
  }
  return bytes;
}

// The form of a quota that belongs to a rule's first variants, made when it is first asked for. Of
// other quotas there may be any number (overrides), and some live for a while only.
const Form* AnswerWriter::FindForm(const Ruling& ruling, const AnswerContext& context) {
  const int kind = FormFor(ruling, context);
  const auto index = ruling.deciding == nullptr
                         ? size_t{0}
                         : static_cast<size_t>(ruling.deciding->rule - rules_.data());
  if (kind < 0 || index >= rules_.size()) {
    return nullptr;
  }
  const auto& variants = rules_[index].variants;
  for (size_t i = 0; i < std::min(variants.size(), kVariantsWithForms); ++i) {
    if (variants[i].quotas.size() == 1 && variants[i].quotas.data() == ruling.deciding->quota) {
      if (forms_[index] == nullptr) [[unlikely]] {
        forms_[index] = std::make_unique<RuleForms>();
      }
      std::unique_ptr<Form>& form = (*forms_[index])[i][static_cast<size_t>(kind)];
      if (form == nullptr || form->limit() != ruling.deciding->decision.limit) [[unlikely]] {
        Draft draft(ruling.deciding->decision.limit);
        AnswerScript(*this, draft, ruling, context).WriteAll();
        form = std::make_unique<Form>(draft.Finish());
      }
      return form.get();
    }
  }
  return nullptr;
}

void AnswerWriter::WriteCheck(base::ByteBuffer& out, const Ruling& ruling,
                              const AnswerContext& context) {
  if (const Form* const form = FindForm(ruling, context)) [[likely]] {
    const Decision& decision = ruling.deciding->decision;
    const bool denied = !ruling.allowed();
    base::Pen pen(out, form->MostBytes());
    form->FillIn(pen, {.date = context.date,
                       .remaining = decision.remaining,
                       .reset_in = CeilSeconds(decision.reset_after),
                       .reset_at = ResetAt(decision, options_.reset, context),
                       .reset_exact = decision.reset_after,
                       .retry_in = denied ? CeilSeconds(decision.retry_after) : 0,
                       .retry_after = denied ? RetryAfter(ruling, context) : 0});
    return;
  }
  base::Pen pen(out, MostBytes(ruling));
  Sheet sheet(pen);
  AnswerScript(*this, sheet, ruling, context).WriteAll();
}

// Its length is not known before its end, so head, checks and end are pieces of their own.
AnswerWriter::Batch::Batch(const AnswerWriter& writer, base::ByteBuffer& out,
                           const AnswerContext& context)
    : writer_(writer), out_(out), context_(context) {
  context_.mode = AnswerMode::kCheck;
  base::Pen pen(out_, kFrameBytesMax);
  const char* const begin = pen.at();
  Sheet sheet(pen);
  AppendHead(sheet, 200, context_);
  BeginBody(sheet, kJson);
  body_ = out_.size() + static_cast<size_t>(sheet.body() - begin);
  sheet.Append("{\"checks\":[");
}

std::string_view AnswerWriter::Batch::Add(const Ruling& ruling, Duration jitter) {
  context_.jitter = jitter;
  const size_t begin = out_.size() + (first_ ? 0 : 1);
  {
    base::Pen pen(out_, writer_.MostBytes(ruling));
    if (!first_) {
      pen.Append(',');
    }
    first_ = false;
    Sheet sheet(pen);
    AnswerScript(writer_, sheet, ruling, context_).WriteJson();
  }
  return out_.view().substr(begin);
}

void AnswerWriter::Batch::AddWritten(std::string_view answer) {
  if (!first_) {
    out_.Append(',');
  }
  first_ = false;
  out_.Append(answer);
}

void AnswerWriter::Batch::End() {
  base::Pen pen(out_, kFrameBytesMax);
  pen.Append("]}");
  PutBodyLength(pen, out_.span().data() + body_, false);
}

}  // namespace weir::codec::http
