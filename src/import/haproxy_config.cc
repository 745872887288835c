#include "import/haproxy_config.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace weir::import {

namespace {

constexpr std::array<std::string_view, 20> kSections = {
    "global", "defaults",  "frontend",    "backend",     "listen",      "peers",      "userlist",
    "cache",  "resolvers", "mailers",     "http-errors", "ring",        "program",    "fcgi-app",
    "traces", "crt-store", "log-forward", "acme",        "log-profile", "healthcheck"};

// The words of one line. Quotes and backslashes as a shell has them.
std::vector<std::string> Words(std::string_view line, const Place& place) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = '\0';
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != '\'' && c == '\\' && i + 1 < line.size()) {
      word += line[++i];
      inside = true;
    } else if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else {
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      inside = true;
    } else if (c == '#') {
      break;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      if (inside) {
        words.push_back(std::move(word));
        word.clear();
      }
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (quote != '\0') {
    throw Refused{{place.file, place.line, static_cast<uint32_t>(line.size())},
                  "a text without its closing quote"};
  }
  if (inside) {
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace

std::string HaproxyLine::Text() const {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

std::vector<HaproxySection> ReadHaproxyConfig(const Source& source) {
  std::vector<HaproxySection> sections(1);
  std::string_view left = source.text;
  for (uint32_t line = 1; !left.empty(); ++line) {
    const size_t end = std::min(left.find('\n'), left.size());
    const Place place{source.name, line, 0};
    std::vector<std::string> words = Words(left.substr(0, end), place);
    left.remove_prefix(std::min(end + 1, left.size()));
    if (words.empty()) {
      continue;
    }
    if (std::find(kSections.begin(), kSections.end(), words.front()) != kSections.end()) {
      sections.push_back({words[0], words.size() > 1 ? words[1] : "", {}});
    } else {
      sections.back().lines.push_back({place, std::move(words)});
    }
  }
  return sections;
}

}  // namespace weir::import
