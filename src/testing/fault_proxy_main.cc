// fault_proxy UPSTREAM [PORT [SEED]]: the fault proxy as a program. Prints "listening
// 127.0.0.1:PORT", then obeys one command a line from standard input (fault_proxy.h lists them) and
// answers each with a line. Ends with its input.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "testing/fault_proxy.h"

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: %s ADDRESS:PORT|unix:/PATH [PORT [SEED]]\n", argv[0]);
    return 2;
  }
  weir::testing::FaultProxy proxy(
      {.upstream = argv[1],
       .port = static_cast<uint16_t>(argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 0),
       .seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1});
  std::cout << "listening 127.0.0.1:" << proxy.port() << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << proxy.Command(line) << std::endl;
  }
  return 0;
}
