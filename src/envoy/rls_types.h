// What Envoy's rate limit service (RLS v3) is asked and what it answers, as plain types: a gRPC
// front, the /json endpoint and tests all speak to the service in these. Numbers of enumerators are
// those of the wire.
//
//   weir::envoy::RequestBuffer buffer;      // one a connection or thread, used again
//   buffer.Begin("mongo_cps", hits_addend);
//   buffer.AddDescriptor();
//   buffer.AddEntry("database", "users");
//   service.ShouldRateLimit(buffer.request(), response);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/time.h"

#include "envoy/metadata_value.h"
#include "envoy/unit.h"

namespace weir::envoy {

struct Entry {
  std::string_view key;
  std::string_view value;  // may be empty
};

// A limit that the client brings along; the configured one is then not looked at.
struct LimitOverride {
  uint32_t requests_per_unit = 0;
  Unit unit = Unit::kUnknown;
};

struct Descriptor {
  std::span<const Entry> entries;
  std::optional<LimitOverride> limit;
  std::optional<uint64_t> hits_addend;  // beats that of the request; 0 looks and counts nothing
};

struct Request {
  std::string_view domain;
  std::span<const Descriptor> descriptors;
  uint32_t hits_addend = 0;  // 0 stands for 1
};

// Builds a Request piece by piece. All text is borrowed: it must stay until the answer is there.
// Keeps its memory from one request to the next.
class RequestBuffer {
 public:
  void Begin(std::string_view domain = {}, uint32_t hits_addend = 0) {
    request_ = {domain, {}, hits_addend};
    entries_.clear();
    descriptors_.clear();
    first_entries_.clear();
  }
  void set_domain(std::string_view domain) { request_.domain = domain; }
  void set_hits_addend(uint32_t hits) { request_.hits_addend = hits; }

  // What is added from here on belongs to this descriptor, whose limit and hits can be set through
  // what is returned, until the next call.
  Descriptor& AddDescriptor() {
    first_entries_.push_back(entries_.size());
    return descriptors_.emplace_back();
  }
  // REQUIRES: a descriptor.
  void AddEntry(std::string_view key, std::string_view value) { entries_.push_back({key, value}); }

  // Good until the next Begin.
  [[nodiscard]] const Request& request() {
    for (size_t i = 0; i < descriptors_.size(); ++i) {
      const size_t end = i + 1 < descriptors_.size() ? first_entries_[i + 1] : entries_.size();
      descriptors_[i].entries =
          std::span<const Entry>(entries_).subspan(first_entries_[i], end - first_entries_[i]);
    }
    request_.descriptors = descriptors_;
    return request_;
  }

 private:
  Request request_;
  std::vector<Entry> entries_;
  std::vector<Descriptor> descriptors_;
  std::vector<size_t> first_entries_;
};

enum class Code : uint8_t { kUnknown = 0, kOk = 1, kOverLimit = 2 };

[[nodiscard]] std::string_view ToString(Code code) noexcept;  // OK, OVER_LIMIT

struct CurrentLimit {
  uint32_t requests_per_unit = 0;
  Unit unit = Unit::kUnknown;  // of a window that is no unit: kUnknown
  std::string name;            // empty: none
};

struct DescriptorStatus {
  Code code = Code::kOk;
  bool has_limit = false;  // whether current_limit and duration_until_reset are there
  CurrentLimit current_limit;
  uint32_t limit_remaining = 0;
  Duration duration_until_reset{};  // whole seconds for every limit by unit
};

struct Header {
  std::string key;
  std::string value;
};

// Why a call was not answered.
enum class Failure : uint8_t {
  kNone,
  kRequest,  // the question was wrong, or nothing is configured: gRPC status UNKNOWN, as the
             // original gives it
  kStore,    // counting failed: gRPC status UNAVAILABLE, so that Envoy's failure mode decides
};

// Used again from call to call, so that nothing is allocated once it has grown.
struct Response {
  Failure failure = Failure::kNone;
  std::string error;  // the gRPC message; only with a failure, and then nothing below counts

  Code overall_code = Code::kUnknown;
  std::vector<DescriptorStatus> statuses;  // as many as descriptors, in their order
  std::vector<Header> response_headers_to_add;
  bool has_dynamic_metadata = false;
  MetadataValue dynamic_metadata;  // a struct
};

}  // namespace weir::envoy
