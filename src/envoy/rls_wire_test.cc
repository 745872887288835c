#include "envoy/rls_wire.h"

#include <chrono>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <envoy/service/ratelimit/v3/rls.pb.h>
#include <gtest/gtest.h>

namespace weir::envoy {
namespace {

namespace wire = ::envoy::service::ratelimit::v3;
using Random = std::mt19937_64;

class RlsWire : public testing::Test {
 protected:
  // libprotobuf has a line on stderr for each text that is no UTF-8.
  static void SetUpTestSuite() { google::protobuf::SetLogHandler(nullptr); }
};

// Whether both read it, and then the same; how many descriptors there were.
int Compare(const std::string& bytes) {
  wire::RateLimitRequest theirs;
  const bool readable = theirs.ParseFromString(bytes);
  RequestBuffer buffer;
  EXPECT_EQ(ReadRequest(bytes, buffer), readable);
  if (!readable || ::testing::Test::HasFailure()) {
    return -1;
  }
  const Request& ours = buffer.request();
  EXPECT_EQ(ours.domain, theirs.domain());
  EXPECT_EQ(ours.hits_addend, theirs.hits_addend());
  EXPECT_EQ(ours.descriptors.size(), static_cast<size_t>(theirs.descriptors_size()));
  for (size_t i = 0; i < ours.descriptors.size(); ++i) {
    const Descriptor& one = ours.descriptors[i];
    const auto& other = theirs.descriptors(static_cast<int>(i));
    EXPECT_EQ(one.entries.size(), static_cast<size_t>(other.entries_size()));
    for (size_t k = 0; k < one.entries.size(); ++k) {
      EXPECT_EQ(one.entries[k].key, other.entries(static_cast<int>(k)).key());
      EXPECT_EQ(one.entries[k].value, other.entries(static_cast<int>(k)).value());
    }
    EXPECT_EQ(one.limit.has_value(), other.has_limit());
    if (one.limit.has_value()) {
      EXPECT_EQ(one.limit->requests_per_unit, other.limit().requests_per_unit());
      const int unit = other.limit().unit();
      EXPECT_EQ(static_cast<int>(one.limit->unit), unit >= 0 && unit <= 7 ? unit : 0);
    }
    EXPECT_EQ(one.hits_addend.has_value(), other.has_hits_addend());
    EXPECT_EQ(one.hits_addend.value_or(0), other.hits_addend().value());
  }
  return theirs.descriptors_size();
}

std::string AnyText(Random& random) {
  static const std::vector<std::string> kTexts = {"",
                                                  "a",
                                                  "remote_address",
                                                  "\xc3\xa9",
                                                  "\xf0\x9f\x98\x80",
                                                  "\xed\xa0\x80",
                                                  "\xff",
                                                  std::string(200, 'x')};
  // Those that are no UTF-8 seldom: one of them and the rest is not looked at.
  const size_t pick = random() % 40;
  return kTexts[pick < kTexts.size() ? pick : pick % 5];
}

wire::RateLimitRequest AnyRequest(Random& random) {
  constexpr uint64_t kNumbers[] = {0, 1, 7, 127, 128, 0xffffffff, 1ULL << 63, ~0ULL};
  const auto number = [&] { return kNumbers[random() % std::size(kNumbers)]; };
  wire::RateLimitRequest request;
  request.set_domain(AnyText(random));
  request.set_hits_addend(static_cast<uint32_t>(number()));
  for (uint64_t i = random() % 4; i != 0; --i) {
    auto& descriptor = *request.add_descriptors();
    for (uint64_t k = random() % 4; k != 0; --k) {
      auto& entry = *descriptor.add_entries();
      entry.set_key(AnyText(random));
      entry.set_value(AnyText(random));
    }
    if (random() % 3 == 0) {
      descriptor.mutable_limit()->set_requests_per_unit(static_cast<uint32_t>(number()));
      descriptor.mutable_limit()->set_unit(
          static_cast<::envoy::type::v3::RateLimitUnit>(static_cast<int>(random() % 10) - 1));
    }
    if (random() % 3 == 0) {
      descriptor.mutable_hits_addend()->set_value(number());
    }
  }
  return request;
}

// Bytes that mean something in this format, where they hurt.
void Mutate(std::string& bytes, Random& random) {
  static const std::vector<std::string> kPieces = {std::string(1, '\0'),
                                                   "\x0b",
                                                   "\x0c",
                                                   "\x13\x14",
                                                   "\x1b\x23\x24\x1c",
                                                   "\x0a\x02",
                                                   "\x12",
                                                   "\x80",
                                                   "\xff\xff\xff\xff\x0f",
                                                   "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                                                   "\x25",
                                                   "\x21",
                                                   "\x82\x80\x80\x80\x80",
                                                   "\x92\x80\x80\x80\x10",
                                                   "\x0e",
                                                   "\x32\x03"
                                                   "abc"};
  const size_t at = bytes.empty() ? 0 : random() % bytes.size();
  switch (random() % 5) {
    case 0:
      bytes.insert(at, kPieces[random() % kPieces.size()]);
      break;
    case 1:
      bytes.erase(at, random() % 4);
      break;
    case 2:
      if (!bytes.empty()) {
        bytes[at] = static_cast<char>(random());
      }
      break;
    case 3:
      bytes += bytes.substr(at);
      break;
    default:
      bytes.append(kPieces[random() % kPieces.size()]);
  }
}

TEST_F(RlsWire, ReadsWhatLibprotobufReadsAndRefusesWhatItRefuses) {
  Random random(20261116);
  int read = 0;
  int refused = 0;
  for (int i = 0; i < 60'000 && !HasFailure(); ++i) {
    std::string bytes = AnyRequest(random).SerializeAsString();
    for (uint64_t k = random() % 4; k != 0; --k) {
      Mutate(bytes, random);
    }
    (Compare(bytes) >= 0 ? read : refused) += 1;
    ASSERT_FALSE(HasFailure()) << "round " << i << ": " << testing::PrintToString(bytes);
  }
  EXPECT_GT(read, 10'000);
  EXPECT_GT(refused, 10'000);
}

TEST_F(RlsWire, WhatComesTwiceIsJoinedOrReplaced) {
  // domain "a", then "b"; a limit of 5, then its unit; hits of 3, then a message without them.
  const std::string twice =
      std::string("\x0a\x01") + "a" + "\x0a\x01" + "b" + "\x12\x0e" +
      std::string("\x12\x02\x08\x05\x12\x02\x10\x02\x1a\x02\x08\x03\x1a\x00", 14);
  EXPECT_EQ(Compare(twice), 1);
  RequestBuffer buffer;
  ASSERT_TRUE(ReadRequest(twice, buffer));
  const Request& request = buffer.request();
  EXPECT_EQ(request.domain, "b");
  EXPECT_EQ(request.descriptors[0].limit->requests_per_unit, 5U);
  EXPECT_EQ(request.descriptors[0].limit->unit, Unit::kMinute);
  EXPECT_EQ(request.descriptors[0].hits_addend, 3U);
}

TEST_F(RlsWire, GroupsAsDeepAsLibprotobufGoes) {
  for (const size_t depth : {1U, 99U, 100U, 101U, 5000U}) {
    const std::string groups = std::string(depth, '\x23') + std::string(depth, '\x24');
    Compare(groups);
    Compare("\x12" + std::string(1, static_cast<char>(std::min<size_t>(groups.size(), 100))) +
            groups.substr(0, 100));
    EXPECT_FALSE(HasFailure()) << depth;
  }
  EXPECT_EQ(Compare("\x23\x24"), 0);
  EXPECT_EQ(Compare("\x23\x2c"), -1);
}

google::protobuf::Value WireOf(const MetadataValue& value) {
  google::protobuf::Value to;
  if (const bool* const boolean = std::get_if<bool>(&value.value)) {
    to.set_bool_value(*boolean);
  } else if (const double* const number = std::get_if<double>(&value.value)) {
    to.set_number_value(*number);
  } else if (const std::string* const text = std::get_if<std::string>(&value.value)) {
    to.set_string_value(*text);
  } else if (const auto* const list = std::get_if<MetadataValue::List>(&value.value)) {
    to.mutable_list_value();
    for (const MetadataValue& one : *list) {
      *to.mutable_list_value()->add_values() = WireOf(one);
    }
  } else if (value.IsStruct()) {
    to.mutable_struct_value();
    for (const auto& [name, field] : value.fields()) {
      (*to.mutable_struct_value()->mutable_fields())[name] = WireOf(field);
    }
  } else {
    to.set_null_value(google::protobuf::NULL_VALUE);
  }
  return to;
}

wire::RateLimitResponse WireOf(const Response& response) {
  wire::RateLimitResponse to;
  to.set_overall_code(static_cast<wire::RateLimitResponse::Code>(response.overall_code));
  for (const DescriptorStatus& status : response.statuses) {
    auto& added = *to.add_statuses();
    added.set_code(static_cast<wire::RateLimitResponse::Code>(status.code));
    added.set_limit_remaining(status.limit_remaining);
    if (status.has_limit) {
      auto& limit = *added.mutable_current_limit();
      limit.set_requests_per_unit(status.current_limit.requests_per_unit);
      limit.set_unit(
          static_cast<wire::RateLimitResponse::RateLimit::Unit>(status.current_limit.unit));
      limit.set_name(status.current_limit.name);
      const auto seconds = std::chrono::floor<std::chrono::seconds>(status.duration_until_reset);
      added.mutable_duration_until_reset()->set_seconds(seconds.count());
      added.mutable_duration_until_reset()->set_nanos(
          static_cast<int32_t>((status.duration_until_reset - seconds).count()));
    }
  }
  for (const Header& header : response.response_headers_to_add) {
    auto& added = *to.add_response_headers_to_add();
    added.set_key(header.key);
    added.set_value(header.value);
  }
  if (response.has_dynamic_metadata) {
    *to.mutable_dynamic_metadata() = WireOf(response.dynamic_metadata).struct_value();
  }
  return to;
}

TEST_F(RlsWire, WritesTheBytesThatLibprotobufWrites) {
  Random random(7);
  const auto number = [&] { return static_cast<uint32_t>(random() >> (random() % 64)); };
  std::string bytes = "before";
  for (int i = 0; i < 5000; ++i) {
    Response response;
    response.overall_code = static_cast<Code>(random() % 3);
    response.statuses.resize(random() % 6);
    for (DescriptorStatus& status : response.statuses) {
      status.code = static_cast<Code>(random() % 3);
      status.has_limit = random() % 4 != 0;
      status.limit_remaining = number();
      if (status.has_limit) {
        status.current_limit = {number(), static_cast<Unit>(random() % 8),
                                std::string(random() % 3 == 0 ? random() % 300 : 0, 'n')};
        status.duration_until_reset =
            Duration(static_cast<int64_t>(random() >> (1 + random() % 63)));
      }
    }
    for (uint64_t k = random() % 3; k != 0; --k) {
      response.response_headers_to_add.push_back({"RateLimit-Limit", std::to_string(random())});
    }
    bytes.resize(6);
    AppendAnswer(bytes, response);
    ASSERT_EQ(bytes, "before" + WireOf(response).SerializeAsString());
  }
}

TEST_F(RlsWire, WritesMetadata) {
  Response response;
  response.overall_code = Code::kOk;
  response.has_dynamic_metadata = true;
  response.dynamic_metadata = MetadataValue::Struct();
  response.dynamic_metadata["null"] = {};
  response.dynamic_metadata["no"] = {false};
  response.dynamic_metadata["zero"] = {0.0};
  response.dynamic_metadata["number"] = {-1.5e300};
  response.dynamic_metadata["text"] = {std::string(300, 't')};
  response.dynamic_metadata["empty"] = {std::string()};
  response.dynamic_metadata["list"] = {
      MetadataValue::List{{true}, {MetadataValue::List{}}, MetadataValue::Struct()}};
  response.dynamic_metadata["within"] = MetadataValue::Struct();
  response.dynamic_metadata["within"]["a"] = {std::string("b")};
  std::string bytes;
  AppendAnswer(bytes, response);
  wire::RateLimitResponse read;
  ASSERT_TRUE(read.ParseFromString(bytes));
  EXPECT_EQ(read.DebugString(), WireOf(response).DebugString());
  EXPECT_EQ(read.dynamic_metadata().fields_size(), 8);
}

}  // namespace
}  // namespace weir::envoy
