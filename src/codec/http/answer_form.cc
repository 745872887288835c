#include "codec/http/answer_form.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weir::codec::http {

void AppendSeconds(base::Pen& out, Duration time) {
  constexpr uint64_t kMillisecond = 1'000'000;
  const auto ns = static_cast<uint64_t>(std::max<int64_t>(time.count(), 0));
  const uint64_t ms = (ns + kMillisecond - 1) / kMillisecond;
  out.AppendNumber(ms / 1000);
  const auto decimals = static_cast<unsigned>(ms % 1000);
  if (decimals != 0) {
    const char digits[] = {'.', static_cast<char>('0' + decimals / 100),
                           static_cast<char>('0' + decimals / 10 % 10),
                           static_cast<char>('0' + decimals % 10)};
    const size_t used = decimals % 100 == 0 ? 2 : decimals % 10 == 0 ? 3 : 4;
    out.Append(std::string_view(digits, used));
  }
}

void PutBodyLength(base::Pen& out, char* body, bool leave_out_body) {
  constexpr size_t kDigits = 3;
  constexpr std::string_view kEndOfHead = "\r\n\r\n";
  const auto length = static_cast<uint64_t>(out.at() - body);
  const unsigned digits = base::DecimalDigits(length);
  char* const place = body - kEndOfHead.size() - kDigits;
  char* const end = leave_out_body ? body : out.at();
  if (digits != kDigits) [[unlikely]] {
    const char* const behind = place + kDigits;
    std::memmove(place + digits, behind, static_cast<size_t>(end - behind));
  }
  base::WriteDecimal(place, length);
  out.MoveTo(end + digits - kDigits);
}

void Form::FillIn(base::Pen& out, const HoleValues& values) const {
  // Told in up to three places.
  char remaining[base::kDecimalBytesMax + base::Pen::kBlockBytes];
  const auto remaining_bytes =
      static_cast<size_t>(base::WriteDecimal(remaining, values.remaining) - remaining);
  const char* text = text_.data();
  char* body = nullptr;
  for (const Piece& piece : pieces_) {
    out.AppendBlocks(text, piece.bytes);
    text += piece.bytes;
    switch (piece.hole) {
      case Hole::kDate:
        out.Append(values.date);
        break;
      case Hole::kRemaining:
        out.AppendBlocks(remaining, remaining_bytes);
        break;
      case Hole::kResetIn:
        out.AppendNumber(values.reset_in);
        break;
      case Hole::kResetAt:
        out.AppendNumber(values.reset_at);
        break;
      case Hole::kResetExact:
        AppendSeconds(out, values.reset_exact);
        break;
      case Hole::kRetryIn:
        out.AppendNumber(values.retry_in);
        break;
      case Hole::kRetryAfter:
        out.AppendNumber(values.retry_after);
        break;
      case Hole::kBody:
        body = out.at();
        break;
      case Hole::kLimit:
      case Hole::kNone:
        break;
    }
  }
  if (body != nullptr) {
    PutBodyLength(out, body, false);
  }
}

void Draft::Fill(Hole hole, uint64_t value) {
  if (hole == Hole::kLimit) {
    AppendNumber(value);
  } else {
    Leave(hole);
  }
}

void Draft::Leave(Hole hole) {
  form_.pieces_.push_back({static_cast<uint32_t>(form_.text_.size() - cut_), hole});
  cut_ = form_.text_.size();
}

Form Draft::Finish() {
  constexpr size_t kHoleBytesMax = 32;  // a date, or a number with decimals
  Leave(Hole::kNone);
  form_.most_bytes_ =
      form_.text_.size() + (form_.pieces_.size() + 1) * kHoleBytesMax + base::Pen::kBlockBytes;
  form_.text_.append(base::Pen::kBlockBytes, ' ');  // is read, and means nothing
  return std::move(form_);
}

}  // namespace weir::codec::http
