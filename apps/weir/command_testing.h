// Calling a subcommand as a shell would, for tests beside this file.
#pragma once

#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "apps/weir/commands.h"

namespace weir::app {

struct Answer {
  int status = -1;
  std::string out;
  std::string err;
};

using Register = void (*)(CLI::App& app, int& status);

// `arguments` begin with the subcommand's name.
inline Answer CallCommand(std::initializer_list<Register> commands,
                          const std::vector<std::string>& arguments) {
  Answer answer;
  CLI::App app;
  for (const Register command : commands) {
    command(app, answer.status);
  }
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  app.parse(reversed);
  answer.out = ::testing::internal::GetCapturedStdout();
  answer.err = ::testing::internal::GetCapturedStderr();
  return answer;
}

inline std::string File(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

}  // namespace weir::app
