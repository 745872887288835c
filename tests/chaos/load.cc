#include "tests/chaos/load.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <thread>

#include "tests/chaos/probe.h"

namespace weir::chaos {

namespace {

constexpr int64_t kTick = kMs;

}  // namespace

class Load::Source {
 public:
  Source(const LoadOptions& options, size_t node)
      : options_(options),
        store_(*options.nodes[node]),
        quota_(*store_.Bind(*Quota::Parse(options.quota), options.scope)),
        node_(static_cast<uint8_t>(node)),
        gap_ns_(1e9 * static_cast<double>(options.nodes.size()) / options.per_second),
        thread_([this] { Run(); }) {}

  ~Source() { Stop(); }

  std::vector<Sample> Stop() {
    ends_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
    std::unique_lock lock(mutex_);
    all_told_.wait(lock, [this] { return under_way_ == 0; });
    return std::move(samples_);
  }

 private:
  struct Question {
    SharedAsk ask;
    SharedRequest request;
    std::string id;
    Sample sample;
  };

  void Run() {
    const int64_t began = NowNs();
    uint64_t asked = 0;
    for (int64_t now = began; !ends_; now = NowNs()) {
      // Who was kept from asking asks for all that is due, as clients would.
      while (static_cast<double>(asked) * gap_ns_ <= static_cast<double>(now - began) && MayAsk()) {
        Ask(asked++);
      }
      WaitUntil(now + kTick);
    }
  }

  bool MayAsk() {
    const std::lock_guard lock(mutex_);
    return !ends_ && under_way_ < options_.most_under_way;
  }

  void Ask(uint64_t number) {
    Question* question = nullptr;
    {
      const std::lock_guard lock(mutex_);
      ++under_way_;
      if (idle_.empty()) {
        question = &questions_.emplace_back();
      } else {
        question = idle_.back();
        idle_.pop_back();
      }
    }
    // Each node begins with another key.
    const auto key =
        static_cast<uint32_t>((number + node_ * options_.keys.size() / 3) % options_.keys.size());
    question->ask = {.quota = quota_, .key = options_.keys[key], .on_failure = options_.on_failure};
    question->request = {.asks = {&question->ask, 1}};
    if (options_.ids) {
      question->id = std::to_string(node_) + "/" + std::to_string(number);
      question->request.id = question->id;
    }
    question->sample = {.start_ns = NowNs(), .key = key, .node = node_};
    store_.DecideThen(question->request, [this, question] { Answered(*question); });
  }

  void Answered(Question& question) {
    Sample sample = question.sample;
    sample.end_ns = NowNs();
    sample.allowed = question.ask.decision.allowed();
    sample.basis = question.ask.decision.basis;
    sample.trouble = question.ask.trouble;
    const std::lock_guard lock(mutex_);
    samples_.push_back(sample);
    idle_.push_back(&question);
    if (--under_way_ == 0) {
      all_told_.notify_all();
    }
  }

  const LoadOptions options_;
  shared::FleetStore& store_;
  const SharedQuota* const quota_;
  const uint8_t node_;
  const double gap_ns_;
  std::atomic<bool> ends_{false};
  std::mutex mutex_;
  std::condition_variable all_told_;
  uint64_t under_way_ = 0;
  std::deque<Question> questions_;
  std::vector<Question*> idle_;
  std::vector<Sample> samples_;
  std::thread thread_;
};

Load::Load(const LoadOptions& options) {
  for (size_t node = 0; node < options.nodes.size(); ++node) {
    sources_.push_back(std::make_unique<Source>(options, node));
  }
}

Load::~Load() = default;

std::vector<Sample> Load::Stop() {
  std::vector<Sample> all;
  for (const auto& source : sources_) {
    const std::vector<Sample> samples = source->Stop();
    all.insert(all.end(), samples.begin(), samples.end());
  }
  return all;
}

double Overshoot(std::vector<Sample> samples, double burst, double per_second) {
  std::erase_if(samples, [](const Sample& sample) { return !sample.allowed; });
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.start_ns < b.start_ns; });
  // The moment of a decision is not known better than this; the wider interval is the fair one.
  double most = -std::numeric_limits<double>::infinity();
  double best_begin = most;
  double count = 0;
  for (const Sample& sample : samples) {
    best_begin =
        std::max(best_begin, per_second * static_cast<double>(sample.start_ns) / 1e9 - count);
    count += 1;
    most =
        std::max(most, best_begin + count - per_second * static_cast<double>(sample.end_ns) / 1e9);
  }
  return most - burst;
}

int64_t ExactFrom(std::vector<Sample> samples, int64_t from_ns, int64_t until_ns) {
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.end_ns < b.end_ns; });
  int64_t since = from_ns;
  for (const Sample& sample : samples) {
    if (sample.start_ns < from_ns || sample.end_ns > until_ns) {
      continue;
    }
    if (!sample.by_store()) {
      since = sample.end_ns;
    } else if (since != from_ns && sample.end_ns - since >= kSecond) {
      return since;
    }
  }
  return until_ns;
}

std::vector<Sample> OfKey(const std::vector<Sample>& samples, uint32_t key) {
  std::vector<Sample> some;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(some),
               [key](const Sample& sample) { return sample.key == key; });
  return some;
}

uint64_t Admitted(const std::vector<Sample>& samples) {
  return static_cast<uint64_t>(std::count_if(samples.begin(), samples.end(),
                                             [](const Sample& sample) { return sample.allowed; }));
}

int64_t Percentile(const std::vector<Sample>& samples, double share) {
  if (samples.empty()) {
    return 0;
  }
  std::vector<int64_t> times;
  for (const Sample& sample : samples) {
    times.push_back(sample.took_ns());
  }
  const auto at = static_cast<ptrdiff_t>(share * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), times.begin() + at, times.end());
  return times[static_cast<size_t>(at)];
}

}  // namespace weir::chaos
