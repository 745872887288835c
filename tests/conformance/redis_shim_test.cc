// The commands and the Lua libraries that stand in for Redis in redis_scripts_test, held against a
// real redis-server: more than a hundred thousand random calls, reply for reply.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "testing/lua_host.h"
#include "testing/random.h"
#include "testing/redis_host.h"
#include "testing/redis_process.h"
#include "testing/toy_redis.h"

namespace weir::testing {
namespace {

using Command = std::vector<std::string>;

// As RedisHost reads replies: numbers, or texts parted by blanks.
void Flatten(const ToyReply& reply, ScriptReply& out) {
  switch (reply.kind) {
    case ToyReply::Kind::kNull:
      out.text += "(null)";
      break;
    case ToyReply::Kind::kInteger:
      out.integers.push_back(reply.integer);
      break;
    case ToyReply::Kind::kError:
      out.error = reply.text;
      break;
    case ToyReply::Kind::kText:
    case ToyReply::Kind::kStatus:
      out.text += reply.text;
      break;
    case ToyReply::Kind::kArray:
      for (size_t i = 0; i < reply.items.size(); ++i) {
        Flatten(reply.items[i], out);
        if (i + 1 < reply.items.size() && !out.text.empty()) {
          out.text += ' ';
        }
      }
      break;
  }
}

std::string RandomBytes(Random& random, size_t most) {
  std::string bytes;
  for (uint64_t i = random.Below(most + 1); i != 0; --i) {
    bytes += static_cast<char>(random.OneIn(3) ? random.Below(256) : '0' + random.Below(10));
  }
  return bytes;
}

std::string Score(Random& random) {
  return std::to_string(random.OneIn(2) ? random.Below(20) : random.Scaled(1, uint64_t{1} << 52));
}

Command RandomCommand(Random& random) {
  const std::string text = "t" + std::to_string(random.Below(4));
  const std::string set = "z" + std::to_string(random.Below(4));
  const std::string any = random.OneIn(20) ? set : text;
  const std::string odd = random.OneIn(20) ? text : set;
  const std::string member = "m" + std::to_string(random.Below(30));
  const std::string first = std::to_string(random.Below(40));
  const std::string last = std::to_string(random.Below(60));
  const std::string lasting = "1000000000";
  switch (random.Below(20)) {
    case 0:
      return {"GET", any};
    case 1:
      return {"SET", any, RandomBytes(random, 50), "PX", lasting};
    case 2:
      return {"SET", text, RandomBytes(random, 50), "KEEPTTL"};
    case 3:
      return {"SET", text, "x", "PX", lasting, "NX"};
    case 4:
      return {"GETRANGE", any, first, last};
    case 5:
      return {"SETRANGE", any, first, RandomBytes(random, 20)};
    case 6:
      return {"DEL", random.OneIn(2) ? any : odd};
    case 7:
      return {"TYPE", random.OneIn(2) ? any : odd};
    case 8:
      return {"PEXPIRE", random.OneIn(2) ? any : odd, lasting};
    case 9:
      return {"PERSIST", random.OneIn(2) ? any : odd};
    case 10:
    case 11:
    case 12:
      return {"ZADD", odd, Score(random), member};
    case 13:
      return {"ZREM", odd, member};
    case 14:
      return {"ZSCORE", odd, member};
    case 15:
      return random.OneIn(2) ? Command{"ZRANGE", odd, "0", "0"}
                             : Command{"ZRANGE", odd, "-1", "-1", "WITHSCORES"};
    case 16:
      return {"ZREMRANGEBYSCORE", odd, "0", Score(random)};
    case 17:
      return {"SET", any, Score(random), "PXAT", "4000000000000"};
    case 18:
      return {"INCRBY", any, Score(random)};
    default:
      return random.OneIn(2) ? Command{"ZRANGEBYSCORE", odd, "0", Score(random)}
                             : Command{"ZRANGEBYSCORE",
                                       odd,
                                       "(" + Score(random),
                                       "+inf",
                                       "WITHSCORES",
                                       "LIMIT",
                                       std::to_string(random.Below(3)),
                                       "4"};
  }
}

TEST(RedisShim, CommandsAnswerAsRedisDoes) {
  const RedisProcess redis({});
  RedisHost host({redis.port()});
  ToyRedis toy;
  toy.set_now_us(1'800'000'000'000'000);
  Random random(20260303);
  size_t calls = 0;
  while (calls < 110'000) {
    std::vector<Command> commands;
    for (int i = 0; i < 500; ++i) {
      commands.push_back(RandomCommand(random));
    }
    const std::vector<ScriptReply> real = host.Ask(commands);
    for (size_t i = 0; i < commands.size(); ++i, ++calls) {
      ScriptReply reply;
      Flatten(toy.Run(commands[i]), reply);
      ASSERT_EQ(reply.text, real[i].text) << commands[i][0] << " " << commands[i][1];
      ASSERT_EQ(reply.integers, real[i].integers) << commands[i][0] << " " << commands[i][1];
      ASSERT_EQ(reply.error, real[i].error) << commands[i][0] << " " << commands[i][1];
    }
  }
  // A time to live is there or not on both sides.
  for (const char* const key : {"t0", "t1", "t2", "t3", "z0", "z1", "z2", "z3"}) {
    const Command ask = {"PTTL", key};
    const int64_t real = host.Ask({&ask, 1})[0].integers[0];
    const int64_t shim = toy.Run(ask).integer;
    EXPECT_EQ(real < 0 ? real : 0, shim < 0 ? shim : 0) << key;
  }
}

TEST(RedisShim, NumbersArePackedAsRedisPacksThem) {
  const RedisProcess redis({});
  RedisHost host({redis.port()});
  LuaHost lua;
  Random random(20260304);
  const std::string script =
      "local a, b, c = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]) "
      "local p = struct.pack('<BI7I5dI4I2I6', a % 256, a, b % 2^40, c, b % 2^32, b % 2^16, b % "
      "2^48) "
      "local q, r, s, t, u, v, w, n = struct.unpack('<BI7I5dI4I2I6', p) "
      "redis.call('SET', 'p', a, 'PX', b % 1000000000 + 1000000) "
      "return redis.call('GET', 'p') .. '|' .. p .. '|' .. "
      "string.format('%.0f %.0f %.0f %.17g %.0f %.0f %.0f %d', q, r, s, t, u, v, w, n)";
  std::vector<Command> commands;
  for (int i = 0; i < 5000; ++i) {
    commands.push_back({"EVAL", script, "0", std::to_string(random.Scaled(1, uint64_t{1} << 53)),
                        std::to_string(random.Scaled(1, uint64_t{1} << 53)),
                        std::to_string(static_cast<double>(random.Next() % 1'000'000'007) / 7)});
  }
  const std::vector<ScriptReply> real = host.Ask(commands);
  for (size_t i = 0; i < commands.size(); ++i) {
    const std::vector<std::string> arguments(commands[i].begin() + 3, commands[i].end());
    const ScriptReply reply = lua.Eval(script, {}, arguments);
    ASSERT_EQ(reply.error, "");
    ASSERT_EQ(reply.text, real[i].text) << arguments[0];
  }
}

}  // namespace
}  // namespace weir::testing
