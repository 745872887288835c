// A warm session answers ShouldRateLimit without an allocation: neither ours nor nghttp2's, which
// has its memory from a pool.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/byte_buffer.h"
#include "codec/grpc/session_testing.h"
#include "envoy/rls_service.h"
#include "server/rls_method.h"
#include "testing/count_allocations.h"

namespace weir::server {
namespace {

using codec::grpc::Session;
using codec::grpc::TestClient;

constexpr std::string_view kPath = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
constexpr const char* kDescriptors = R"(
domain: shop
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 3, name: a-name-that-is-longer-than-a-few-letters}
  - {key: plan, value: "p*", rate_limit: {unit: minute, requests_per_unit: 1000000}}
  - {key: bucket, rate_limit: {unit: second, requests_per_unit: 5, burst: 20}}
)";

void Append(std::string& to, char field, std::string_view text) {
  to.append(1, static_cast<char>(field << 3 | 2)).append(1, static_cast<char>(text.size()));
  to.append(text);
}

std::string Question(int descriptors, int user) {
  const char* const keys[] = {"user", "plan", "bucket"};
  std::string message;
  Append(message, 1, "shop");
  for (int i = 0; i < descriptors; ++i) {
    std::string entry;
    Append(entry, 1, keys[i % 3]);
    Append(entry, 2, "plan of somebody " + std::to_string(user % 10));
    std::string descriptor;
    Append(descriptor, 1, entry);
    Append(message, 2, descriptor);
  }
  return message;
}

class RlsAllocation : public ::testing::Test {
 protected:
  RlsAllocation() {
    envoy::RlsOptions options;
    options.memory_bytes = size_t{4} << 20;
    options.response_headers = true;
    auto made = envoy::RlsService::Create(options);
    EXPECT_TRUE(made.ok());
    service_ = *std::move(made);
    const envoy::ConfigFile file{"shop.yaml", kDescriptors};
    EXPECT_TRUE(service_->Load({&file, 1}).ok());
    shared_.methods.Add(std::make_unique<RlsMethod>(*service_));
  }

  // Of ours and of nghttp2's, in so many calls that come ten with a read.
  struct Counted {
    size_t ours = 0;
    uint64_t nghttp2 = 0;
    uint64_t answers = 0;
    uint64_t errors = 0;
  };
  Counted WarmCalls(int descriptors) {
    // As many answers as a client takes without a word about its windows.
    constexpr int kWarmReads = 40;
    constexpr int kReads = 5;
    const auto ask = [&] {
      for (int i = 0; i < 10; ++i) {
        client_.Call(kPath, Question(descriptors, i));
      }
      return client_.TakeBytes();
    };
    for (int i = 0; i < kWarmReads; ++i) {
      EXPECT_TRUE(session_.Receive(ask(), now_));
      client_.Receive(TestClient::Take(session_));
    }
    std::vector<std::string> reads;
    reads.reserve(kReads);
    for (int i = 0; i < kReads; ++i) {
      reads.push_back(ask());
    }
    base::ByteBuffer output;
    output.Append(std::string(size_t{64} << 10, ' '));
    output.Clear();
    const Counted before{testing::allocations, shared_.memory.taken_from_system(),
                         session_.answers(), session_.errors()};
    for (const std::string& bytes : reads) {
      session_.Receive(bytes, now_);
      session_.Send(output);
    }
    const Counted counted{testing::allocations - before.ours,
                          shared_.memory.taken_from_system() - before.nghttp2,
                          session_.answers() - before.answers, session_.errors() - before.errors};
    client_.Receive(output.view());
    return counted;
  }

  std::unique_ptr<envoy::RlsService> service_;
  codec::grpc::SessionShared shared_;
  TestClient client_;
  const Timestamp now_ = SystemClock().Now();
  Session session_{shared_, now_};
};

TEST_F(RlsAllocation, CountsWhatAllocates) {
  const uint64_t before = testing::allocations;
  EXPECT_EQ(std::string(100, 'x').size(), 100U);
  EXPECT_GT(testing::allocations, before);
  EXPECT_GT(shared_.memory.taken_from_system(), 0U);
}

TEST_F(RlsAllocation, AWarmCallNeedsNone) {
  ASSERT_TRUE(client_.Exchange(session_, now_));
  for (const int descriptors : {1, 5}) {
    const Counted counted = WarmCalls(descriptors);
    EXPECT_EQ(counted.answers, 50U);
    EXPECT_EQ(counted.errors, 0U);
    EXPECT_EQ(counted.ours, 0U) << descriptors;
    EXPECT_EQ(counted.nghttp2, 0U) << descriptors;
  }
}

}  // namespace
}  // namespace weir::server
