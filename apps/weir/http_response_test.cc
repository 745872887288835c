#include "apps/weir/http_response.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weir::app {
namespace {

struct Answer {
  int status;
  bool closes;
  std::string body;
  bool operator==(const Answer&) const = default;
};

struct Outcome {
  std::vector<Answer> answers;
  std::string error;
};

// Feeds `bytes` in two parts, the way a socket may deliver them.
Outcome ReadSplit(const std::string& bytes, size_t split, const ResponseLimits& limits = {}) {
  Outcome outcome;
  HttpResponseReader reader(limits);
  size_t begin = 0;
  for (const size_t end : {split, bytes.size()}) {
    while (true) {
      const std::string_view input(bytes.data() + begin, end - begin);
      const ResponseState state = reader.Read(input);
      if (state == ResponseState::kError) {
        outcome.error = reader.error();
        return outcome;
      }
      if (state == ResponseState::kMore) {
        break;
      }
      const HttpResponse& response = reader.response();
      outcome.answers.push_back({response.status, response.closes, std::string(response.body)});
      begin += reader.consumed();
    }
  }
  return outcome;
}

Outcome ReadWhole(const std::string& bytes, const ResponseLimits& limits = {}) {
  return ReadSplit(bytes, bytes.size(), limits);
}

TEST(HttpResponse, ReadsPipelinedAnswersWhereverTheBytesAreSplit) {
  const std::string bytes =
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n"
      "{\"allowed\":true}"
      "HTTP/1.1 429 Too Many Requests\r\ncontent-length:0\r\nRetry-After: 3\r\n\r\n"
      "HTTP/1.1 204\r\n\r\n"
      "HTTP/1.1 503 \r\nConnection: keep-alive, Close\r\nContent-Length: 4\r\n\r\nbusy";
  const std::vector<Answer> expected = {
      {200, false, "{\"allowed\":true}"}, {429, false, ""}, {204, false, ""}, {503, true, "busy"}};
  for (size_t split = 0; split <= bytes.size(); ++split) {
    const Outcome outcome = ReadSplit(bytes, split);
    EXPECT_EQ(outcome.error, "") << split;
    EXPECT_EQ(outcome.answers, expected) << split;
  }
}

TEST(HttpResponse, RefusesWhatItWouldHaveToGuessAt) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", "begins with HTTP/1.1; found 'HTTP/1."},
      {"-ERR unknown command\r\n", "begins with HTTP/1.1; found '-"},
      {"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", "status of three digits"},
      {"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", "status of three digits"},
      {"HTTP/1.1 200\r\n\r\n", "without Content-Length"},
      {"HTTP/1.1 100 Continue\r\n\r\n", "interim answer"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "two lengths"},
      {"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", "no number"},
      {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "no number"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n", "no number"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "transfer codings"},
      {"HTTP/1.1 200 OK\r\nContent Length: 1\r\n\r\n", "expected a field"},
      {"HTTP/1.1 200 OK\r\n folded\r\n\r\n", "expected a field"},
      {"HTTP/1.1 200 OK\r\nA: \x01\r\nContent-Length: 0\r\n\r\n", "control character"},
  };
  for (const auto& [bytes, part] : cases) {
    for (size_t split = 0; split <= bytes.size(); ++split) {
      const Outcome outcome = ReadSplit(bytes, split);
      EXPECT_NE(outcome.error.find(part), std::string::npos) << bytes << outcome.error;
      EXPECT_TRUE(outcome.answers.empty()) << bytes;
    }
  }
}

TEST(HttpResponse, KeepsToItsLimits) {
  const ResponseLimits limits{.head_bytes_max = 64, .body_bytes_max = 8};
  EXPECT_EQ(ReadWhole("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n12345678", limits).error, "");
  EXPECT_NE(ReadWhole("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", limits)
                .error.find("a body of more than 8 bytes"),
            std::string::npos);
  const std::string endless = "HTTP/1.1 200 OK\r\nA: " + std::string(100, 'a');
  EXPECT_NE(ReadWhole(endless, limits).error.find("a head of more than 64 bytes"),
            std::string::npos);
  EXPECT_NE(ReadWhole(endless + "\r\n\r\n", limits).error.find("a head of more than 64 bytes"),
            std::string::npos);
}

TEST(HttpResponse, StaysInErrorAfterAnError) {
  HttpResponseReader reader;
  EXPECT_EQ(reader.Read("garbage\r\n\r\n"), ResponseState::kError);
  EXPECT_EQ(reader.Read("HTTP/1.1 204\r\n\r\n"), ResponseState::kError);
}

}  // namespace
}  // namespace weir::app
