// Deadlines against a list that is searched from end to end.
#include "net/deadlines.h"

#include <map>
#include <memory>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir::net {
namespace {

TEST(Deadlines, AreMetOnTheirSecondAndNotBefore) {
  Deadlines deadlines;
  Deadlines::Entry entry;
  deadlines.Set(entry, 5, 1);
  int met = 0;
  for (Deadlines::Seconds now = 2; now < 5; ++now) {
    deadlines.Advance(now, [&](Deadlines::Entry&) { ++met; });
  }
  EXPECT_EQ(met, 0);
  deadlines.Advance(5, [&](Deadlines::Entry& which) {
    ++met;
    deadlines.Remove(which);
  });
  EXPECT_EQ(met, 1);
}

TEST(Deadlines, NeverIsNever) {
  Deadlines deadlines;
  Deadlines::Entry entry;
  deadlines.Set(entry, Deadlines::kNever, 1);
  for (Deadlines::Seconds now = 2; now < 1000; ++now) {
    deadlines.Advance(now, [&](Deadlines::Entry&) { FAIL(); });
  }
  deadlines.Remove(entry);
}

RC_GTEST_PROP(DeadlinesProperty, AgreeWithASlowList, ()) {
  Deadlines deadlines;
  std::vector<std::unique_ptr<Deadlines::Entry>> entries;
  std::map<Deadlines::Entry*, Deadlines::Seconds> expected;
  for (int i = 0; i < 8; ++i) {
    entries.push_back(std::make_unique<Deadlines::Entry>());
  }
  Deadlines::Seconds now = 1;
  const int steps = *rc::gen::inRange(1, 200);
  for (int i = 0; i < steps; ++i) {
    Deadlines::Entry* const entry = entries[*rc::gen::inRange<size_t>(0, entries.size())].get();
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
      case 1: {
        const Deadlines::Seconds at = now + *rc::gen::inRange<Deadlines::Seconds>(1, 200);
        deadlines.Set(*entry, at, now);
        expected[entry] = at;
        break;
      }
      case 2:
        deadlines.Remove(*entry);
        expected.erase(entry);
        break;
      default: {
        now += *rc::gen::element<Deadlines::Seconds>(1, 1, 1, 3, 63, 64, 65, 300);
        std::set<Deadlines::Entry*> met;
        deadlines.Advance(now, [&](Deadlines::Entry& which) {
          RC_ASSERT(met.insert(&which).second);
          deadlines.Remove(which);
        });
        std::set<Deadlines::Entry*> due;
        std::erase_if(expected, [&](const auto& item) {
          if (item.second > now) {
            return false;
          }
          due.insert(item.first);
          return true;
        });
        RC_ASSERT(met == due);
      }
    }
  }
}

}  // namespace
}  // namespace weir::net
