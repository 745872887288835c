#include "server/answer_memory.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir::server {
namespace {

using Outcome = AnswerMemory::Outcome;

constexpr Timestamp kStart = Timestamp(std::chrono::hours(1));

TEST(AnswerMemory, GivesTheSameAnswerToTheSameQuestion) {
  AnswerMemory memory;
  base::ByteBuffer output;
  int asked = 0;
  const auto answer = [&](base::ByteBuffer& out) {
    ++asked;
    out.Append("answer " + std::to_string(asked));
  };
  output.Append("before ");
  EXPECT_EQ(memory.Once("id", "q", kStart, output, answer), Outcome::kAnswered);
  EXPECT_EQ(memory.Once("id", "q", kStart, output, answer), Outcome::kRepeated);
  EXPECT_EQ(memory.Once("other", "q", kStart, output, answer), Outcome::kAnswered);
  EXPECT_EQ(output.view(), "before answer 1answer 1answer 2");
}

TEST(AnswerMemory, DoesNotAnswerAnotherQuestion) {
  AnswerMemory memory;
  base::ByteBuffer output;
  memory.Once("id", "q", kStart, output, [](base::ByteBuffer& out) { out.Append('a'); });
  EXPECT_EQ(memory.Once("id", "other", kStart, output, [](base::ByteBuffer&) { FAIL(); }),
            Outcome::kDifferent);
  EXPECT_EQ(output.view(), "a");
}

TEST(AnswerMemory, ForgetsAfterAWhile) {
  AnswerMemory memory;
  base::ByteBuffer output;
  const auto answer = [](base::ByteBuffer& out) { out.Append('a'); };
  memory.Once("id", "q", kStart, output, answer);
  const Timestamp end = kStart + AnswerMemory::kLasts;
  EXPECT_EQ(memory.Once("id", "q", end - Duration(1), output, answer), Outcome::kRepeated);
  EXPECT_EQ(memory.Once("id", "q", end, output, answer), Outcome::kAnswered);
}

TEST(AnswerMemory, IsBounded) {
  AnswerMemory memory;
  base::ByteBuffer output;
  const std::string large(64 << 10, 'x');
  const auto answer = [&](base::ByteBuffer& out) { out.Append(large); };
  const size_t most = 4 * AnswerMemory::kBytesMax / large.size();
  for (size_t i = 0; i < most; ++i) {
    output.Clear();
    memory.Once(std::to_string(i), "q", kStart, output, answer);
  }
  size_t kept = 0;
  for (size_t i = 0; i < most; ++i) {
    output.Clear();
    kept += static_cast<size_t>(memory.Once(std::to_string(i), "q", kStart, output,
                                            [](base::ByteBuffer&) {}) == Outcome::kRepeated);
  }
  EXPECT_LE(kept * large.size(), AnswerMemory::kBytesMax);
}

TEST(AnswerMemory, ManyAtOnceAreAnsweredOnce) {
  AnswerMemory memory;
  std::atomic<int> asked{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      base::ByteBuffer output;
      for (int j = 0; j < 1000; ++j) {
        memory.Once(std::to_string(j), "q", kStart, output, [&](base::ByteBuffer& out) {
          asked.fetch_add(1);
          out.Append('a');
        });
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(asked.load(), 1000);
}

}  // namespace
}  // namespace weir::server
