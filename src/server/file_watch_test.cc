// When the files are looked at.
#include "server/file_watch.h"

#include <chrono>
#include <fstream>
#include <string>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "testing/temporary_folder.h"

namespace weir::server {
namespace {

void Write(const std::string& path) {
  std::ofstream(path) << "x";
}

TEST(FileWatch, TellsOfAChangeThoughOthersWriteToTheFolderAllTheTime) {
  const testing::TemporaryFolder folder;
  const std::string rules = folder.path() + "/rules.yaml";
  Write(rules);
  boost::asio::io_context context(1);
  int looks = 0;
  FileWatch watch(context, {rules}, [&looks] { ++looks; });
  Write(rules);
  // Far more often than it takes for a folder to be quiet.
  for (int i = 0; i < 1000 && looks == 0; ++i) {
    Write(folder.path() + "/noise");
    context.run_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(looks, 1);
  watch.Close();
}

TEST(FileWatch, TellsOnceOfSeveralChanges) {
  const testing::TemporaryFolder folder;
  const std::string rules = folder.path() + "/rules.yaml";
  boost::asio::io_context context(1);
  int looks = 0;
  FileWatch watch(context, {rules}, [&] {
    ++looks;
    context.stop();
  });
  Write(rules);
  Write(rules);
  Write(folder.path() + "/more");
  context.run_for(std::chrono::seconds(20));
  EXPECT_EQ(looks, 1);
  watch.Close();
}

}  // namespace
}  // namespace weir::server
