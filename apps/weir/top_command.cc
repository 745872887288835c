// weir top: what a server decides right now, rule by rule and key by key.
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "weir/time.h"

#include "apps/weir/admin_client.h"
#include "apps/weir/commands.h"
#include "apps/weir/target.h"
#include "apps/weir/terminal.h"
#include "apps/weir/top/snapshot.h"
#include "apps/weir/top/view.h"
#include "codec/http/syntax.h"

namespace weir::app {
namespace {

constexpr int kRefreshMs = 1000;

struct TopFlags {
  std::string admin = "127.0.0.1:8081";
  std::string token_file;
  std::string rule;
  size_t keys = 5;
  bool once = false;
  bool no_color = false;
  bool ascii = false;
};

std::atomic<bool> top_ended = false;

int Fail(const Error& error) {
  std::fprintf(stderr, "weir top: %s\n", error.message.c_str());
  return error.code == ErrorCode::kInvalidArgument ? kUsage : kFailure;
}

// As a part of a query: all but letters, digits and what never means anything there.
std::string Encoded(const std::string& text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string encoded;
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (codec::http::IsLetter(character) || codec::http::IsDigit(character) || character == '-' ||
        character == '_') {
      encoded += character;
    } else {
      encoded += '%';
      encoded += kHex[byte >> 4U];
      encoded += kHex[byte & 15U];
    }
  }
  return encoded;
}

Result<top::Snapshot> Look(const AdminClient& client, const TopFlags& flags) {
  const auto metrics = client.Get("/metrics");
  if (!metrics) {
    return metrics.error();
  }
  auto snapshot = top::ReadMetrics(*metrics);
  if (!snapshot) {
    return Error{ErrorCode::kUnavailable, snapshot.error().message};
  }
  snapshot->at = SystemClock().Now();
  std::string path = "/v1/top?most=" + std::to_string(flags.keys);
  if (!flags.rule.empty()) {
    path += "&rule=" + Encoded(flags.rule);
    std::erase_if(snapshot->rules,
                  [&flags](const top::RuleSnapshot& rule) { return rule.rule != flags.rule; });
  }
  const auto keys = client.Get(path);
  if (!keys) {
    return keys.error();
  }
  if (auto read = top::ReadTopKeys(*keys, *snapshot); !read) {
    return Error{ErrorCode::kUnavailable, read.error().message};
  }
  return snapshot;
}

// A screen of its own while the view lives, keys without Enter, and all as it was afterwards.
class Screen {
 public:
  Screen() {
    std::fputs("\x1b[?1049h\x1b[?25l", stdout);
    if (tcgetattr(STDIN_FILENO, &before_) == 0) {
      termios quiet = before_;
      quiet.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      changed_ = tcsetattr(STDIN_FILENO, TCSANOW, &quiet) == 0;
    }
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen() {
    if (changed_) {
      tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    }
    std::fputs("\x1b[?25h\x1b[?1049l", stdout);
    std::fflush(stdout);
  }

  static void Draw(const std::string& text) {
    std::fputs("\x1b[H\x1b[2J", stdout);
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }

 private:
  termios before_{};
  bool changed_ = false;
};

// Until the next look is due, a key is pressed, or the window changes its size. False: it is over.
bool Wait(bool interactive) {
  pollfd keyboard{.fd = interactive ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
  if (poll(&keyboard, 1, kRefreshMs) > 0) {
    char key = 0;
    return read(STDIN_FILENO, &key, 1) == 1 && key != 'q';
  }
  return !top_ended;
}

top::ViewOptions Options(const TopFlags& flags, const AdminClient& client, bool interactive) {
  top::ViewOptions options;
  options.terminal = DetectTerminal();
  if (flags.no_color) {
    options.terminal.colors = Colors::kNone;
  }
  if (flags.ascii) {
    options.terminal.charset = Charset::kAscii;
  }
  winsize size{};
  if (interactive && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    options.lines_max = size.ws_row;
  }
  options.keys_max = flags.keys;
  options.address = client.address();
  return options;
}

int Top(const TopFlags& flags) {
  auto target = app::Target::Parse("http://" + flags.admin);
  if (!target || target->path != "/") {
    return Fail(Error::Invalid("--admin: '" + flags.admin + "' is not ADDRESS:PORT"));
  }
  auto token = ReadToken(flags.token_file);
  if (!token) {
    return Fail(token.error());
  }
  const AdminClient client(*target, *token);
  auto now = Look(client, flags);
  if (!now) {
    return Fail(now.error());
  }
  if (!flags.rule.empty() && now->rules.empty()) {
    return Fail(Error::Invalid("--rule: the server has no rule '" + flags.rule + "'"));
  }
  const bool interactive = !flags.once && isatty(STDOUT_FILENO) != 0 && isatty(STDIN_FILENO) != 0;
  std::optional<top::Snapshot> before;
  top::Snapshot shown = *std::move(now);
  std::string problem;
  top_ended = false;
  for (const int number : {SIGINT, SIGTERM, SIGWINCH}) {
    struct sigaction action{};
    action.sa_handler = [](int which) { top_ended = top_ended || which != SIGWINCH; };
    sigaction(number, &action, nullptr);  // without SA_RESTART, so that it ends the waiting
  }
  std::unique_ptr<Screen> screen = interactive ? std::make_unique<Screen>() : nullptr;
  do {
    top::ViewOptions options = Options(flags, client, interactive);
    options.problem = problem;
    const std::string text = top::View(before, shown, options);
    if (interactive) {
      Screen::Draw(text);
    } else {
      std::fputs((text + (flags.once ? "" : "\n")).c_str(), stdout);
      std::fflush(stdout);
    }
    if (flags.once || !Wait(interactive)) {
      break;
    }
    auto next = Look(client, flags);
    problem = next ? "" : next.error().message;
    if (next) {
      before = std::exchange(shown, *std::move(next));
    }
  } while (!top_ended && std::ferror(stdout) == 0);
  return kSuccess;
}

}  // namespace

void RegisterTop(CLI::App& app, int& status) {
  auto flags = std::make_shared<TopFlags>();
  CLI::App* const command =
      app.add_subcommand("top", "Watch a server: decisions and denials by rule, and the top keys");
  command->add_option("--admin", flags->admin, "Admin address of the server (127.0.0.1:8081)")
      ->envname("WEIR_ADMIN")
      ->type_name("ADDRESS:PORT");
  command->add_option("--token-file", flags->token_file, "Its first line is the admin token")
      ->envname("WEIR_ADMIN_TOKEN_FILE")
      ->type_name("FILE");
  command->add_option("--rule", flags->rule, "Only this rule")->type_name("NAME");
  command->add_option("-k,--keys", flags->keys, "Top keys of each rule (5)")
      ->check(CLI::Range(1, 100))
      ->type_name("N");
  command->add_flag("--once", flags->once, "Totals since the server started, as text, and go");
  command->add_flag("--no-color", flags->no_color, "No colours; NO_COLOR does the same");
  command->add_flag("--ascii", flags->ascii, "No characters beyond ASCII");
  command->footer(
      "\nLooks once a second; q or Ctrl-C ends it. Rates are of the last second; a key's counts "
      "are\n"
      "those that the server keeps for it, and '<=' stands where it may have counted too much.\n"
      "Where the output is no terminal it is text, a block a second.\n"
      "\nExamples:\n"
      "  weir top                                 the server of this machine\n"
      "  weir top --rule login -k 20              who hammers the login\n"
      "  weir top --admin 10.0.0.5:8081 --token-file admin.token\n"
      "  weir top --once | mail -s limits me      totals, for a report");
  command->callback([flags, &status] { status = Top(*flags); });
}

}  // namespace weir::app
