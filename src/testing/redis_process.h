// A real redis-server for one test, on a free port, with nothing saved; gone with its object.
//
//   RedisProcess redis({.config = {"requirepass secret"}});
//   EXPECT_EQ(redis.Ask({"AUTH", "secret"}), "OK");
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "testing/temporary_folder.h"

namespace weir::testing {

// One blocking connection, for tests to set things up and look at them.
class RedisAdmin {
 public:
  // Gives up after some seconds; then every answer is "".
  explicit RedisAdmin(uint16_t port);
  ~RedisAdmin();
  RedisAdmin(const RedisAdmin&) = delete;
  RedisAdmin& operator=(const RedisAdmin&) = delete;

  // The reply as one text: elements of arrays parted by blanks, errors as "-ERR …", null as
  // "(null)".
  // "": the connection has ended.
  std::string Ask(const std::vector<std::string>& command);

 private:
  int socket_ = -1;
  std::string input_;
};

class RedisProcess {
 public:
  struct Options {
    std::vector<std::string> config;  // lines of redis.conf
    bool sentinel = false;
    // The port is free at that moment; another program may take it, then another is tried.
    uint16_t port = 0;
    // Else it answers errors until it is given one, or speaks TLS only.
    bool wait_for_ping = true;
  };

  // Ends the program with a message if redis-server does not start.
  explicit RedisProcess(const Options& options);
  ~RedisProcess();
  RedisProcess(const RedisProcess&) = delete;
  RedisProcess& operator=(const RedisProcess&) = delete;

  [[nodiscard]] uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] const std::string& folder() const noexcept { return folder_.path(); }
  [[nodiscard]] std::string unix_path() const { return folder_.path() + "/redis.sock"; }

  // On a connection of its own each time.
  std::string Ask(const std::vector<std::string>& command) const;

  void Kill();      // as kill -9 does, and waits for its end
  void Pause();     // SIGSTOP
  void Continue();  // SIGCONT
  void Restart();   // on the same port, empty. REQUIRES: killed
  [[nodiscard]] bool running() const noexcept { return pid_ > 0; }

 private:
  void Start();
  bool TryStart();

  const Options options_;
  const TemporaryFolder folder_;
  uint16_t port_ = 0;
  pid_t pid_ = -1;
};

[[nodiscard]] uint16_t FreePort();

// A Cluster of masters without replicas, or with one each; ready when this returns.
class RedisCluster {
 public:
  explicit RedisCluster(size_t masters, size_t replicas_each = 0,
                        const std::vector<std::string>& config = {});

  [[nodiscard]] size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] RedisProcess& node(size_t index) { return *nodes_[index]; }
  [[nodiscard]] std::string id(size_t index) { return nodes_[index]->Ask({"CLUSTER", "MYID"}); }
  [[nodiscard]] std::vector<uint16_t> ports() const;

  // Moves a slot and its keys, as redis-cli does it: importing, migrating, keys, owner. `between`
  // is called when both are set and the keys have not moved yet.
  template <class Between>
  void MoveSlot(uint16_t slot, size_t from, size_t to, Between between) {
    BeginMove(slot, from, to);
    between();
    EndMove(slot, from, to);
  }
  void BeginMove(uint16_t slot, size_t from, size_t to);
  void EndMove(uint16_t slot, size_t from, size_t to);

 private:
  bool IsReady();
  // All nodes tell the same of who has which slot since when.
  bool Agrees();

  std::vector<std::unique_ptr<RedisProcess>> nodes_;
};

}  // namespace weir::testing
