// Faults after which charges must still add up: scripts forgotten, replies lost, slots on the move.
#include <algorithm>
#include <atomic>
#include <thread>

#include <boost/asio/io_context.hpp>

#include "redis/client_test.h"
#include "redis/slots.h"
#include "tests/chaos/load.h"
#include "tests/chaos/rig.h"
#include "tests/chaos/row.h"
#include "tests/shared/store_testing.h"

namespace weir::chaos {

namespace {

using shared::FleetStore;
using testing::RedisAdmin;

// Nothing refills while a row runs: what is left tells what was charged.
constexpr uint32_t kBurst = 1'000'000;
constexpr const char* kLasting = "1000000/3650d burst 1000000";

uint64_t ChargedTo(FleetStore& store, const char* quota, uint64_t scope, const std::string& key,
                   uint32_t burst) {
  Decision decision;
  const SharedQuota* const bound = shared::Bound(store, quota, scope);
  const bool told = shared::Eventually([&] {
    decision = shared::AskOne(store, bound, key, {.cost = 0});
    return decision.basis == Basis::kStore;
  });
  return told ? burst - decision.remaining : ~uint64_t{0};
}

uint64_t CountUnanswered(const std::vector<Sample>& samples) {
  return static_cast<uint64_t>(
      std::count_if(samples.begin(), samples.end(), [](const Sample& s) { return !s.by_store(); }));
}

}  // namespace

void ScriptFlush(Report& report, Probe&) {
  Rig rig;
  RedisOptions options = rig.options();
  options.timeout = kPatientTimeout;
  const auto fleet = rig.OpenFleet(options);
  const SharedQuota* const quota = shared::Bound(*fleet[0], kLasting);
  const auto keys = KeysInSlots(*quota, 60, 0, 16383);
  Load load({.nodes = Pointers(fleet),
             .quota = kLasting,
             .keys = keys,
             .per_second = 2000,
             .most_under_way = kPatientCrowd});
  const int64_t seconds = report.quick() ? 5 : 60;
  const int64_t begin = NowNs();
  uint64_t rounds = 0;
  while (NowNs() < begin + seconds * kSecond) {
    rig.AskAll({"SCRIPT", "FLUSH"});
    if (++rounds % 100 == 1) {
      report.Progress(Text(rounds) + " times flushed");
    }
    WaitUntil(begin + static_cast<int64_t>(rounds) * 100 * kMs);
  }
  const std::vector<Sample> samples = load.Stop();
  uint64_t reloads = 0;
  for (const auto& store : fleet) {
    for (const redis::NodeStatus& node : store->Nodes()) {
      reloads += node.no_script;
    }
  }
  report.Expect("0 failed decisions",
                Text(CountUnanswered(samples)) + " of " + Text(samples.size()) + "; " +
                    Text(rounds) + " flushes, " + Text(reloads) + " scripts sent again",
                CountUnanswered(samples) == 0 && reloads > 0);
  uint64_t charged = 0;
  for (const std::string& key : keys) {
    charged += ChargedTo(*fleet[0], kLasting, 1, key, kBurst);
  }
  report.Expect("each charged once",
                Text(charged) + " charged, " + Text(Admitted(samples)) + " admitted",
                charged == Admitted(samples));
}

namespace {

// Calls that bring their own number back, straight on the client.
void EchoThroughFaults(Report& report, Rig& rig, const testing::Faults& faults) {
  redis::Options options = *redis::Options::Parse(rig.url() + "?connections=4");
  // It would keep the crowd from the faults, and has rows of its own.
  options.breaker.consecutive_failures = 1'000'000'000;
  options.breaker.calls_min = 1'000'000'000;
  boost::asio::io_context context{1};
  auto client = *redis::Client::Create(context, options, [](const redis::Event&) {});
  client->Start();
  const auto until = [&](const auto& condition, int64_t patience_ns) {
    const int64_t end = NowNs() + patience_ns;
    while (!condition() && NowNs() < end) {
      context.restart();
      context.run_one_for(std::chrono::milliseconds(5));
    }
    return condition();
  };
  (void)until([&] { return client->ready(); }, 30 * kSecond);
  for (const auto& proxy : rig.proxies()) {
    proxy->Set(faults);
  }
  constexpr size_t kCallers = 48;
  redis::Tally tally;
  redis::Crowd crowd(context, *client, kCallers, tally);
  (void)until([] { return false; }, (report.quick() ? 4 : 30) * kSecond);
  crowd.Stop();
  (void)until([&] { return crowd.busy() == 0; }, 10 * kSecond);
  uint64_t late = 0;
  for (const redis::NodeStatus& node : client->status().nodes) {
    late += node.late_replies;
  }
  report.Expect("0 mismatched replies",
                Text(tally.mismatched) + " of " + Text(tally.good) + "; " +
                    Text(tally.may_have_run) + " calls without a reply, " + Text(late) +
                    " replies came too late",
                tally.mismatched == 0 && tally.good > 0 && late > 0);
  for (const auto& proxy : rig.proxies()) {
    proxy->Set({});
  }
  uint64_t too_often = 0;
  uint64_t charged = 0;
  for (size_t i = 0; i < kCallers; ++i) {
    const std::string key = redis::Crowd::KeyOf(i);
    const size_t master = std::min<size_t>(kMasters * redis::SlotOf(key) / 16384, kMasters - 1);
    const std::string stored = rig.redis(master).Ask({"GET", key});
    const uint64_t times = stored == "(null)" ? 0 : std::strtoull(stored.c_str(), nullptr, 10);
    const redis::Crowd::Books& books = crowd.books()[i];
    charged += times;
    too_often += times < books.answered || times > books.answered + books.unknown ? 1 : 0;
  }
  report.Expect("never more than one charge a call",
                Text(charged) + " charges for " + Text(tally.good + tally.may_have_run) +
                    " calls that may have run; keys out of bounds: " + Text(too_often),
                too_often == 0);
}

// As many ids as the limit has room for. Whoever got no answer asks again with the same id.
void IdsThroughFaults(Report& report, Rig& rig, const testing::Faults& faults) {
  const uint32_t limit = report.quick() ? 300 : 3000;
  const std::string quota = std::to_string(limit) + "/3650d burst " + std::to_string(limit);
  const auto fleet = rig.OpenFleet(rig.options());
  for (const auto& proxy : rig.proxies()) {
    proxy->Set(faults);
  }
  struct Counts {
    std::atomic<uint32_t> next{0};
    std::atomic<uint64_t> admitted{0};
    std::atomic<uint64_t> denied{0};
    std::atomic<uint64_t> again{0};
    std::atomic<uint64_t> given_up{0};
  } counts;
  std::vector<std::thread> clients;
  for (size_t i = 0; i < 2 * kNodes; ++i) {
    clients.emplace_back([&, i] {
      FleetStore& own = *fleet[i % kNodes];
      const SharedQuota* const bound = shared::Bound(own, quota.c_str(), 7);
      for (uint32_t id = counts.next++; id < limit; id = counts.next++) {
        // Less than the store remembers an id, more than a breaker stays open.
        const int64_t patience_ends = NowNs() + 45 * kSecond;
        for (;;) {
          const Decision decision = shared::AskOne(
              own, bound, "user",
              {.on_failure = OnStoreFailure::kDeny, .id = "id " + std::to_string(id)});
          const bool impatient = NowNs() > patience_ends;
          if (decision.basis == Basis::kStore || impatient) {
            counts.given_up += decision.basis != Basis::kStore ? 1 : 0;
            counts.admitted += decision.allowed() ? 1 : 0;
            counts.denied += decision.basis == Basis::kStore && !decision.allowed() ? 1 : 0;
            break;
          }
          ++counts.again;
          WaitFor(5 * kMs);
        }
      }
    });
  }
  for (std::thread& client : clients) {
    client.join();
  }
  for (const auto& proxy : rig.proxies()) {
    proxy->Set({});
  }
  report.Expect("with ids 0 false denials",
                Text(counts.denied) + " of " + Text(limit) + ", " + Text(counts.again) +
                    " asked again, " + Text(counts.given_up) + " given up",
                counts.denied == 0 && counts.admitted == limit && counts.again > 0);
  WaitFor(2 * kSecond);  // what is undone is undone by then
  const uint64_t charged = ChargedTo(*fleet[0], quota.c_str(), 7, "user", limit);
  report.Expect("with ids charged once each",
                Text(charged) + " charged, " + Text(counts.admitted) + " admitted",
                charged == counts.admitted);
}

// Without ids: what was not answered may have been charged, once.
void PlainThroughFaults(Report& report, Rig& rig, const testing::Faults& faults) {
  const auto fleet = rig.OpenFleet(rig.options());
  const SharedQuota* const quota = shared::Bound(*fleet[0], kLasting, 8);
  const auto keys = KeysInSlots(*quota, 30, 0, 16383);
  for (const auto& proxy : rig.proxies()) {
    proxy->Set(faults);
  }
  Load load({.nodes = Pointers(fleet),
             .quota = kLasting,
             .scope = 8,
             .keys = keys,
             .per_second = 600,
             .on_failure = OnStoreFailure::kDeny});
  WaitFor((report.quick() ? 4 : 30) * kSecond);
  const std::vector<Sample> samples = load.Stop();
  for (const auto& proxy : rig.proxies()) {
    proxy->Set({});
  }
  uint64_t charged = 0;
  uint64_t out = 0;
  for (uint32_t key = 0; key < keys.size(); ++key) {
    const std::vector<Sample> own = OfKey(samples, key);
    const uint64_t times = ChargedTo(*fleet[0], kLasting, 8, keys[key], kBurst);
    charged += times;
    out += times < Admitted(own) || times > Admitted(own) + CountUnanswered(own) ? 1 : 0;
  }
  report.Expect("without ids never more than one charge a request",
                Text(charged) + " charged, " + Text(Admitted(samples)) + " admitted, " +
                    Text(CountUnanswered(samples)) + " unanswered of " + Text(samples.size()) +
                    "; keys out of bounds: " + Text(out),
                out == 0 && CountUnanswered(samples) > 0);
}

}  // namespace

void LostReplies(Report& report, Probe&) {
  Rig rig(Rig::Way::kProxied);
  const testing::Faults faults{
      .delay_share = 0.01, .delay_min_ms = 10, .delay_max_ms = 30, .drop_share = 0.05};
  report.Progress("calls that bring their own number back");
  EchoThroughFaults(report, rig, faults);
  report.Progress("requests with ids, asked again until answered");
  IdsThroughFaults(report, rig, faults);
  report.Progress("requests without ids");
  PlainThroughFaults(report, rig, faults);
}

namespace {

// As redis-cli does it: importing, migrating, the keys, and all masters told of the new owner.
class Mover {
 public:
  explicit Mover(Rig& rig) {
    for (size_t i = 0; i < kMasters; ++i) {
      admins_.push_back(std::make_unique<RedisAdmin>(rig.redis(i).port()));
      ids_.push_back(rig.cluster().id(i));
      ports_.push_back(std::to_string(rig.redis(i).port()));
    }
  }

  void Move(uint16_t slot, size_t from, size_t to) {
    const std::string number = std::to_string(slot);
    admins_[to]->Ask({"CLUSTER", "SETSLOT", number, "IMPORTING", ids_[from]});
    admins_[from]->Ask({"CLUSTER", "SETSLOT", number, "MIGRATING", ids_[to]});
    for (;;) {
      const std::string keys = admins_[from]->Ask({"CLUSTER", "GETKEYSINSLOT", number, "100"});
      if (keys.empty()) {
        break;
      }
      std::vector<std::string> command = {"MIGRATE", "127.0.0.1", ports_[to], "",
                                          "0",       "5000",      "KEYS"};
      for (size_t at = 0; at < keys.size();) {
        const size_t end = std::min(keys.find(' ', at), keys.size());
        command.push_back(keys.substr(at, end - at));
        at = end + 1;
        ++keys_moved_;
      }
      admins_[from]->Ask(command);
    }
    for (const size_t told : {to, from, kMasters - to - from}) {
      admins_[told]->Ask({"CLUSTER", "SETSLOT", number, "NODE", ids_[to]});
    }
  }

  [[nodiscard]] uint64_t keys_moved() const noexcept { return keys_moved_; }

 private:
  std::vector<std::unique_ptr<RedisAdmin>> admins_;
  std::vector<std::string> ids_;
  std::vector<std::string> ports_;
  uint64_t keys_moved_ = 0;
};

}  // namespace

void Reshard(Report& report, Probe&) {
  Rig rig;
  RedisOptions options = rig.options();
  options.timeout = kPatientTimeout;
  const auto fleet = rig.OpenFleet(options);
  const uint16_t slots = report.quick() ? 100 : 1000;
  const SharedQuota* const quota = shared::Bound(*fleet[0], kLasting);
  const SharedQuota* const quota_of_ids = shared::Bound(*fleet[0], kLasting, 2);
  // Most of them on the move, some of them not.
  const auto some_keys = [&](const SharedQuota& of) {
    std::vector<std::string> keys = KeysInSlots(of, 200, 0, static_cast<uint16_t>(slots - 1));
    const std::vector<std::string> others = KeysInSlots(of, 40, slots, 16383);
    keys.insert(keys.end(), others.begin(), others.end());
    return keys;
  };
  const auto keys = some_keys(*quota);
  const auto keys_of_ids = some_keys(*quota_of_ids);
  Load plain({.nodes = Pointers(fleet),
              .quota = kLasting,
              .keys = keys,
              .per_second = 1200,
              .most_under_way = kPatientCrowd});
  Load with_ids({.nodes = Pointers(fleet),
                 .quota = kLasting,
                 .scope = 2,
                 .keys = keys_of_ids,
                 .per_second = 600,
                 .ids = true,
                 .most_under_way = kPatientCrowd});
  WaitFor(kSecond);
  Mover mover(rig);
  const int64_t begin = NowNs();
  uint64_t rounds = 0;
  do {
    report.Progress("moving " + Text(slots) + " slots there and back, round " + Text(++rounds));
    for (uint16_t slot = 0; slot < slots; ++slot) {
      mover.Move(slot, 0, 1);
    }
    for (uint16_t slot = 0; slot < slots; ++slot) {
      mover.Move(slot, 1, 0);
    }
  } while (!report.quick() && NowNs() < begin + 60 * kSecond);
  WaitFor(kSecond);
  std::vector<Sample> samples = plain.Stop();
  const uint64_t of_plain = Admitted(samples);
  const std::vector<Sample> more = with_ids.Stop();
  samples.insert(samples.end(), more.begin(), more.end());
  uint64_t redirects = 0;
  uint64_t retries = 0;
  for (const auto& store : fleet) {
    for (const redis::NodeStatus& node : store->Nodes()) {
      redirects += node.redirects;
      retries += node.retries;
    }
  }
  report.Expect("0 errors",
                Text(CountUnanswered(samples)) + " of " + Text(samples.size()) + "; " +
                    Text(rounds) + " rounds, " + Text(mover.keys_moved()) + " keys moved, " +
                    Text(redirects) + " redirections, " + Text(retries) + " tries again",
                CountUnanswered(samples) == 0 && redirects > 0);
  uint64_t charged = 0;
  uint64_t with_ids_charged = 0;
  for (const std::string& key : keys) {
    charged += ChargedTo(*fleet[0], kLasting, 1, key, kBurst);
  }
  for (const std::string& key : keys_of_ids) {
    with_ids_charged += ChargedTo(*fleet[0], kLasting, 2, key, kBurst);
  }
  report.Expect("0 double charges",
                Text(charged + with_ids_charged) + " charged, " + Text(Admitted(samples)) +
                    " admitted (with ids " + Text(with_ids_charged) + " and " +
                    Text(Admitted(more)) + ")",
                charged == of_plain && with_ids_charged == Admitted(more));
  report.Show("p99, p99.9 meanwhile",
              Ms(Percentile(samples, 0.99)) + ", " + Ms(Percentile(samples, 0.999)));
}

}  // namespace weir::chaos
