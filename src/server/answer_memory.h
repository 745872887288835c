// Answers to questions that carry an id, so that a client which repeats one (it did not hear the
// answer) gets the same answer again and is not charged twice.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "weir/time.h"

#include "base/byte_buffer.h"
#include "base/key_hash.h"
#include "base/mutex.h"

namespace weir::server {

class AnswerMemory {
 public:
  static constexpr Duration kLasts = std::chrono::minutes(5);
  static constexpr size_t kBytesMax = size_t{32} << 20;  // the oldest go first

  enum class Outcome : uint8_t {
    kAnswered,   // by `answer`, just now
    kRepeated,   // as before
    kDifferent,  // the id was another question's; nothing was written
  };

  // Appends to `output` what answer(output) appends, or what it appended for this id before. Two
  // questions with one id wait for one another, wherever they come in.
  template <class Answer>
  Outcome Once(std::string_view id, std::string_view question, Timestamp now,
               base::ByteBuffer& output, Answer&& answer) {
    Shard& shard = shards_[base::HashKeySeeded(id, kShardSeed) % kShards];
    const uint64_t hash = base::HashKeySeeded(question, kShardSeed);
    const base::MutexLock lock(shard.mutex);
    shard.DropEnded(now);
    if (const auto found = shard.answers.find(std::string(id)); found != shard.answers.end()) {
      if (found->second.question != hash) {
        return Outcome::kDifferent;
      }
      output.Append(found->second.bytes);
      return Outcome::kRepeated;
    }
    const size_t before = output.size();
    answer(output);
    shard.Remember(id, hash, output.view().substr(before), now);
    return Outcome::kAnswered;
  }

 private:
  struct Remembered {
    uint64_t question = 0;
    std::string bytes;
  };

  struct Shard {
    base::Mutex mutex;
    std::unordered_map<std::string, Remembered> answers WEIR_GUARDED_BY(mutex);
    std::deque<std::pair<Timestamp, std::string>> by_age WEIR_GUARDED_BY(mutex);
    size_t bytes WEIR_GUARDED_BY(mutex) = 0;

    void Remember(std::string_view id, uint64_t question, std::string_view answer, Timestamp now)
        WEIR_REQUIRES(mutex) {
      by_age.emplace_back(now, id);
      answers[std::string(id)] = {question, std::string(answer)};
      bytes += id.size() + answer.size();
      while (bytes > kBytesMax / kShards && by_age.size() > 1) {
        DropOldest();
      }
    }

    void DropEnded(Timestamp now) WEIR_REQUIRES(mutex) {
      while (!by_age.empty() && by_age.front().first + kLasts <= now) {
        DropOldest();
      }
    }

    void DropOldest() WEIR_REQUIRES(mutex) {
      const auto found = answers.find(by_age.front().second);
      bytes -= found->first.size() + found->second.bytes.size();
      answers.erase(found);
      by_age.pop_front();
    }
  };

  static constexpr size_t kShards = 64;
  static constexpr uint64_t kShardSeed = 0x77656972;

  std::array<Shard, kShards> shards_;
};

}  // namespace weir::server
