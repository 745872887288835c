// Rules against time: a usual file, matched and decided, and sets of 10,000 rules made to be hard.
// The peers are the bars of the issue, so a ratio above 1 holds them.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "weir/rules.h"

#include "bench/measure.h"
#include "bench/rows.h"

namespace weir::bench {
namespace {

std::unique_ptr<RuleLimiter> Make(const std::string& text) {
  const RuleParse parse = RuleSet::Parse(text);
  if (parse.rules == nullptr) {
    Fail(ToString(parse.issues.front()));
  }
  auto store = MemoryStore::Create({.budget_bytes = size_t{64} << 20});
  auto limiter = RuleLimiter::Create(parse.rules, *store);
  if (!limiter) {
    Fail(limiter.error().message);
  }
  return *std::move(limiter);
}

// Twenty rules as an API has them; the request below meets three of them.
std::string UsualRules(const std::string& more) {
  std::string text = R"(
tiers: {premium: 5x}
rules:
  - {name: ip, per: ip, limit: 1M/s, burst: 1000000)" +
                     more + R"(}
  - {name: user, per: user, by: tier, limit: 1M/s, burst: 1000000)" +
                     more + R"(}
)";
  const char* const paths[] = {"/login",
                               "/signup",
                               "/search",
                               "/users/{id}",
                               "/users/{id}/posts",
                               "/posts/{id}",
                               "/posts/{id}/comments",
                               "/files/**",
                               "/feed",
                               "/admin/**",
                               "/health",
                               "/export",
                               "/import",
                               "/upload",
                               "/media/*",
                               "/settings",
                               "/billing/{year}/{month}",
                               "/webhooks/**"};
  for (const char* const& path : paths) {
    text += std::string("  - {name: 'e") + std::to_string(&path - paths) +
            "', group: endpoint, when: {method: [GET, POST], path: '" + path +
            "'}, per: user | ip, limit: 1M/s, burst: 1000000" + more + "}\n";
  }
  return text;
}

double NsPerCheck(RuleLimiter& limiter, const std::vector<std::vector<Attribute>>& requests,
                  size_t parts, int runs) {
  auto reply = std::make_unique<RuleReply>();
  double best = 1e18;
  constexpr int kChecks = 500;  // short, so that some run is left alone
  for (int run = 0; run < 100 * runs; ++run) {
    const int64_t begin = SteadyNs();
    for (int i = 0; i < kChecks; ++i) {
      const RuleLimiter::Pin pin = limiter.pin();
      limiter.Check(pin, {.attributes = requests[static_cast<size_t>(i) % requests.size()]},
                    *reply);
      if (reply->parts().size() != parts) {
        Fail("a request met " + std::to_string(reply->parts().size()) + " quotas");
      }
    }
    best = std::min(best, double(SteadyNs() - begin) / kChecks);
  }
  return best;
}

struct Hard {
  const char* name;
  std::string rules;
  std::vector<std::vector<std::pair<std::string, std::string>>> requests;
};

std::string Rule(int i, const std::string& when) {
  return "  - {name: r" + std::to_string(i) + ", per: ip, limit: 1M/s, burst: 1000000, when: {" +
         when + "}}\n";
}

std::vector<Hard> HardSets() {
  constexpr int kRules = 10'000;
  std::vector<Hard> sets;
  Hard exact{"exact paths", "rules:\n", {}};
  Hard wild{"every mix of text and *, all match", "rules:\n", {}};
  Hard failing{"every mix of text and *, none matches in the end", "rules:\n", {}};
  Hard prefix{"beginnings of a header", "rules:\n", {}};
  Hard absent{"absent headers", "rules:\n", {}};
  Hard networks{"networks", "rules:\n", {}};
  Hard regex{"256 regular expressions, values of 2 KiB", "rules:\n", {}};
  for (int i = 0; i < kRules; ++i) {
    const std::string n = std::to_string(i);
    exact.rules += Rule(i, "path: '/api/v1/resource/" + n + "/items'");
    std::string mix;
    for (int bit = 0; bit < 14; ++bit) {
      mix += (i >> bit & 1) != 0 ? "/*" : "/a";
    }
    wild.rules += Rule(i, "path: '" + mix + "'");
    failing.rules += Rule(i, "path: '" + mix + "', method: PUT");
    prefix.rules +=
        Rule(i, "agent: {prefix: '" + std::string(static_cast<size_t>(i % 200), 'a') + n + "'}");
    absent.rules += Rule(i, "'header:x-" + std::to_string(i % 200) + "': absent, method: PUT");
    networks.rules +=
        Rule(i, "ip: " + std::to_string(i / 256 + 1) + "." + std::to_string(i % 256) + ".0.0/16");
    if (i < 256) {
      regex.rules += Rule(i, "agent: {regex: '.*(a|b" + n + ")+x.*[0-9]" + n + "'}");
    }
  }
  for (int i = 0; i < 200; ++i) {
    const std::string n = std::to_string(i * 49);
    std::string deep;
    for (int s = 0; s < 14; ++s) {
      deep += "/a";
    }
    exact.requests.push_back({{"ip", "192.0.2.1"}, {"path", "/api/v1/resource/" + n + "/items"}});
    wild.requests.push_back({{"ip", "192.0.2.1"}, {"path", deep}});
    failing.requests.push_back({{"ip", "192.0.2.1"}, {"path", deep}, {"method", "GET"}});
    prefix.requests.push_back({{"ip", "192.0.2.1"}, {"agent", std::string(2000, 'a')}});
    absent.requests.push_back({{"ip", "192.0.2.1"}, {"method", "GET"}});
    networks.requests.push_back({{"ip", "7." + std::to_string(i) + ".2.1"}});
    regex.requests.push_back({{"ip", "192.0.2.1"}, {"agent", std::string(1990, "ab"[i % 2]) + n}});
  }
  for (Hard* const set : {&exact, &wild, &failing, &prefix, &absent, &networks, &regex}) {
    sets.push_back(std::move(*set));
  }
  return sets;
}

double P99Us(const Hard& hard, int rounds) {
  const auto limiter = Make(hard.rules);
  auto reply = std::make_unique<RuleReply>();
  std::vector<double> times;
  for (int round = 0; round < rounds + 1; ++round) {
    for (const auto& request : hard.requests) {
      std::vector<Attribute> attributes;
      for (const auto& [name, value] : request) {
        attributes.push_back({name, value});
      }
      const int64_t begin = SteadyNs();
      {
        const RuleLimiter::Pin pin = limiter->pin();
        limiter->Check(pin, {.attributes = attributes}, *reply);
      }
      if (round != 0) {  // the first warms up
        times.push_back(double(SteadyNs() - begin) / 1000);
      }
    }
  }
  std::sort(times.begin(), times.end());
  return times[times.size() * 99 / 100];
}

void Run(int runs) {
  const Rows rows("rules");
  std::vector<std::string> users;
  for (int i = 0; i < 64; ++i) {
    users.push_back("user-" + std::to_string(i));
  }
  std::vector<std::vector<Attribute>> requests;
  for (const std::string& user : users) {
    requests.push_back({{"ip", "203.0.113.7"},
                        {"user", user},
                        {"method", "GET"},
                        {"path", "/users/42/posts"},
                        {"host", "api.example.com"}});
  }
  const auto usual = Make(UsualRules(""));
  const double real_ns = NsPerCheck(*usual, requests, 3, runs);
  rows.Print({.what = "20 rules, three met, matched and decided",
              .unit = "ns",
              .better = Better::kLess,
              .ours = real_ns,
              .peer = "1 us",
              .theirs = 1000,
              .bar = 1});
  const auto shadow = Make(UsualRules(", shadow: true"));
  rows.Print({.what = "the same in shadow",
              .unit = "ns",
              .better = Better::kLess,
              .ours = NsPerCheck(*shadow, requests, 3, runs),
              .peer = "the real ones",
              .theirs = real_ns,
              .bar = 0.9});
  for (const Hard& hard : HardSets()) {
    rows.Print({.what = std::string("10,000 rules, p99: ") + hard.name,
                .unit = "us",
                .better = Better::kLess,
                .ours = P99Us(hard, runs),
                .peer = "50 us",
                .theirs = 50,
                .bar = 1});
  }
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  weir::bench::Run(quick ? 5 : 20);
  return 0;
}
