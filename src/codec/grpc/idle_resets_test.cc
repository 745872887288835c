#include "codec/grpc/idle_resets.h"

#include <string>

#include <gtest/gtest.h>

namespace weir::codec::grpc {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string Frame(char type, uint32_t stream, const std::string& payload) {
  const auto size = static_cast<uint32_t>(payload.size());
  std::string frame = {static_cast<char>(size >> 16),
                       static_cast<char>(size >> 8),
                       static_cast<char>(size),
                       type,
                       0,
                       static_cast<char>(stream >> 24),
                       static_cast<char>(stream >> 16),
                       static_cast<char>(stream >> 8),
                       static_cast<char>(stream)};
  return frame + payload;
}

std::string Headers(uint32_t stream) {
  return Frame(1, stream, "some fields");
}

std::string Reset(uint32_t stream) {
  return Frame(3, stream, std::string(4, '\0'));
}

struct Passed {
  std::string bytes;
  size_t pieces = 0;
  uint32_t left_out = 0;
};

Passed Filter(std::string_view all, size_t cut_at, size_t piece) {
  IdleResets filter;
  Passed passed;
  const auto pass = [&](std::string_view bytes) {
    EXPECT_FALSE(bytes.empty());
    passed.bytes += bytes;
    ++passed.pieces;
  };
  passed.left_out += filter.Filter(all.substr(0, cut_at), pass);
  for (all.remove_prefix(cut_at); !all.empty(); all.remove_prefix(std::min(piece, all.size()))) {
    passed.left_out += filter.Filter(all.substr(0, piece), pass);
  }
  return passed;
}

TEST(IdleResetsTest, ResetsOfStreamsThatWereNotBegunAreLeftOut) {
  const std::string begin = std::string(kPreface) + Frame(4, 0, "") + Headers(1) + Headers(3);
  const std::string middle = Reset(3) + Frame(0, 1, "a message") + Headers(7);
  // 5 was passed over, so it is closed and not idle; nghttp2 knows that.
  const std::string end = Reset(7) + Reset(5) + Frame(6, 0, "12345678");
  const std::string all = begin + Reset(5) + middle + Reset(9) + Reset(11) + end;
  const std::string expected = begin + middle + end;
  // In one piece, in two at every place, in threes, byte by byte.
  const Passed whole = Filter(all, all.size(), 1);
  EXPECT_EQ(whole.bytes, expected);
  EXPECT_EQ(whole.left_out, 3U);
  EXPECT_EQ(whole.pieces, 3U);
  for (size_t cut = 0; cut <= all.size(); ++cut) {
    for (const size_t piece : {size_t{1}, size_t{3}, all.size()}) {
      const Passed passed = Filter(all, cut, piece);
      ASSERT_EQ(passed.bytes, expected) << "cut at " << cut << ", then by " << piece;
      ASSERT_EQ(passed.left_out, 3U);
    }
  }
}

TEST(IdleResetsTest, WhatElseIsWrongIsPassedOn) {
  const std::string all = std::string(kPreface) + Reset(0) + Reset(2) + Frame(3, 9, "12345") +
                          Frame(3, 9, "") + "not a whole fra";
  const Passed passed = Filter(all, all.size(), 1);
  EXPECT_EQ(passed.bytes, all);
  EXPECT_EQ(passed.left_out, 0U);
}

}  // namespace
}  // namespace weir::codec::grpc
