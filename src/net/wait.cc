#include "net/wait.h"

#include <chrono>
#include <thread>

namespace weir::net {

bool WaitUntil(const std::function<bool()>& condition, Duration most) {
  const auto give_up = std::chrono::steady_clock::now() + most;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= give_up) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace weir::net
