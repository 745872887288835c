// Tells when files may have changed: by inotify on their folders, so that editors, renames and the
// symbolic links of a Kubernetes ConfigMap are all seen.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace weir::server {

class FileWatch {
 public:
  // `changed` runs on the context's thread, a moment after the last of several changes, but within
  // half a second of the first, since others may write to the same folder all the time; and once
  // every half minute in any case: some file systems tell of nothing.
  FileWatch(boost::asio::io_context& context, const std::vector<std::string>& files,
            std::function<void()> changed);

  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  void Close();

 private:
  void AddFolders();
  void Read();
  void LookSoon();
  void LookAfter(std::chrono::milliseconds delay);
  void Wait();

  const std::vector<std::string> files_;
  const std::function<void()> changed_;
  boost::asio::posix::stream_descriptor events_;
  boost::asio::steady_timer timer_;
  // When to look at the latest; set by the first change after a look.
  std::optional<std::chrono::steady_clock::time_point> latest_;
  alignas(8) char buffer_[4096];
};

}  // namespace weir::server
