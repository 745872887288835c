#include "base/byte_buffer.h"

#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "testing/random.h"

namespace weir::base {
namespace {

TEST(ByteBuffer, AppendsAtTheEndAndTakesFromTheFront) {
  ByteBuffer buffer;
  EXPECT_TRUE(buffer.empty());
  buffer.Append("hello ");
  buffer.Append('w');
  buffer.AppendNumber(int64_t{-42});
  buffer.AppendNumber(uint64_t{7});
  EXPECT_EQ(buffer.view(), "hello w-427");
  buffer.Consume(6);
  EXPECT_EQ(buffer.view(), "w-427");
  buffer.Consume(5);
  EXPECT_TRUE(buffer.empty());
}

TEST(ByteBuffer, WritesTheLongestNumbers) {
  ByteBuffer buffer;
  buffer.AppendNumber(std::numeric_limits<int64_t>::min());
  buffer.Append(' ');
  buffer.AppendNumber(std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(buffer.view(), "-9223372036854775808 18446744073709551615");
}

TEST(ByteBuffer, KeepsOnlyWhatWasCommitted) {
  ByteBuffer buffer;
  char* const room = buffer.Reserve(10);
  room[0] = 'a';
  room[1] = 'b';
  buffer.Commit(1);
  EXPECT_EQ(buffer.view(), "a");
}

TEST(ByteBuffer, TruncatesToAnEarlierSize) {
  ByteBuffer buffer;
  buffer.Append("keep this");
  buffer.Consume(5);
  const size_t size = buffer.size();
  buffer.Append(" but not that");
  buffer.Truncate(size);
  EXPECT_EQ(buffer.view(), "this");
}

TEST(ByteBuffer, GivesMemoryBackOnlyWhenEmpty) {
  ByteBuffer buffer;
  buffer.Append(std::string(100'000, 'x'));
  const size_t capacity = buffer.capacity();
  buffer.Shrink(1000);
  EXPECT_EQ(buffer.capacity(), capacity);
  buffer.Clear();
  buffer.Shrink(capacity);
  EXPECT_EQ(buffer.capacity(), capacity);
  buffer.Shrink(1000);
  EXPECT_EQ(buffer.capacity(), 0U);
  buffer.Append("again");
  EXPECT_EQ(buffer.view(), "again");
}

TEST(ByteBuffer, SwapsWhatItHoldsAndWhatItHasRoomFor) {
  ByteBuffer full;
  full.Append("abc");
  full.Consume(1);
  ByteBuffer empty;
  full.Swap(empty);
  EXPECT_EQ(empty.view(), "bc");
  EXPECT_EQ(full.capacity(), 0U);
  full.Append("d");
  EXPECT_EQ(full.view(), "d");
  EXPECT_EQ(empty.view(), "bc");
}

TEST(ByteBuffer, NeedsNoMoreMemoryOnceWarm) {
  ByteBuffer buffer;
  buffer.Append(std::string(4096, 'x'));
  const size_t capacity = buffer.capacity();
  for (int i = 0; i < 1000; ++i) {  // never quite empty, so that it has to move its content
    buffer.Consume(buffer.size() - 10);
    buffer.Append(std::string(1000, 'y'));
  }
  EXPECT_EQ(buffer.capacity(), capacity);
}

TEST(ByteBuffer, HoldsWhatAStringWouldHold) {
  testing::Random random(3);
  ByteBuffer buffer;
  std::string model;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text(random.Below(200), static_cast<char>('a' + random.Below(26)));
    switch (random.Below(4)) {
      case 0: {
        const size_t size = random.Below(model.size() + 1);
        buffer.Consume(size);
        model.erase(0, size);
        break;
      }
      case 1: {
        const size_t size = model.size() - random.Below(std::min<size_t>(model.size(), 100) + 1);
        buffer.Truncate(size);
        model.resize(size);
        break;
      }
      default:
        buffer.Append(text);
        model += text;
    }
    ASSERT_EQ(buffer.view(), model);
  }
}

}  // namespace
}  // namespace weir::base
