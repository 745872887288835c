// Many keys with one call and one clock read, as a proxy would after draining its sockets.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "weir/limiter.h"

int main() {
  auto limiter = weir::Limiter::Create(*weir::Quota::Parse("100/min burst 10"));
  if (!limiter) {
    std::puts(limiter.error().message.c_str());
    return 1;
  }
  std::vector<std::string> clients;
  for (int i = 0; i < 1000; ++i) {
    clients.push_back("10.0.0." + std::to_string(i % 50));
  }
  const std::vector<std::string_view> keys(clients.begin(), clients.end());
  std::vector<weir::Decision> decisions(keys.size());
  limiter->CheckMany(keys, decisions);
  int allowed = 0;
  for (const weir::Decision& decision : decisions) {
    allowed += decision.allowed() ? 1 : 0;
  }
  std::printf("%d of %zu requests from 50 clients were allowed\n", allowed, keys.size());
  return allowed == 500 ? 0 : 1;
}
