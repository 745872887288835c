#include "server/rule_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "server/log.h"

namespace weir::server {

namespace {

constexpr std::string_view kNextDocument = "---\n";

// Tells where a file begins among several.
std::string Mark(const std::string& file) {
  return "# weir: the file " + file + "\n";
}

// Documents of one stream.
std::string Joined(const auto& texts) {
  std::string all;
  for (const auto& one : texts) {
    if (!all.empty()) {
      all += kNextDocument;
    }
    if (texts.size() > 1) {
      all += Mark(one.file);
    }
    all += one.text;
    if (!all.ends_with('\n')) {
      all += '\n';
    }
  }
  return all;
}

std::string FirstError(const std::vector<RuleIssue>& issues) {
  size_t errors = 0;
  std::string first;
  for (const RuleIssue& issue : issues) {
    if (issue.level == IssueLevel::kError && errors++ == 0) {
      first = ToString(issue);
    }
  }
  return errors > 1 ? first + " (and " + std::to_string(errors - 1) + " more)" : first;
}

// Whether the last line with anything in it is the end mark of YAML.
bool HasEndMark(std::string_view text) {
  const size_t last = text.find_last_not_of(" \t\r\n");
  if (last == std::string_view::npos) {
    return false;
  }
  text = text.substr(0, last + 1);
  return text == "..." || text.ends_with("\n...");
}

// A file that was cut short while it was written can still be good YAML, with rules missing. So
// what is the beginning of what was there before, or lacks the end mark that was there before, is
// not believed. Empty: nothing speaks against it.
std::string CutShort(const std::string& file, std::string_view text, std::string_view before) {
  if (HasEndMark(before) && !HasEndMark(text)) {
    return file +
           ": the end mark (a line of three dots) is missing that was there before, as if the file "
           "were cut short; end it with the mark";
  }
  if (before.starts_with(text) && before.size() > text.size() &&
      before.substr(text.size()) != "\n") {
    return file +
           ": it is the beginning of what was there before, as if it were cut short; to take rules "
           "away, change something else with it (a comment will do), or end the file with a line "
           "of three dots";
  }
  return {};
}

std::string CutShort(const auto& texts, const auto& before) {
  std::string why;
  for (size_t i = 0; i < texts.size() && i < before.size() && why.empty(); ++i) {
    why = CutShort(texts[i].file, texts[i].text, before[i].text);
  }
  return why;
}

// All of them, to the byte.
std::string Exactly(const auto& texts) {
  std::string all;
  for (const auto& one : texts) {
    all += one.text + '\0';
  }
  return all;
}

Result<std::string> ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    if (struct stat found{}; file && ::stat(path.c_str(), &found) == 0 && found.st_size == 0) {
      return std::string();  // rdbuf of an empty file counts as a failure
    }
    return Error::Invalid(path + ": " + std::strerror(errno != 0 ? errno : ENOENT));
  }
  return text.str();
}

}  // namespace

RuleSource::RuleSource(std::vector<std::string> files, std::string state_dir)
    : files_(std::move(files)), state_dir_(std::move(state_dir)) {}

RuleStatus RuleSource::status() const {
  const base::MutexLock lock(mutex_);
  return status_;
}

std::string RuleSource::text() const {
  const base::MutexLock lock(mutex_);
  return text_;
}

Result<RuleSource::Texts> RuleSource::Read() const {
  Texts texts;
  for (const std::string& file : files_) {
    Result<std::string> text = ReadWhole(file);
    if (!text) {
      return text.error();
    }
    texts.push_back({file, *std::move(text)});
  }
  return texts;
}

void RuleSource::Succeed(const RuleSet& rules, Texts texts, std::vector<RuleIssue> issues) {
  for (const RuleIssue& issue : issues) {
    Log(LogLevel::kWarning, "rules: " + ToString(issue));
  }
  std::string text = Joined(texts);
  in_effect_ = std::move(texts);
  refused_.clear();
  const base::MutexLock lock(mutex_);
  text_ = std::move(text);
  status_.version = rules.version();
  status_.rule_count = rules.rules().size();
  ++status_.loads;
  status_.error.clear();
  status_.from_last_good = false;
  status_.issues = std::move(issues);
}

RuleSource::Outcome RuleSource::Refuse(const std::string& seen, std::string error,
                                       std::vector<RuleIssue> issues) {
  if (seen == refused_) {
    return Outcome::kUnchanged;
  }
  refused_ = seen;
  Log(LogLevel::kError, "rules not taken; those before stay in effect", {{"error", error}});
  const base::MutexLock lock(mutex_);
  ++status_.failures;
  status_.error = std::move(error);
  status_.issues = std::move(issues);
  return Outcome::kRefused;
}

RuleSource::Texts RuleSource::LastGood() const {
  const Result<std::string> all =
      state_dir_.empty() ? Error::Invalid("none is kept") : ReadWhole(LastGoodPath());
  if (!all) {
    return {};
  }
  if (files_.size() == 1) {
    return {{files_.front(), *all}};
  }
  Texts texts;
  size_t end = all->size();
  for (auto file = files_.rbegin(); file != files_.rend(); ++file) {
    const std::string mark = Mark(*file);
    const size_t found = all->rfind(mark, end);
    if (found == std::string::npos) {
      return {};
    }
    const size_t begin = found + mark.size();
    texts.insert(texts.begin(), {*file, all->substr(begin, end - begin)});
    end = found - std::min(found, kNextDocument.size());
  }
  return texts;
}

Result<std::shared_ptr<const RuleSet>> RuleSource::LoadFirst() {
  if (files_.empty()) {
    RuleParse none = RuleSet::Parse("rules: []", "no rules");
    return none.rules;
  }
  const base::MutexLock loading(reload_mutex_);
  const RuleParse parsed = RuleSet::Load(std::span<const std::string>(files_));
  std::string error = FirstError(parsed.issues);
  Texts last_good = LastGood();
  Result<Texts> texts = Read();
  if (parsed.rules != nullptr) {
    error = texts ? CutShort(*texts, last_good) : texts.error().message;
    if (error.empty()) {
      KeepLastGood(*texts);
      Succeed(*parsed.rules, *std::move(texts), parsed.issues);
      return parsed.rules;
    }
  }
  if (!state_dir_.empty()) {
    RuleParse last = RuleSet::Load(LastGoodPath());
    if (last.rules != nullptr) {
      Log(LogLevel::kError, "rules not taken; starting with the last good ones",
          {{"error", error}, {"file", LastGoodPath()}});
      Result<std::string> text = ReadWhole(LastGoodPath());
      // What the next look at the files compares them with, and what it need not tell of again.
      in_effect_ = std::move(last_good);
      refused_ = texts ? Exactly(*texts) : texts.error().message;
      const base::MutexLock lock(mutex_);
      text_ = text ? *std::move(text) : text_;
      status_ = {.version = last.rules->version(),
                 .rule_count = last.rules->rules().size(),
                 .loads = 1,
                 .failures = 1,
                 .error = error,
                 .from_last_good = true,
                 .issues = parsed.issues};
      return last.rules;
    }
  }
  return Error::Invalid(error);
}

RuleSource::Outcome RuleSource::Reload(const Apply& apply) {
  const base::MutexLock reloading(reload_mutex_);
  Result<Texts> texts = Read();
  if (!texts) {
    return Refuse(texts.error().message, texts.error().message, {});
  }
  const std::string all = Exactly(*texts);
  if (*texts == in_effect_) {
    if (!refused_.empty()) {  // back to what is in effect anyway
      refused_.clear();
      const base::MutexLock lock(mutex_);
      status_.error.clear();
      status_.from_last_good = false;
    }
    return Outcome::kUnchanged;
  }
  for (const Text& one : *texts) {
    if (!one.text.ends_with('\n')) {
      return Refuse(all,
                    one.file +
                        ": the last line has no end, as if the file were cut short; end it with a "
                        "newline",
                    {});
    }
  }
  if (std::string why = CutShort(*texts, in_effect_); !why.empty()) {
    return Refuse(all, std::move(why), {});
  }
  RuleParse parsed = texts->size() == 1 ? RuleSet::Parse(texts->front().text, texts->front().file)
                                        : RuleSet::Load(std::span<const std::string>(files_));
  // Several files are read once more for that; if one has changed meanwhile, the next look tells.
  if (const Result<Texts> again = Read(); texts->size() > 1 && (!again || *again != *texts)) {
    return Outcome::kUnchanged;
  }
  if (parsed.rules == nullptr) {
    std::string error = FirstError(parsed.issues);
    return Refuse(all, std::move(error), std::move(parsed.issues));
  }
  if (const Result<void> applied = apply(parsed.rules); !applied) {
    return Refuse(all, applied.error().message, std::move(parsed.issues));
  }
  KeepLastGood(*texts);
  Log(LogLevel::kInfo, "rules changed",
      {{"version", parsed.rules->version()}, {"rules", parsed.rules->rules().size()}});
  Succeed(*parsed.rules, *std::move(texts), std::move(parsed.issues));
  return Outcome::kApplied;
}

// Written whole and then renamed, so that a crash leaves the one before or this one.
void RuleSource::KeepLastGood(const Texts& texts) const {
  if (state_dir_.empty()) {
    return;
  }
  const std::string path = LastGoodPath();
  const std::string temporary = path + ".new";
  const std::string text = Joined(texts);
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool good = file >= 0;
  size_t done = 0;
  while (good && done < text.size()) {
    const ssize_t wrote = ::write(file, text.data() + done, text.size() - done);
    good = wrote > 0;
    done += good ? static_cast<size_t>(wrote) : 0;
  }
  good = good && ::fsync(file) == 0;
  if (file >= 0) {
    good = ::close(file) == 0 && good;
  }
  good = good && ::rename(temporary.c_str(), path.c_str()) == 0;
  if (!good) {
    Log(LogLevel::kWarning, "the last good rules could not be kept",
        {{"file", path}, {"error", std::strerror(errno)}});
  }
}

}  // namespace weir::server
