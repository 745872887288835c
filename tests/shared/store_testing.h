// Stores on a real Redis, for tests beside this file.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weir/redis.h"

#include "shared/fleet_store.h"
#include "testing/redis_process.h"

namespace weir::shared {

inline std::string UrlOf(const testing::RedisProcess& redis) {
  return "redis://" + redis.address();
}

// Patient, since tests share processors with others.
inline RedisOptions Patient(const std::string& url) {
  return {.url = url,
          .timeout = std::chrono::seconds(5),
          .fleet_secret = "test",
          .memory_bytes = size_t{1} << 20,
          .start_wait = std::chrono::seconds(10)};
}

inline std::shared_ptr<FleetStore> Open(const RedisOptions& options) {
  auto store = FleetStore::Create(options);
  if (!store) {
    std::fprintf(stderr, "%s\n", store.error().message.c_str());
    std::abort();
  }
  return *store;
}

inline const SharedQuota* Bound(FleetStore& store, const char* text, uint64_t scope = 1) {
  return *store.Bind(*Quota::Parse(text), scope);
}

struct AskOptions {
  Cost cost = 1;
  ChargeMode mode = ChargeMode::kAdmit;
  OnStoreFailure on_failure = OnStoreFailure::kLocal;
  std::string id{};
  SharedReceipt* receipt = nullptr;
  StoreTrouble* trouble = nullptr;
};

inline Decision AskOne(FleetStore& store, const SharedQuota* quota, std::string_view key,
                       const AskOptions& options = {}) {
  SharedAsk ask{.quota = quota, .key = key, .cost = options.cost, .on_failure = options.on_failure};
  SharedRequest request{.asks = {&ask, 1},
                        .mode = options.mode,
                        .id = options.id,
                        .keep_receipts = options.receipt != nullptr};
  store.Decide(request);
  if (options.receipt != nullptr) {
    *options.receipt = ask.receipt;
  }
  if (options.trouble != nullptr) {
    *options.trouble = ask.trouble;
  }
  return ask.decision;
}

// Looks again and again; false after a minute.
inline bool Eventually(const std::function<bool()>& happened) {
  for (int i = 0; i < 6000; ++i) {
    if (happened()) {
      return true;
    }
    ::poll(nullptr, 0, 10);
  }
  return false;
}

// What a store told about itself.
class Told {
 public:
  [[nodiscard]] std::function<void(const RedisEvent&)> hook() {
    return [this](const RedisEvent& event) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(std::string(event.trouble ? "trouble " : "news ") +
                       std::string(event.cause) + ": " + std::string(event.text));
    };
  }
  [[nodiscard]] std::string all() const {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const std::string& line : lines_) {
      text += line + '\n';
    }
    return text;
  }
  [[nodiscard]] size_t Count(std::string_view part) const {
    const std::lock_guard lock(mutex_);
    size_t count = 0;
    for (const std::string& line : lines_) {
      count += line.find(part) != std::string::npos ? 1 : 0;
    }
    return count;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace weir::shared
