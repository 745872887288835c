// A limiter in another language, kept running beside us so that it can take turns with weir.
//
// The protocol, in lines of text: the peer fills its map and writes "ready"; for each number it
// reads it makes that many decisions and writes the nanoseconds they took; at end of input it
// leaves. A peer that cannot be started is reported on standard error.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure.h"

namespace weir::bench {

class PeerProcess {
 public:
  // nullptr if `command` is empty or does not come up.
  static std::unique_ptr<PeerProcess> Start(const std::string& name,
                                            const std::vector<std::string>& command) {
    if (command.empty()) {
      std::fprintf(stderr, "library_bench: peer missing: %s (not asked for)\n", name.c_str());
      return nullptr;
    }
    int to_peer[2];
    int from_peer[2];
    if (pipe(to_peer) != 0 || pipe(from_peer) != 0) {
      Fail("no pipe for " + name);
    }
    std::vector<char*> arguments;
    for (const std::string& word : command) {
      arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    std::signal(SIGPIPE, SIG_IGN);  // a peer that dies is noticed by what it does not answer
    const pid_t child = fork();
    if (child < 0) {
      Fail("cannot start " + name);
    }
    if (child == 0) {
      dup2(to_peer[0], STDIN_FILENO);
      dup2(from_peer[1], STDOUT_FILENO);
      for (const int end : {to_peer[0], to_peer[1], from_peer[0], from_peer[1]}) {
        close(end);
      }
      execvp(arguments[0], arguments.data());
      _exit(127);
    }
    close(to_peer[0]);
    close(from_peer[1]);
    auto peer = std::unique_ptr<PeerProcess>(
        new PeerProcess(name, child, fdopen(to_peer[1], "w"), fdopen(from_peer[0], "r")));
    if (peer->ReadLine() != "ready") {
      std::fprintf(stderr, "library_bench: peer missing: %s (%s did not come up)\n", name.c_str(),
                   command[0].c_str());
      return nullptr;
    }
    return peer;
  }

  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  ~PeerProcess() {
    std::fclose(to_peer_);
    std::fclose(from_peer_);
    kill(child_, SIGTERM);  // it may be in the middle of a run that nobody waits for
    waitpid(child_, nullptr, 0);
  }

  int64_t Run(size_t count) {
    std::fprintf(to_peer_, "%zu\n", count);
    std::fflush(to_peer_);
    const std::string answer = ReadLine();
    const int64_t taken_ns = std::strtoll(answer.c_str(), nullptr, 10);
    if (taken_ns <= 0) {
      Fail(name_ + " stopped in the middle");
    }
    return taken_ns;
  }

 private:
  PeerProcess(std::string name, pid_t child, std::FILE* to_peer, std::FILE* from_peer)
      : name_(std::move(name)), child_(child), to_peer_(to_peer), from_peer_(from_peer) {}

  std::string ReadLine() {
    std::string line;
    for (int c = std::fgetc(from_peer_); c != EOF && c != '\n'; c = std::fgetc(from_peer_)) {
      line.push_back(static_cast<char>(c));
    }
    return line;
  }

  std::string name_;
  pid_t child_;
  std::FILE* to_peer_;
  std::FILE* from_peer_;
};

}  // namespace weir::bench
