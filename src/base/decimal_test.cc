#include "base/decimal.h"

#include <charconv>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "base/byte_buffer.h"
#include "base/pen.h"

namespace weir::base {
namespace {

template <class Number>
std::string Written(Number number) {
  char digits[kDecimalBytesMax];
  return {digits, WriteDecimal(digits, number)};
}

TEST(Decimal, IsWhatTheStandardLibraryWrites) {
  uint64_t power = 1;
  for (int bits = 0; bits < 64; ++bits) {
    for (const uint64_t base : {uint64_t{1} << bits, power}) {
      for (const uint64_t number : {base - 1, base, base + 1, base * 7, ~base}) {
        ASSERT_EQ(Written(number), std::to_string(number));
        ASSERT_EQ(DecimalDigits(number), std::to_string(number).size());
        const auto negative = static_cast<int64_t>(number);
        ASSERT_EQ(Written(negative), std::to_string(negative));
      }
    }
    power *= 10;
  }
  for (uint64_t number = 0; number < 100'000; ++number) {
    ASSERT_EQ(Written(number), std::to_string(number));
  }
  EXPECT_EQ(Written(std::numeric_limits<uint64_t>::max()).size(), kDecimalBytesMax);
  EXPECT_EQ(Written(std::numeric_limits<int64_t>::min()).size(), kDecimalBytesMax);
}

TEST(Pen, WritesBehindWhatIsThereAndCommitsAtTheEnd) {
  ByteBuffer out;
  out.Append("a");
  {
    Pen pen(out, 64);
    pen.Append("bc");
    pen.Append("");
    char* const mark = pen.at();
    pen.AppendNumber(1234567);
    pen.MoveTo(mark);
    pen.AppendNumber(42);
    pen.Append('!');
    EXPECT_EQ(out.view(), "a");
  }
  EXPECT_EQ(out.view(), "abc42!");
}

}  // namespace
}  // namespace weir::base
