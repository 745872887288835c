#include "server/rls_method.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <variant>

#include <envoy/service/ratelimit/v3/rls.pb.h>
#include <google/protobuf/arena.h>

#include "codec/grpc/message.h"

namespace weir::server {

namespace {

namespace wire = ::envoy::service::ratelimit::v3;
using codec::grpc::Call;
using codec::grpc::Code;
using codec::grpc::Status;

// A request beyond this does not keep its memory.
constexpr size_t kKeptBytes = size_t{64} << 10;

void Write(const envoy::MetadataValue& from, google::protobuf::Value& to);

void Write(const envoy::MetadataValue::Fields& from, google::protobuf::Struct& to) {
  for (const auto& [name, value] : from) {
    Write(value, (*to.mutable_fields())[name]);
  }
}

void Write(const envoy::MetadataValue& from, google::protobuf::Value& to) {
  if (const bool* const boolean = std::get_if<bool>(&from.value)) {
    to.set_bool_value(*boolean);
  } else if (const double* const number = std::get_if<double>(&from.value)) {
    to.set_number_value(*number);
  } else if (const std::string* const text = std::get_if<std::string>(&from.value)) {
    to.set_string_value(*text);
  } else if (const auto* const list = std::get_if<envoy::MetadataValue::List>(&from.value)) {
    google::protobuf::ListValue& into = *to.mutable_list_value();
    for (const envoy::MetadataValue& one : *list) {
      Write(one, *into.add_values());
    }
  } else if (const auto* const fields = std::get_if<envoy::MetadataValue::Fields>(&from.value)) {
    Write(*fields, *to.mutable_struct_value());
  } else {
    to.set_null_value(google::protobuf::NULL_VALUE);
  }
}

void Write(const envoy::DescriptorStatus& from, wire::RateLimitResponse::DescriptorStatus& to) {
  to.set_code(static_cast<wire::RateLimitResponse::Code>(from.code));
  to.set_limit_remaining(from.limit_remaining);
  if (!from.has_limit) {
    return;
  }
  wire::RateLimitResponse::RateLimit& limit = *to.mutable_current_limit();
  limit.set_requests_per_unit(from.current_limit.requests_per_unit);
  limit.set_unit(static_cast<wire::RateLimitResponse::RateLimit::Unit>(from.current_limit.unit));
  if (!from.current_limit.name.empty()) {
    limit.set_name(from.current_limit.name);
  }
  const auto seconds = std::chrono::floor<std::chrono::seconds>(from.duration_until_reset);
  to.mutable_duration_until_reset()->set_seconds(seconds.count());
  to.mutable_duration_until_reset()->set_nanos(
      static_cast<int32_t>((from.duration_until_reset - seconds).count()));
}

}  // namespace

RlsMethod::RlsMethod(envoy::RlsService& service)
    : Method("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", Shape::kUnary),
      service_(service),
      request_(std::make_unique<wire::RateLimitRequest>()) {}

RlsMethod::~RlsMethod() = default;

Status RlsMethod::OnMessage(Call& call, std::string_view message) {
  if (Status status = codec::grpc::ReadMessage(message, *request_); !status.ok()) {
    return status;
  }
  asked_.Begin(request_->domain(), request_->hits_addend());
  for (const auto& descriptor : request_->descriptors()) {
    envoy::Descriptor& asked = asked_.AddDescriptor();
    if (descriptor.has_limit()) {
      constexpr int kLastUnit = static_cast<int>(envoy::kUnits) - 1;
      const int unit = descriptor.limit().unit();
      asked.limit = {.requests_per_unit = descriptor.limit().requests_per_unit(),
                     .unit = unit >= 0 && unit <= kLastUnit ? static_cast<envoy::Unit>(unit)
                                                            : envoy::Unit::kUnknown};
    }
    if (descriptor.has_hits_addend()) {
      asked.hits_addend = descriptor.hits_addend().value();
    }
    for (const auto& entry : descriptor.entries()) {
      asked_.AddEntry(entry.key(), entry.value());
    }
  }
  service_.ShouldRateLimit(asked_.request(), response_);
  if (message.size() > kKeptBytes) {
    request_ = std::make_unique<wire::RateLimitRequest>();
    asked_ = {};
  }
  if (response_.failure != envoy::Failure::kNone) {
    // Envoy takes an error as "could not decide" and applies its failure mode.
    return {response_.failure == envoy::Failure::kStore ? Code::kUnavailable : Code::kUnknown,
            response_.error};
  }
  Answer(call);
  return {};
}

void RlsMethod::Answer(Call& call) {
  google::protobuf::ArenaOptions options;
  options.initial_block = arena_block_.data();
  options.initial_block_size = arena_block_.size();
  google::protobuf::Arena arena(options);
  auto& answer = *google::protobuf::Arena::CreateMessage<wire::RateLimitResponse>(&arena);
  answer.set_overall_code(static_cast<wire::RateLimitResponse::Code>(response_.overall_code));
  answer.mutable_statuses()->Reserve(static_cast<int>(response_.statuses.size()));
  for (const envoy::DescriptorStatus& status : response_.statuses) {
    Write(status, *answer.add_statuses());
  }
  for (const envoy::Header& header : response_.response_headers_to_add) {
    auto& added = *answer.add_response_headers_to_add();
    added.set_key(header.key);
    added.set_value(header.value);
  }
  if (response_.has_dynamic_metadata) {
    Write(response_.dynamic_metadata.fields(), *answer.mutable_dynamic_metadata());
  }
  codec::grpc::Answer(call, answer);
}

}  // namespace weir::server
