// Sets of 10,000 rules made to be hard: for each way in which rules find requests, one where as
// many as possible seem to match and fail late, or all match and one must be found.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::bench {

struct Corpus {
  std::string_view name;
  std::string rules = "rules:\n";
  std::vector<std::vector<std::pair<std::string, std::string>>> requests = {};
};

inline constexpr int kCorpusRules = 10'000;
inline constexpr int kCorpusRequests = 200;

// `when` is what stands in the braces; `more` are fields of the rule.
inline std::string CorpusRule(int i, const std::string& when, const std::string& more = "per: ip") {
  return "  - {name: r" + std::to_string(i) + ", limit: 1M/s, burst: 1000000, when: {" + when +
         "}, " + more + "}\n";
}

// Each of the 14 segments is text or a wildcard.
inline std::string MixedPath(int i, const std::string& wildcard = "/*") {
  std::string path;
  for (int bit = 0; bit < 14; ++bit) {
    path += (i >> bit & 1) != 0 ? wildcard : "/a";
  }
  return path;
}

inline std::string PlainPath() {
  return MixedPath(0);
}

inline void AddPathCorpora(std::vector<Corpus>& corpora) {
  Corpus exact{"exact paths"};
  Corpus parameters{"path parameters"};
  Corpus beginnings{"/** below shared beginnings"};
  Corpus all{"every mix of text and *, all match"};
  Corpus by_method{"every mix of text and *, the method fails"};
  Corpus by_header{"every mix of text and *, a header of each fails"};
  Corpus by_text{"every mix of text and *, a contained text of each fails"};
  Corpus reversed{"every mix of text and *, the last of all comes first"};
  Corpus mixes{"hosts, methods and paths in 50 groups"};
  for (int i = 0; i < kCorpusRules; ++i) {
    const std::string n = std::to_string(i);
    const std::string mix = "path: '" + MixedPath(i) + "'";
    exact.rules += CorpusRule(i, "path: '/api/v1/resource/" + n + "/items'");
    parameters.rules += CorpusRule(i, "path: '/{a}/" + std::to_string(i % 100) + "/{b}/" + n + "'");
    beginnings.rules += CorpusRule(i, "path: '" + PlainPath().substr(0, 2 * (1 + size_t(i % 14))) +
                                          (i % 3 == 0 ? "/" + n : "") + "/**', method: PUT");
    all.rules += CorpusRule(i, mix);
    by_method.rules += CorpusRule(i, mix + ", method: PUT");
    by_header.rules += CorpusRule(i, mix + ", header:x-kind: k" + n);
    by_text.rules += CorpusRule(i, mix + ", agent: {contains: k" + n + "k}");
    reversed.rules += CorpusRule(i, mix, "per: ip, priority: " + n);
    mixes.rules += CorpusRule(i,
                              "host: h" + std::to_string(i % 20) +
                                  ".example, method: [GET, POST], path: '/v1/" +
                                  std::to_string(i % 500) + "/{id}'",
                              "per: ip, group: g" + std::to_string(i % 50));
  }
  for (int i = 0; i < kCorpusRequests; ++i) {
    const std::string n = std::to_string(i * 49);
    exact.requests.push_back({{"ip", "192.0.2.1"}, {"path", "/api/v1/resource/" + n + "/items"}});
    parameters.requests.push_back(
        {{"ip", "192.0.2.1"}, {"path", "/x/" + std::to_string(i * 49 % 100) + "/y/" + n}});
    for (Corpus* const corpus : {&beginnings, &all, &by_method, &by_header, &by_text, &reversed}) {
      corpus->requests.push_back({{"ip", "192.0.2.1"},
                                  {"path", PlainPath()},
                                  {"method", "GET"},
                                  {"header:x-kind", "none" + n},
                                  {"agent", "kk" + n}});
    }
    mixes.requests.push_back({{"ip", "192.0.2.1"},
                              {"host", "h" + std::to_string(i % 20) + ".example"},
                              {"method", "GET"},
                              {"path", "/v1/" + std::to_string(i % 500) + "/7"}});
  }
  for (Corpus* const corpus : {&exact, &parameters, &beginnings, &all, &by_method, &by_header,
                               &by_text, &reversed, &mixes}) {
    corpora.push_back(std::move(*corpus));
  }
}

inline void AddTextCorpora(std::vector<Corpus>& corpora) {
  Corpus prefix{"nested beginnings of a header"};
  Corpus suffix{"ends of a header"};
  Corpus contains{"contained texts, values of 2 KiB"};
  Corpus globs{"globs with one beginning and other ends"};
  Corpus regex{"256 regular expressions, values of 2 KiB"};
  Corpus headers{"three of 200 headers, the last fails"};
  Corpus absent{"absent headers"};
  Corpus networks{"nested networks"};
  for (int i = 0; i < kCorpusRules; ++i) {
    const std::string n = std::to_string(i);
    const std::string run(static_cast<size_t>(i % 240), 'a');
    prefix.rules +=
        CorpusRule(i, "agent: {prefix: '" + run + (i % 2 == 0 ? n : "a") + "'}, method: PUT",
                   "per: ip, priority: " + n);
    suffix.rules += CorpusRule(i, "agent: {suffix: '" + n + run + "'}");
    contains.rules += CorpusRule(i, "agent: {contains: '" + run + n + "'}");
    globs.rules += CorpusRule(i, "agent: {glob: 'aaaa*" + n + "'}");
    regex.rules += CorpusRule(i, "agent: {regex: '.*(a|b" + std::to_string(i % 256) + ")+x.*[0-9]" +
                                     std::to_string(i % 256) + "'}, method: GET");
    std::string some;
    for (int k = 0; k < 3; ++k) {
      some += (k == 0 ? "" : ", ") + std::string("header:x-") + std::to_string((i + k * 67) % 200) +
              (k == 2 ? ": other" : ": same");
    }
    headers.rules += CorpusRule(i, some);
    absent.rules += CorpusRule(i, "header:x-" + std::to_string(i % 200) + ": absent, method: PUT");
    const int bits = 8 + i % 17;
    const unsigned address = (7U << 24 | static_cast<unsigned>(i) << 8) >> (32 - bits)
                                                                               << (32 - bits);
    networks.rules += CorpusRule(i, "ip: " + std::to_string(address >> 24) + "." +
                                        std::to_string(address >> 16 & 255) + "." +
                                        std::to_string(address >> 8 & 255) + ".0/" +
                                        std::to_string(bits) + ", method: PUT");
  }
  for (int i = 0; i < kCorpusRequests; ++i) {
    const std::string n = std::to_string(i * 49);
    const std::string ip = "7." + std::to_string(i % 40) + "." + std::to_string(i) + ".1";
    for (Corpus* const corpus : {&prefix, &suffix, &contains, &globs, &regex}) {
      corpus->requests.push_back({{"ip", ip},
                                  {"method", corpus == &prefix ? "PUT" : "GET"},
                                  {"agent", std::string(1990, "ab"[i % 7 == 0 ? 1 : 0]) + n}});
    }
    headers.requests.push_back({{"ip", ip}});
    for (int k = 0; k < 120; ++k) {  // as many as a request may have, or nearly
      headers.requests.back().emplace_back("header:x-" + std::to_string((i + k) % 200), "same");
    }
    absent.requests.push_back({{"ip", ip}, {"method", "GET"}});
    networks.requests.push_back({{"ip", ip}, {"method", "GET"}});
  }
  for (Corpus* const corpus :
       {&prefix, &suffix, &contains, &globs, &regex, &headers, &absent, &networks}) {
    corpora.push_back(std::move(*corpus));
  }
}

inline void AddKeyCorpora(std::vector<Corpus>& corpora) {
  Corpus missing{"all match, what they count by is missing"};
  Corpus expired{"all match, all have expired"};
  Corpus canary{"all match, canaries of 0.1%"};
  for (int i = 0; i < kCorpusRules; ++i) {
    const std::string mix = "path: '" + MixedPath(i) + "'";
    missing.rules += CorpusRule(i, mix, "per: user | session");
    expired.rules += CorpusRule(i, mix, "per: ip, expires: 2020-01-01");
    canary.rules += CorpusRule(i, mix, "per: ip, canary: 0.1%");
  }
  for (int i = 0; i < kCorpusRequests; ++i) {
    for (Corpus* const corpus : {&missing, &expired, &canary}) {
      corpus->requests.push_back({{"ip", "192.0.2." + std::to_string(i)}, {"path", PlainPath()}});
    }
  }
  for (Corpus* const corpus : {&missing, &expired, &canary}) {
    corpora.push_back(std::move(*corpus));
  }
}

inline std::vector<Corpus> HardCorpora() {
  std::vector<Corpus> corpora;
  AddPathCorpora(corpora);
  AddTextCorpora(corpora);
  AddKeyCorpora(corpora);
  return corpora;
}

}  // namespace weir::bench
