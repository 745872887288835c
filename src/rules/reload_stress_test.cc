// Ten thousand changes of the rules while two threads decide by them.
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "weir/rules.h"

#include "base/mutex.h"
#include "rules/test_rules.h"

namespace weir::rules {
namespace {

constexpr int kChanges = 10'000;

// Set k has k rules, each with a key of its own. So the number of parts tells by which set a
// request was decided, and a mix of two sets would show. Nobody comes near the limits, even
// where a thread loses its processor in the middle of a decision, which is then by an old time: the
// bursts last for half a minute and more.
std::string Rules(size_t count, int limit) {
  std::string text = "rules:\n";
  for (size_t i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    text += "  - {name: r" + n + ", per: k" + n + ", limit: " + std::to_string(limit) +
            "M/s, burst: 90000000}\n";
  }
  return text + (count == 0 ? "  []\n" : "");
}

std::string Describe(const RuleReply& reply) {
  std::string text = "version " + std::to_string(reply.version) + ", outcome " +
                     std::to_string(static_cast<int>(reply.outcome)) + ", " +
                     std::string(ToString(reply.why)) + ", problem " +
                     std::string(Explain(reply.problem)) + ":";
  for (const RulePart& part : reply.parts()) {
    text += " " + part.rule->name + " " + std::to_string(static_cast<int>(part.decision.outcome)) +
            " " + std::to_string(part.decision.remaining) + " of " +
            std::to_string(part.decision.limit) + " retry " +
            std::to_string(part.decision.retry_after.count());
  }
  return text;
}

TEST(ReloadStress, TenThousandChangesFailNoDecision) {
  std::vector<std::shared_ptr<const RuleSet>> sets;
  std::map<uint64_t, size_t> parts_by_version;
  for (size_t count = 0; count < 6; ++count) {
    // A rule that is in several sets has another quota in each, which is a change of its limiter.
    sets.push_back(MustParse(Rules(count, static_cast<int>(1 + count % 3))));
    ASSERT_NE(sets.back(), nullptr);
    parts_by_version[sets.back()->version()] = count;
  }
  const auto store = *MemoryStore::Create({.budget_bytes = size_t{8} << 20});
  const auto limiter = *RuleLimiter::Create(sets[0], store);
  std::atomic<bool> stop{false};
  base::Mutex mutex;
  std::string failures;  // guarded by it
  std::vector<std::atomic<uint64_t>> decided(2);
  std::vector<std::thread> threads;
  for (auto& mine : decided) {
    threads.emplace_back([&] {
      auto reply = std::make_unique<RuleReply>();
      const Attribute request[] = {{"k0", "a"}, {"k1", "b"}, {"k2", "c"}, {"k3", "d"}, {"k4", "e"}};
      while (!stop.load(std::memory_order_relaxed)) {
        const RuleLimiter::Pin pin = limiter->pin();
        limiter->Check(pin, {.attributes = request}, *reply);
        const auto expected = parts_by_version.find(reply->version);
        const bool good = reply->allowed() && reply->version == pin.rules().version() &&
                          expected != parts_by_version.end() &&
                          reply->parts().size() == expected->second;
        if (!good) {
          const base::MutexLock lock(mutex);
          failures += Describe(*reply) + "\n";
        }
        mine.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  // Now and then it waits for a decision, however the threads are scheduled.
  for (int i = 0; i < kChanges; ++i) {
    ASSERT_TRUE(limiter->Apply(sets[static_cast<size_t>(i * 5) % sets.size()]));
    if (i % 100 == 0) {
      const uint64_t before = decided[0] + decided[1];
      while (decided[0] + decided[1] == before) {
        std::this_thread::yield();
      }
    }
  }
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(failures, "");
  EXPECT_GE(decided[0] + decided[1], static_cast<uint64_t>(kChanges) / 100);
}

}  // namespace
}  // namespace weir::rules
