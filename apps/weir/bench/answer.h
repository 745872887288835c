// What a server may answer, and the reading of it for either protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace weir::bench {

enum class Answer : uint8_t { kAllowed, kDenied, kError };

enum class AnswerState : uint8_t { kMore, kAnswer, kBroken };

// One connection's reader. The caller keeps the bytes and drops consumed() of them after each
// answer.
class AnswerReader {
 public:
  AnswerReader() = default;
  AnswerReader(const AnswerReader&) = delete;
  AnswerReader& operator=(const AnswerReader&) = delete;
  virtual ~AnswerReader() = default;

  [[nodiscard]] virtual AnswerState Read(std::string_view input) = 0;

  // After kAnswer.
  [[nodiscard]] virtual size_t consumed() const noexcept = 0;
  [[nodiscard]] virtual Answer answer() const noexcept = 0;
  [[nodiscard]] virtual bool closes() const noexcept = 0;  // no more on this connection

  // After kBroken, what is wrong with the bytes; after an answer that is an error, its words.
  [[nodiscard]] virtual std::string Explain() const = 0;
};

// 2xx is allowed, 429 is denied, and all else is an error.
[[nodiscard]] std::unique_ptr<AnswerReader> MakeHttpAnswers();

// `command` tells how a denial looks: the first integer of CL.THROTTLE is 1, that of THROTTLE 0,
// and `allowed` of WEIR.CHECK and its like is false. Any other reply but an error is allowed.
[[nodiscard]] std::unique_ptr<AnswerReader> MakeRespAnswers(std::string_view command);

}  // namespace weir::bench
