// Asks a shared store without waiting, as a program does that embeds weir: always as many questions
// under way, or so many a second sent on time. Everything runs in this process: pin it to one
// processor and Redis to another.
// usage: redis_load URL SECONDS IN_FLIGHT RATE KEYS RULES; RATE 0: no schedule; prints JSON.
//
// RULES limits are asked at once, all or nothing, each for a key of its own. Latency counts from
// when a question should have left.
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weir/redis.h"

namespace {

using SteadyClock = std::chrono::steady_clock;

struct Shape {
  double seconds = 1;
  unsigned in_flight = 1;
  double rate = 0;
  uint64_t keys = 1;
  unsigned rules = 1;
};

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "redis_load: %s\n", what.c_str());
  std::exit(1);
}

int64_t NowNs() {
  return SteadyClock::now().time_since_epoch().count();
}

double CpuSeconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// All of it is the store's thread's, but for `stop` and `open`, and what Send does on a schedule.
class Load {
 public:
  Load(const Shape& shape, std::shared_ptr<weir::SharedStore> store)
      : shape_(shape), store_(std::move(store)) {
    const auto quota = weir::Quota::Parse("100/s burst 20");
    for (unsigned i = 0; i < shape_.rules; ++i) {
      const auto bound = store_->Bind(*quota, i + 1);
      if (!bound) {
        Fail(bound.error().message);
      }
      quotas_.push_back(*bound);
    }
    latencies_ns_.reserve(size_t{1} << 24);
    questions_.resize(shape_.in_flight);
    for (Question& question : questions_) {
      question.asks.resize(shape_.rules);
      question.keys.resize(shape_.rules);
    }
  }

  void RunClosed() {
    for (Question& question : questions_) {
      Send(question, NowNs());
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(shape_.seconds));
    stop_ = true;
    WaitForRest();
  }

  // What is due is sent every kTickNs: to sleep once a question would cost more than the question.
  // A question that finds none free is not sent, and counts as an error.
  void RunOnTime() {
    constexpr int64_t kTickNs = 50'000;
    ::prctl(PR_SET_TIMERSLACK, 1UL);  // woken on time, not within another 50 us
    const auto gap_ns = static_cast<int64_t>(1e9 / shape_.rate);
    const auto count = static_cast<int64_t>(shape_.seconds * shape_.rate);
    const int64_t begin_ns = NowNs();
    int64_t woken_ns = begin_ns;
    stop_ = true;  // nothing follows an answer
    for (int64_t i = 0; i < count; ++i) {
      const int64_t due_ns = begin_ns + i * gap_ns;
      if (due_ns > woken_ns) {
        const int64_t until_ns = std::max(due_ns, woken_ns + kTickNs);
        std::this_thread::sleep_until(SteadyClock::time_point(SteadyClock::duration(until_ns)));
        woken_ns = NowNs();
      }
      Question& question = questions_[static_cast<size_t>(i) % questions_.size()];
      if (question.busy.load(std::memory_order_acquire)) {
        ++unsent_;
      } else {
        Send(question, due_ns);
      }
    }
    WaitForRest();
  }

  void Print(double took, double cpu_seconds) {
    std::sort(latencies_ns_.begin(), latencies_ns_.end());
    const size_t answers = latencies_ns_.size();
    if (answers == 0) {
      Fail("no answers");
    }
    const auto at_us = [&](double part) {
      const auto index = static_cast<size_t>(part * static_cast<double>(answers));
      return static_cast<double>(latencies_ns_[std::min(index, answers - 1)]) / 1000;
    };
    const auto late = latencies_ns_.end() -
                      std::upper_bound(latencies_ns_.begin(), latencies_ns_.end(), 2'000'000U);
    std::printf(
        "{\"answers\": %zu, \"answers_per_second\": %.1f, \"denied\": %llu, \"not_by_store\": "
        "%llu, \"unsent\": %llu, \"over_2ms\": %.5f, \"cpu_us\": %.3f, \"latency_us\": {\"p50\": "
        "%.1f, \"p99\": %.1f, \"p99.9\": %.1f}}\n",
        answers, static_cast<double>(answers) / took, static_cast<unsigned long long>(denied_),
        static_cast<unsigned long long>(not_by_store_), static_cast<unsigned long long>(unsent_),
        static_cast<double>(late) / static_cast<double>(answers),
        1e6 * cpu_seconds / static_cast<double>(answers), at_us(0.5), at_us(0.99), at_us(0.999));
  }

 private:
  struct Question {
    Question() = default;
    Question(Question&&) noexcept {}  // for resize, while they are new

    std::vector<weir::SharedAsk> asks;
    std::vector<std::string> keys;
    weir::SharedRequest request;
    int64_t due_ns = 0;
    std::atomic<bool> busy{false};
  };

  void Send(Question& question, int64_t due_ns) {
    for (unsigned i = 0; i < shape_.rules; ++i) {
      random_ = random_ * 6364136223846793005U + 1442695040888963407U;
      question.keys[i] = "key:" + std::to_string((random_ >> 33) % shape_.keys);
      question.asks[i] = {.quota = quotas_[i], .key = question.keys[i]};
    }
    question.request.asks = question.asks;
    question.due_ns = due_ns;
    question.busy.store(true, std::memory_order_relaxed);
    open_.fetch_add(1, std::memory_order_relaxed);
    store_->DecideThen(question.request, [this, &question] { OnAnswer(question); });
  }

  void OnAnswer(Question& question) {
    const int64_t now_ns = NowNs();
    latencies_ns_.push_back(
        static_cast<uint32_t>(std::min<int64_t>(now_ns - question.due_ns, ~0U)));
    for (const weir::SharedAsk& ask : question.asks) {
      denied_ += ask.decision.allowed() ? 0 : 1;
      not_by_store_ += ask.decision.basis == weir::Basis::kStore ? 0 : 1;
    }
    if (!stop_) {
      Send(question, now_ns);
    } else {
      question.busy.store(false, std::memory_order_release);
    }
    open_.fetch_sub(1, std::memory_order_release);
  }

  void WaitForRest() {
    while (open_.load(std::memory_order_acquire) != 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  const Shape shape_;
  const std::shared_ptr<weir::SharedStore> store_;
  std::vector<const weir::SharedQuota*> quotas_;
  std::vector<Question> questions_;
  std::vector<uint32_t> latencies_ns_;
  uint64_t random_ = 1;
  uint64_t denied_ = 0;
  uint64_t not_by_store_ = 0;
  uint64_t unsent_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> open_{0};
};

}  // namespace

int main(int count, char** words) {
  if (count != 7) {
    Fail("usage: redis_load URL SECONDS IN_FLIGHT RATE KEYS RULES");
  }
  const Shape shape{.seconds = std::atof(words[2]),
                    .in_flight = static_cast<unsigned>(std::atoi(words[3])),
                    .rate = std::atof(words[4]),
                    .keys = std::strtoull(words[5], nullptr, 10),
                    .rules = static_cast<unsigned>(std::atoi(words[6]))};
  if (shape.in_flight == 0 || shape.keys == 0 || shape.rules == 0) {
    Fail("IN_FLIGHT, KEYS and RULES are at least 1");
  }
  weir::RedisOptions options;
  options.url = words[1];
  options.fleet_secret = "bench";
  options.start_wait = std::chrono::seconds(5);
  auto store = weir::RedisStore::Create(options);
  if (!store) {
    Fail(store.error().message);
  }
  Load load(shape, *store);
  const double cpu_before = CpuSeconds();
  const int64_t begin_ns = NowNs();
  if (shape.rate > 0) {
    load.RunOnTime();
  } else {
    load.RunClosed();
  }
  load.Print(static_cast<double>(NowNs() - begin_ns) / 1e9, CpuSeconds() - cpu_before);
}
