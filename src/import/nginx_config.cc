#include "import/nginx_config.h"

#include <cctype>
#include <string_view>
#include <utility>

#include "base/spelling.h"

namespace weir::import {

namespace {

constexpr size_t kMaxDepth = 64;

class Parser {
 public:
  explicit Parser(const Source& source) : source_(source), text_(source.text) {}

  std::vector<NginxDirective> File() {
    std::vector<NginxDirective> all;
    Directives(all, 0);
    if (at_ < text_.size()) {
      Fail("found } without its {");
    }
    return all;
  }

 private:
  [[noreturn]] void Fail(const std::string& message) const { throw Refused{Here(), message}; }

  [[nodiscard]] Place Here() const {
    return {source_.name, line_, static_cast<uint32_t>(at_ - line_begin_ + 1)};
  }

  char Next() {
    const char c = text_[at_++];
    if (c == '\n') {
      ++line_;
      line_begin_ = at_;
    }
    return c;
  }

  void SkipBlanks() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') {
          ++at_;
        }
      } else if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
        Next();
      } else {
        return;
      }
    }
  }

  // Up to the } that ends the block, or the end of the text.
  void Directives(std::vector<NginxDirective>& into, size_t depth) {
    if (depth > kMaxDepth) {
      Fail("blocks are more than " + std::to_string(kMaxDepth) + " deep");
    }
    for (SkipBlanks(); at_ < text_.size() && text_[at_] != '}'; SkipBlanks()) {
      Directive(into.emplace_back(), depth);
    }
  }

  void Directive(NginxDirective& into, size_t depth) {
    into.place = Here();
    for (SkipBlanks(); at_ < text_.size(); SkipBlanks()) {
      const char c = text_[at_];
      if (c == ';' || c == '{' || c == '}') {
        if (into.words.empty() || c == '}') {
          Fail(std::string("found ") + c + "; expected " +
               (into.words.empty() ? "a directive"
                                   : "; at the end of " + base::Quoted(into.words.front())));
        }
        Next();
        if (c == '{') {
          Block(into, depth);
        }
        return;
      }
      into.words.push_back(Word());
    }
    Fail("the text ends within " + base::Quoted(into.words.front()) + "; expected ; or {");
  }

  void Block(NginxDirective& into, size_t depth) {
    into.has_block = true;
    if (into.name().ends_with("_by_lua_block")) {
      SkipCode();
      return;
    }
    Directives(into.block, depth + 1);
    if (at_ == text_.size()) {
      throw Refused{into.place, base::Quoted(into.name()) + " has no } at its end"};
    }
    Next();
  }

  // Another language, of which only the braces are looked at.
  void SkipCode() {
    for (size_t open = 1; at_ < text_.size();) {
      const char c = Next();
      open += c == '{' ? 1 : 0;
      open -= c == '}' ? 1 : 0;
      if (open == 0) {
        return;
      }
    }
    Fail("the text ends within a block of code");
  }

  std::string Word() {
    const char quote = text_[at_] == '"' || text_[at_] == '\'' ? text_[at_] : '\0';
    return quote != '\0' ? Quoted(quote) : Plain();
  }

  std::string Quoted(char quote) {
    const Place begin = Here();
    std::string word;
    Next();
    while (at_ < text_.size()) {
      const char c = Next();
      if (c == quote) {
        return word;
      }
      AppendMaybeEscaped(c, word);
    }
    throw Refused{begin, "a text without its closing quote"};
  }

  std::string Plain() {
    std::string word;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool is_variable = c == '{' && word.ends_with('$');
      if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == ';' ||
          (c == '{' && !is_variable)) {
        break;
      }
      if (is_variable) {
        while (at_ < text_.size() && text_[at_] != '}') {
          word += Next();
        }
        if (at_ < text_.size()) {
          word += Next();
        }
        continue;
      }
      AppendMaybeEscaped(Next(), word);
    }
    return word;
  }

  // As nginx has it: a backslash stays, but for those before quotes, itself and t, r, n.
  void AppendMaybeEscaped(char c, std::string& word) {
    if (c != '\\' || at_ == text_.size()) {
      word += c;
      return;
    }
    const char next = Next();
    if (next == '"' || next == '\'' || next == '\\') {
      word += next;
    } else if (next == 't' || next == 'r' || next == 'n') {
      word += next == 't' ? '\t' : next == 'r' ? '\r' : '\n';
    } else {
      word += '\\';
      word += next;
    }
  }

  const Source& source_;
  std::string_view text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  size_t line_begin_ = 0;
};

}  // namespace

std::vector<NginxDirective> ReadNginxConfig(const Source& source) {
  return Parser(source).File();
}

}  // namespace weir::import
