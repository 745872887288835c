#include "redis/cluster.h"

#include <string>

#include <gtest/gtest.h>

#include "codec/resp/reply_parser.h"

namespace weir::redis {
namespace {

const Address kAsked{.host = "10.0.0.9", .port = 7000, .unix_path = {}};

Result<std::vector<SlotRange>> Read(const std::string& bytes) {
  codec::resp::ReplyParser parser;
  EXPECT_EQ(parser.Parse(bytes), codec::resp::ReplyState::kReply);
  return ReadClusterSlots(parser.reply(), kAsked);
}

TEST(ClusterTest, ReadsRangesWithTheirMasters) {
  const auto ranges = Read(
      "*2\r\n"
      "*4\r\n:0\r\n:5460\r\n*4\r\n$8\r\n10.0.0.1\r\n:7001\r\n$2\r\nid\r\n*0\r\n"
      "*3\r\n$8\r\n10.0.0.4\r\n:7004\r\n$2\r\nid\r\n"
      "*3\r\n:5461\r\n:16383\r\n*3\r\n$0\r\n\r\n:7002\r\n$2\r\nid\r\n");
  ASSERT_TRUE(ranges);
  ASSERT_EQ(ranges->size(), 2U);
  EXPECT_EQ((*ranges)[0].first, 0);
  EXPECT_EQ((*ranges)[0].last, 5460);
  EXPECT_EQ((*ranges)[0].master.ToText(), "10.0.0.1:7001");
  EXPECT_EQ((*ranges)[1].master.ToText(), "10.0.0.9:7002");  // it does not know its own address
}

TEST(ClusterTest, RefusesWhatIsNoMap) {
  EXPECT_FALSE(Read("+OK\r\n"));
  EXPECT_FALSE(Read("*1\r\n:1\r\n"));
  EXPECT_FALSE(Read("*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n"));
  EXPECT_FALSE(Read("*1\r\n*3\r\n:5\r\n:4\r\n*2\r\n$1\r\na\r\n:1\r\n"));
  EXPECT_FALSE(Read("*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n:65536\r\n"));
  EXPECT_FALSE(Read("*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n$1\r\na\r\n"));
}

TEST(ClusterTest, ReadsRedirections) {
  const auto moved = ReadRedirect("MOVED 3999 127.0.0.1:6381", kAsked);
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->slot, 3999);
  EXPECT_EQ(moved->to.ToText(), "127.0.0.1:6381");
  EXPECT_EQ(ReadRedirect("ASK 1 :7005", kAsked)->to.ToText(), "10.0.0.9:7005");
  EXPECT_EQ(ReadRedirect("ASK 1 ::1:7005", kAsked)->to.ToText(), "[::1]:7005");
  EXPECT_FALSE(ReadRedirect("MOVED", kAsked));
  EXPECT_FALSE(ReadRedirect("MOVED 1", kAsked));
  EXPECT_FALSE(ReadRedirect("MOVED x 127.0.0.1:1", kAsked));
  EXPECT_FALSE(ReadRedirect("MOVED 16384 127.0.0.1:1", kAsked));
  EXPECT_FALSE(ReadRedirect("MOVED 1 127.0.0.1", kAsked));
  EXPECT_FALSE(ReadRedirect("MOVED 1 127.0.0.1:0", kAsked));
}

}  // namespace
}  // namespace weir::redis
