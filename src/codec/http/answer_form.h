// Where an answer is written to: onto paper, or into a form that is filled in again and again.
//
// What writes answers (answer_script.h) is given one of two kinds of paper. A Sheet takes
// everything down at once. A Draft keeps what will be the same the next time as text, and a hole
// for each number: made once for a quota and an outcome, such a form needs a few copies and numbers
// where the script goes through every field and option. As there is one script, both say the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/time.h"

#include "base/pen.h"

namespace weir::codec::http {

// The numbers of a decision.
enum class Hole : uint8_t {
  kNone,
  kDate,
  kLimit,  // the same in all answers, so text: who fills in a form looks whether it still is
  kRemaining,
  kResetIn,     // whole seconds
  kResetAt,     // Unix seconds, or kResetIn if that is the style
  kResetExact,  // seconds with decimals
  kRetryIn,     // whole seconds
  kRetryAfter,  // the same with jitter, at least 1
  kBody,        // no number: the body begins here
};

struct HoleValues {
  std::string_view date;
  uint64_t remaining;
  uint64_t reset_in;
  uint64_t reset_at;
  Duration reset_exact;
  uint64_t retry_in;
  uint64_t retry_after;
};

// Seconds with up to three decimals, rounded up: 0, 2, 1.5, 0.001.
void AppendSeconds(base::Pen& out, Duration time);

// The length of a body stands before it and is known after it, so there is room for three digits,
// which nearly all need, and what follows is moved for others.
inline constexpr std::string_view kLengthAndEndOfHead = "\r\nContent-Length: 000\r\n\r\n";
void PutBodyLength(base::Pen& out, char* body, bool leave_out_body);

class Sheet {
 public:
  explicit Sheet(base::Pen& pen) : pen_(pen) {}

  [[gnu::always_inline]] void Append(std::string_view text) { pen_.Append(text); }
  void Append(char character) { pen_.Append(character); }
  void AppendNumber(uint64_t number) { pen_.AppendNumber(number); }
  void Fill(Hole /*hole*/, uint64_t value) { pen_.AppendNumber(value); }
  void FillSeconds(Hole /*hole*/, Duration value) { AppendSeconds(pen_, value); }
  void FillDate(std::string_view date) { pen_.Append(date); }
  void BeginBody() { body_ = pen_.at(); }
  void EndBody(bool leave_out_body) { PutBodyLength(pen_, body_, leave_out_body); }

  [[nodiscard]] const char* body() const noexcept { return body_; }

 private:
  base::Pen& pen_;
  char* body_ = nullptr;
};

class Form {
 public:
  [[nodiscard]] size_t MostBytes() const noexcept { return most_bytes_; }
  [[nodiscard]] uint64_t limit() const noexcept { return limit_; }
  void FillIn(base::Pen& out, const HoleValues& values) const;

 private:
  friend class Draft;

  struct Piece {
    uint32_t bytes;  // of text, before the hole
    Hole hole;
  };

  std::string text_;
  std::vector<Piece> pieces_;
  size_t most_bytes_ = 0;
  uint64_t limit_ = 0;
};

class Draft {
 public:
  explicit Draft(uint64_t limit) { form_.limit_ = limit; }

  void Append(std::string_view text) { form_.text_ += text; }
  void Append(char character) { form_.text_ += character; }
  void AppendNumber(uint64_t number) { form_.text_ += std::to_string(number); }
  void Fill(Hole hole, uint64_t value);
  void FillSeconds(Hole hole, Duration /*value*/) { Leave(hole); }
  void FillDate(std::string_view /*date*/) { Leave(Hole::kDate); }
  void BeginBody() { Leave(Hole::kBody); }
  void EndBody(bool /*leave_out_body*/) {}

  [[nodiscard]] Form Finish();

 private:
  void Leave(Hole hole);

  Form form_;
  size_t cut_ = 0;  // text before it belongs to a piece
};

}  // namespace weir::codec::http
