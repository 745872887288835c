#include "envoy/rls_stats.h"

#include <algorithm>
#include <cstdio>

#include "base/thread_index.h"

namespace weir::envoy {

namespace {

constexpr std::string_view kLimits = "ratelimit.service.rate_limit.";
constexpr std::string_view kService = "ratelimit.service.";
constexpr std::string_view kCall = "ratelimit.service.call.should_rate_limit.";
constexpr std::string_view kServer = "ratelimit_server.";

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// The end of an IPv4 address that begins here, or `begin`.
size_t EndOfAddress(std::string_view text, size_t begin) {
  size_t at = begin;
  for (int part = 0; part < 4; ++part) {
    size_t digits = 0;
    while (digits < 3 && at < text.size() && IsDigit(text[at])) {
      ++at;
      ++digits;
    }
    if (digits == 0) {
      return begin;
    }
    if (part < 3) {
      if (at == text.size() || text[at] != '.') {
        return begin;
      }
      ++at;
    }
  }
  return at;
}

std::string LabelText(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += c == '\\' ? "\\\\" : c == '"' ? "\\\"" : c == '\n' ? "\\n" : std::string(1, c);
  }
  return result;
}

std::string NumberText(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.9g", number);
  return text.data();
}

}  // namespace

std::string SanitizeStatName(std::string_view name) {
  std::string result(name);
  std::replace_if(result.begin(), result.end(), [](char c) { return c == ':' || c == '|'; }, '_');
  for (size_t i = 0; i < result.size();) {
    const size_t end = EndOfAddress(result, i);
    std::replace(result.begin() + static_cast<ptrdiff_t>(i),
                 result.begin() + static_cast<ptrdiff_t>(end), '.', '_');
    i = std::max(end, i + 1);
  }
  return result;
}

void StatPath::Add(const HitCounts& hits) noexcept {
  // Relaxed throughout: each number stands alone.
  Cell& cell = cells_[base::ThreadIndex() % kStripes];
  constexpr auto kAll = HitCounts::Fields();
  for (size_t i = 0; i < kFields; ++i) {
    if (const uint64_t count = hits.*kAll[i].second; count != 0) {
      cell.counts[i].fetch_add(count, std::memory_order_relaxed);
    }
  }
}

HitCounts StatPath::Sum() const noexcept {
  HitCounts sum;
  constexpr auto kAll = HitCounts::Fields();
  for (const Cell& cell : cells_) {
    for (size_t i = 0; i < kFields; ++i) {
      sum.*kAll[i].second += cell.counts[i].load(std::memory_order_relaxed);
    }
  }
  return sum;
}

RlsStats::Shard& RlsStats::ShardOf(std::string_view key) const noexcept {
  return shards_[TextHash{}(key) % kShards];
}

StatPath& RlsStats::Register(std::string_view key) {
  const base::MutexLock lock(mutex_);
  std::string name = SanitizeStatName(key);
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) {
    return *found->second;
  }
  StatPath& path = paths_.emplace_back(name);
  by_name_.emplace(std::move(name), &path);
  return path;
}

StatPath& RlsStats::PathOf(std::string_view key) {
  Shard& shard = ShardOf(key);
  const base::MutexLock lock(shard.mutex);
  const auto found = shard.by_key.find(key);
  if (found != shard.by_key.end()) {
    return *found->second;
  }
  StatPath& path = Register(key);
  shard.by_key.emplace(key, &path);
  return path;
}

StatPath* RlsStats::RuntimePathOf(std::string_view key) {
  Shard& shard = ShardOf(key);
  const base::MutexLock lock(shard.mutex);
  const auto found = shard.by_key.find(key);
  if (found != shard.by_key.end()) {
    return found->second;
  }
  if (runtime_paths_.fetch_add(1, std::memory_order_relaxed) >= kMaxRuntimePaths) {
    runtime_paths_.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  StatPath& path = Register(key);
  shard.by_key.emplace(key, &path);
  return &path;
}

void RlsStats::CountUnknownDomain(std::string_view domain) {
  const base::MutexLock lock(mutex_);
  const auto found = unknown_domains_.find(domain);
  if (found != unknown_domains_.end()) {
    ++found->second;
  } else if (unknown_domains_.size() < kMaxDomains) {
    unknown_domains_.emplace(domain, 1);
  }
}

RlsStats::Calls* RlsStats::CallsOf(std::string_view method) {
  if (method == kShouldRateLimit) {
    return &should_rate_limit_;
  }
  const base::MutexLock lock(mutex_);
  auto found = calls_.find(method);
  if (found == calls_.end()) {
    if (calls_.size() == kMaxMethods) {
      return nullptr;
    }
    found = calls_.try_emplace(std::string(method)).first;
  }
  return &found->second;  // nodes of a map stay where they are
}

void RlsStats::CountCall(std::string_view method, Duration took, uint64_t count) {
  Calls* const calls = CallsOf(method);
  if (calls == nullptr) {
    return;
  }
  const double seconds = std::chrono::duration<double>(took).count();
  const auto bucket = static_cast<size_t>(
      std::lower_bound(kSecondsUpTo.begin(), kSecondsUpTo.end(), seconds) - kSecondsUpTo.begin());
  calls->up_to[bucket].fetch_add(count, std::memory_order_relaxed);
  calls->total.fetch_add(count, std::memory_order_relaxed);
  calls->took_ns.fetch_add(count * static_cast<uint64_t>(std::max<int64_t>(took.count(), 0)),
                           std::memory_order_relaxed);
}

std::map<std::string, uint64_t> RlsStats::Counters() const {
  std::map<std::string, uint64_t> all;
  const auto add = [&all](std::string_view prefix, std::string_view name,
                          const std::atomic<uint64_t>& count) {
    all[std::string(prefix) + std::string(name)] = count.load(std::memory_order_relaxed);
  };
  add(kCall, "redis_error", redis_error);
  add(kCall, "service_error", service_error);
  add(kService, "config_load_success", config_load_success);
  add(kService, "config_load_error", config_load_error);
  add(kService, "global_shadow_mode", global_shadow_mode);
  const base::MutexLock lock(mutex_);
  for (const StatPath& path : paths_) {
    const HitCounts hits = path.Sum();
    for (const auto& [field, count] : HitCounts::Fields()) {
      all[std::string(kLimits) + path.name() + "." + std::string(field)] = hits.*count;
    }
  }
  for (const auto& [domain, count] : unknown_domains_) {
    all[std::string(kLimits) + SanitizeStatName(domain) + ".domain_not_found"] += count;
  }
  ForEachMethod([&](const std::string& method, const Calls& calls) {
    add(kServer, method + ".total_requests", calls.total);
  });
  return all;
}

std::string RlsStats::Text() const {
  std::string text;
  for (const auto& [name, count] : Counters()) {
    text += name + ": " + std::to_string(count) + "\n";
  }
  return text;
}

std::string RlsStats::Prometheus() const {
  // Several paths may come to the same labels: the mapping keeps two keys.
  std::map<std::string, std::map<std::string, uint64_t>> families;
  const auto relaxed = std::memory_order_relaxed;
  families["ratelimit_service_config_load_success"][""] = config_load_success.load(relaxed);
  families["ratelimit_service_config_load_error"][""] = config_load_error.load(relaxed);
  families["ratelimit_service_global_shadow_mode"][""] = global_shadow_mode.load(relaxed);
  auto& errors = families["ratelimit_service_should_rate_limit_error"];
  errors["err_type=\"redis_error\""] = redis_error.load(relaxed);
  errors["err_type=\"service_error\""] = service_error.load(relaxed);
  std::string times;
  const base::MutexLock lock(mutex_);
  for (const StatPath& path : paths_) {
    const std::string_view name = path.name();
    const size_t domain_end = name.find('.');
    const size_t first_end = name.find('.', std::min(domain_end, name.size() - 1) + 1);
    std::string labels = "domain=\"" + LabelText(name.substr(0, domain_end)) + "\"";
    if (domain_end != std::string_view::npos) {
      labels +=
          ",key1=\"" + LabelText(name.substr(domain_end + 1, first_end - domain_end - 1)) + "\"";
    }
    if (first_end != std::string_view::npos) {
      const size_t second_end = name.find('.', first_end + 1);
      labels +=
          ",key2=\"" + LabelText(name.substr(first_end + 1, second_end - first_end - 1)) + "\"";
    }
    const HitCounts hits = path.Sum();
    for (const auto& [field, count] : HitCounts::Fields()) {
      families["ratelimit_service_rate_limit_" + std::string(field)][labels] += hits.*count;
    }
  }
  for (const auto& [domain, count] : unknown_domains_) {
    families["ratelimit_service_rate_limit_domain_not_found"]
            ["domain=\"" + LabelText(SanitizeStatName(domain)) + "\""] += count;
  }
  ForEachMethod([&](const std::string& method, const Calls& calls) {
    const std::string label = "grpc_method=\"" + LabelText(method) + "\"";
    families["ratelimit_service_total_requests"][label] = calls.total.load(relaxed);
    constexpr std::string_view kName = "ratelimit_service_response_time_seconds";
    uint64_t so_far = 0;
    for (size_t i = 0; i < calls.up_to.size(); ++i) {
      so_far += calls.up_to[i].load(relaxed);
      times += std::string(kName) + "_bucket{" + label + ",le=\"" +
               (i < kSecondsUpTo.size() ? NumberText(kSecondsUpTo[i]) : "+Inf") + "\"} " +
               std::to_string(so_far) + "\n";
    }
    times += std::string(kName) + "_sum{" + label + "} " +
             NumberText(static_cast<double>(calls.took_ns.load(relaxed)) / 1e9) + "\n";
    times += std::string(kName) + "_count{" + label + "} " + std::to_string(so_far) + "\n";
  });
  std::string text;
  for (const auto& [family, values] : families) {
    text += "# TYPE " + family + " counter\n";
    for (const auto& [labels, count] : values) {
      text +=
          family + (labels.empty() ? "" : "{" + labels + "}") + " " + std::to_string(count) + "\n";
    }
  }
  if (!times.empty()) {
    text += "# TYPE ratelimit_service_response_time_seconds histogram\n" + times;
  }
  return text;
}

std::string StatsdReport::Line(const std::string& name, const std::string& value) const {
  std::string tags;
  for (const auto& [tag, text] : options_.extra_tags) {
    tags += options_.dog_statsd ? (tags.empty() ? "|#" : ",") + tag + ":" + text
                                : ".__" + tag + "=" + text;
  }
  return options_.dog_statsd ? name + ":" + value + tags : name + tags + ":" + value;
}

std::vector<std::string> StatsdReport::Next(const RlsStats& stats) {
  std::vector<std::string> lines;
  const auto since = [this](const std::string& name, uint64_t count) {
    const uint64_t before = std::exchange(last_[name], count);
    return count - before;
  };
  for (const auto& [name, count] : stats.Counters()) {
    if (const uint64_t more = since(name, count); more != 0) {
      lines.push_back(Line(name, std::to_string(more) + "|c"));
    }
  }
  // A time stands for all calls of its bucket, which a sample rate says.
  const base::MutexLock lock(stats.mutex_);
  stats.ForEachMethod([&](const std::string& method, const RlsStats::Calls& calls) {
    const std::string name = std::string(kServer) + method + ".response_time";
    for (size_t i = 0; i < calls.up_to.size(); ++i) {
      const uint64_t more =
          since(name + "/" + std::to_string(i), calls.up_to[i].load(std::memory_order_relaxed));
      if (more != 0) {
        const double seconds =
            RlsStats::kSecondsUpTo[std::min(i, RlsStats::kSecondsUpTo.size() - 1)];
        const std::string rate = more == 1 ? "" : "|@" + NumberText(1 / static_cast<double>(more));
        lines.push_back(Line(name, NumberText(seconds * 1000) + "|ms" + rate));
      }
    }
  });
  return lines;
}

}  // namespace weir::envoy
