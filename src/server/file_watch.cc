#include "server/file_watch.h"

#include <sys/inotify.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "server/log.h"

namespace weir::server {

namespace {

constexpr auto kSettle = std::chrono::milliseconds(50);
constexpr auto kSettleMost = std::chrono::milliseconds(500);
constexpr auto kInAnyCase = std::chrono::seconds(30);
// Not IN_MODIFY: a file is looked at when its writer has closed it.
constexpr uint32_t kEvents =
    IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF;

}  // namespace

FileWatch::FileWatch(boost::asio::io_context& context, const std::vector<std::string>& files,
                     std::function<void()> changed)
    : files_(files), changed_(std::move(changed)), events_(context), timer_(context) {
  const int descriptor = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (descriptor < 0) {
    Log(LogLevel::kWarning, "changes of files are seen every 30 s only",
        {{"error", std::strerror(errno)}});
  } else {
    events_.assign(descriptor);
    AddFolders();
    Read();
  }
  LookAfter(kInAnyCase);
}

void FileWatch::Close() {
  boost::system::error_code ignored;
  events_.close(ignored);
  timer_.cancel();
}

// The folder that names the file, and the one where it really is. Added again after each change:
// links may lead elsewhere now, and what is watched already stays as it is.
void FileWatch::AddFolders() {
  std::set<std::filesystem::path> folders;
  for (const std::string& file : files_) {
    std::error_code ignored;
    const std::filesystem::path named = std::filesystem::absolute(file, ignored);
    folders.insert(named.parent_path());
    const std::filesystem::path real = std::filesystem::canonical(named, ignored);
    if (!real.empty()) {
      folders.insert(real.parent_path());
    }
  }
  for (const std::filesystem::path& folder : folders) {
    if (::inotify_add_watch(events_.native_handle(), folder.c_str(), kEvents) < 0) {
      Log(LogLevel::kWarning, "a folder cannot be watched; it is looked at every 30 s",
          {{"folder", folder.string()}, {"error", std::strerror(errno)}});
    }
  }
}

void FileWatch::Read() {
  // Which file it was does not matter: all of them are looked at.
  events_.async_read_some(boost::asio::buffer(buffer_),
                          [this](const boost::system::error_code& error, size_t) {
                            if (!error) {
                              LookSoon();
                              Read();
                            }
                          });
}

void FileWatch::LookSoon() {
  timer_.expires_after(kSettle);
  latest_ = latest_.value_or(timer_.expiry() - kSettle + kSettleMost);
  timer_.expires_at(std::min(timer_.expiry(), *latest_));
  Wait();
}

void FileWatch::LookAfter(std::chrono::milliseconds delay) {
  timer_.expires_after(delay);
  Wait();
}

// For one look: that which was due before goes as the timer is set.
void FileWatch::Wait() {
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) {
      return;
    }
    latest_.reset();
    changed_();
    if (events_.is_open()) {
      AddFolders();
    }
    LookAfter(kInAnyCase);
  });
}

}  // namespace weir::server
