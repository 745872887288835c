// What a RlsService is made of; rls_service.cc changes it, rls_check.cc decides with it.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/reader_gate.h"
#include "envoy/counter_table.h"
#include "envoy/descriptor_config.h"
#include "envoy/rls_service.h"
#include "envoy/rls_stats.h"

namespace weir::envoy {

struct RlsService::State {
  State(const RlsOptions& given, const Clock& given_clock) : options(given), clock(given_clock) {}

  // By this configuration; none: there is none yet.
  void Decide(const DescriptorConfig* by, const Request& request, Response& response);

  const RlsOptions options;
  const Clock& clock;
  RlsStats stats;
  std::unique_ptr<CounterTable> counters;
  std::shared_ptr<MemoryStore> own_store;  // of limits with an algorithm of their own

  // Readers are inside the gate; it is changed while none is.
  mutable base::ReaderGate gate;
  std::shared_ptr<DescriptorConfig> config;

  // With a shared store: the windows of each unit there.
  std::array<const SharedQuota*, kUnits> windows{};

  base::Mutex mutex;
  // By place and variant, so that a reload finds those of the limits that stay.
  std::map<std::string, std::shared_ptr<Limiter>> limiters WEIR_GUARDED_BY(mutex);
};

}  // namespace weir::envoy
