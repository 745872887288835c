#include "import/cel.h"

#include <cctype>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <vector>

#include "base/spelling.h"

namespace weir::import {

namespace {

constexpr size_t kMaxDepth = 32;

// What stands at one side of a comparison.
struct Operand {
  std::string text;        // of a literal, or what is called
  bool is_text = false;    // a literal
  bool is_legacy = false;  // an attribute that does not say `descriptors`
  size_t descriptor = 0;
};

Predicate Is(const std::string& attribute, Match match, const std::string& text) {
  return Only({attribute, {{match, text}}});
}

class Parser {
 public:
  Parser(std::string_view text, const CelAttribute& attribute)
      : text_(text), attribute_(attribute) {}

  Predicate Condition() {
    try {
      Predicate predicate = Either(0);
      ExpectEnd();
      return predicate;
    } catch (const std::length_error& error) {
      throw CelRefused{error.what(), 0};
    }
  }

  std::string Variable() {
    const Operand operand = ReadOperand();
    if (operand.is_text) {
      Fail("expected an attribute, such as descriptors[0].user_id");
    }
    ExpectEnd();
    return Named(operand);
  }

 private:
  [[noreturn]] void Fail(const std::string& message) const { throw CelRefused{message, at_}; }

  void SkipSpace() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
      ++at_;
    }
  }

  bool Take(std::string_view token) {
    SkipSpace();
    if (!text_.substr(at_).starts_with(token)) {
      return false;
    }
    const bool is_word = std::isalpha(static_cast<unsigned char>(token.front())) != 0;
    if (is_word && at_ + token.size() < text_.size() && IsWord(text_[at_ + token.size()])) {
      return false;
    }
    at_ += token.size();
    return true;
  }

  void Expect(std::string_view token) {
    if (!Take(token)) {
      Fail("expected " + base::Quoted(token));
    }
  }

  void ExpectEnd() {
    SkipSpace();
    if (at_ != text_.size()) {
      Fail("found " + base::Quoted(text_.substr(at_), 20) +
           ", which is not understood; expected comparisons joined by && and ||");
    }
  }

  static bool IsWord(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == ':' ||
           c == '/';
  }

  Predicate Either(size_t depth) {
    Predicate either = All(depth);
    while (Take("||")) {
      either = Or(either, All(depth));
    }
    return either;
  }

  Predicate All(size_t depth) {
    Predicate all = Unary(depth);
    while (Take("&&")) {
      all = And(all, Unary(depth));
    }
    return all;
  }

  Predicate Unary(size_t depth) {
    if (depth > kMaxDepth) {
      Fail("more than " + std::to_string(kMaxDepth) + " levels");
    }
    SkipSpace();
    if (!text_.substr(at_).starts_with("!=") && Take("!")) {
      return Contrary(Unary(depth + 1));
    }
    if (Take("(")) {
      Predicate inner = Either(depth + 1);
      Expect(")");
      return inner;
    }
    if (Take("true")) {
      return Always();
    }
    if (Take("has")) {
      Expect("(");
      const Operand operand = ReadOperand();
      Expect(")");
      return Is(Named(operand), Match::kPresent, "");
    }
    return Comparison();
  }

  // What is compared must be there for the contrary too: without it limitador's answer is no.
  static Predicate Contrary(const Predicate& predicate) {
    Predicate negated = Not(predicate);
    for (Conjunction& conjunction : negated) {
      Conjunction present;
      for (Literal& literal : conjunction) {
        std::vector<Test>& any = literal.condition.any;
        if (any.size() == 1 &&
            (any[0].match == Match::kPresent || any[0].match == Match::kAbsent) &&
            literal.negated) {
          any[0].match = any[0].match == Match::kPresent ? Match::kAbsent : Match::kPresent;
          literal.negated = false;
        } else if (literal.negated) {
          present.push_back({{literal.condition.attribute, {{Match::kPresent, ""}}}, false});
        }
      }
      conjunction.insert(conjunction.begin(), present.begin(), present.end());
    }
    return negated;
  }

  Predicate Comparison() {
    const Operand left = ReadOperand();
    if (left.is_text && Take("in")) {
      return InMap(left.text);
    }
    if (Take("in")) {
      return InList(left);
    }
    if (Take(".startsWith")) {
      return Is(Named(left), Match::kPrefix, Argument());
    }
    if (Take(".endsWith")) {
      return Is(Named(left), Match::kSuffix, Argument());
    }
    if (Take(".contains")) {
      return Is(Named(left), Match::kContains, Argument());
    }
    if (Take(".matches")) {
      return Is(Named(left), Match::kRegex, "(?s).*(?:" + Argument() + ").*");
    }
    const bool equal = Take("==");
    if (!equal) {
      Expect("!=");
    }
    Operand right = ReadOperand();
    if (!right.is_text && right.is_legacy && !left.is_text) {
      right.is_text = true;  // the older form has texts without quotes
    }
    if (left.is_text == right.is_text) {
      Fail("expected an attribute and a text to compare it with");
    }
    const std::string attribute = Named(left.is_text ? right : left);
    const std::string& value = left.is_text ? left.text : right.text;
    Predicate same = Is(attribute, Match::kExact, value);
    if (value.empty()) {  // which is as good as none
      same = Is(attribute, Match::kAbsent, "");
    }
    return equal ? same : Contrary(same);
  }

  Predicate InMap(const std::string& name) {
    if (!Take("descriptors")) {
      Fail("expected descriptors[0]");
    }
    Expect("[");
    const size_t descriptor = Number();
    Expect("]");
    return Is(attribute_(name, descriptor), Match::kPresent, "");
  }

  Predicate InList(const Operand& left) {
    Expect("[");
    weir::import::Condition any{Named(left), {}};
    while (!Take("]")) {
      const Operand item = ReadOperand();
      if (!item.is_text) {
        Fail("expected a text in the list");
      }
      any.any.push_back({Match::kExact, item.text});
      if (!Take(",")) {
        Expect("]");
        break;
      }
    }
    if (any.any.empty()) {
      return {};
    }
    return Only(any);
  }

  std::string Argument() {
    Expect("(");
    const Operand operand = ReadOperand();
    if (!operand.is_text || operand.text.empty()) {
      Fail("expected a text");
    }
    Expect(")");
    return operand.text;
  }

  size_t Number() {
    SkipSpace();
    size_t number = 0;
    const char* const end = text_.data() + text_.size();
    const auto read = std::from_chars(text_.data() + at_, end, number);
    if (read.ec != std::errc()) {
      Fail("expected a number");
    }
    at_ = static_cast<size_t>(read.ptr - text_.data());
    return number;
  }

  std::string Text(char quote) {
    std::string value;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        ++at_;
        const char c = text_[at_];
        value += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
      } else {
        value += text_[at_];
      }
      ++at_;
    }
    if (at_ == text_.size()) {
      Fail("a text without its closing quote");
    }
    ++at_;
    return value;
  }

  Operand ReadOperand() {
    SkipSpace();
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
      const char quote = text_[at_++];
      return {Text(quote), true, false, 0};
    }
    if (Take("descriptors")) {
      Operand operand;
      Expect("[");
      operand.descriptor = Number();
      Expect("]");
      operand.text = Path("");
      if (operand.text.empty()) {
        Fail("expected the key of an entry, as in descriptors[0].user_id");
      }
      return operand;
    }
    const std::string word = Word();
    if (word.empty()) {
      Fail("expected an attribute or a text");
    }
    const bool is_number = word.find_first_not_of("0123456789") == std::string::npos;
    return {Path(word), is_number, !is_number, 0};
  }

  std::string Word() {
    SkipSpace();
    const size_t begin = at_;
    while (at_ < text_.size() && IsWord(text_[at_])) {
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  // .a.b["c d"] up to what is a call.
  std::string Path(std::string path) {
    while (at_ < text_.size()) {
      const size_t begin = at_;
      std::string part;
      if (Take("[")) {
        SkipSpace();
        if (at_ == text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) {
          Fail("expected a text in quotes");
        }
        const char quote = text_[at_++];
        part = Text(quote);
        Expect("]");
      } else if (at_ < text_.size() && text_[at_] == '.') {
        ++at_;
        part = Word();
        SkipSpace();
        if (part.empty() || (at_ < text_.size() && text_[at_] == '(')) {
          at_ = begin;
          break;
        }
      } else {
        at_ = begin;
        break;
      }
      path += (path.empty() ? "" : ".") + part;
    }
    return path;
  }

  std::string Named(const Operand& operand) {
    if (operand.is_text) {
      Fail("expected an attribute");
    }
    return attribute_(operand.text, operand.descriptor);
  }

  std::string_view text_;
  const CelAttribute& attribute_;
  size_t at_ = 0;
};

}  // namespace

Predicate ReadCelCondition(std::string_view text, const CelAttribute& attribute) {
  return Parser(text, attribute).Condition();
}

std::string ReadCelVariable(std::string_view text, const CelAttribute& attribute) {
  return Parser(text, attribute).Variable();
}

}  // namespace weir::import
