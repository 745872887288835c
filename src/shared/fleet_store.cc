#include "shared/fleet_store.h"

#include <algorithm>
#include <future>
#include <optional>
#include <utility>

#include "shared/deciding.h"
#include "shared/one_call.h"
#include "shared/pulse.h"

namespace weir::shared {

namespace {

constexpr Duration kPublishEvery = std::chrono::milliseconds(500);
constexpr Duration kStartEvery = std::chrono::milliseconds(2);
constexpr int kStartLooks = 500;
constexpr Duration kRepayEvery = std::chrono::milliseconds(10);
constexpr Duration kLookEvery = std::chrono::milliseconds(250);
constexpr size_t kIdleMax = 1024;
constexpr size_t kToldDepthMax = 8;

// What attached loops ask by. A fiber stays on its thread, so this is its own.
struct Attached {
  const FleetStore* store;
  Lane* lane;
};
thread_local std::vector<Attached> attached_here;  // NOLINT: one per store, of which there are few

Result<redis::Options> ClientOptions(const RedisOptions& options) {
  auto client = redis::Options::Parse(options.url);
  if (client && options.timeout > Duration::zero()) {
    client->timeout = options.timeout;
  }
  return client;
}

uint64_t IdMemoryMs(const RedisOptions& options) {
  return static_cast<uint64_t>(
      std::chrono::ceil<std::chrono::milliseconds>(options.id_memory).count());
}

Result<void> CheckOptions(const RedisOptions& options) {
  if (options.nodes < 1 || options.nodes > 65535) {
    return Error::Invalid("nodes: " + std::to_string(options.nodes) +
                          " is not allowed; expected 1 to 65535");
  }
  if (options.id_memory < std::chrono::milliseconds(1) || options.id_memory > Quota::kMaxLease) {
    return Error::Invalid("id_memory: expected 1 ms to 366 days");
  }
  if (options.denial_memory < Duration::zero()) {
    return Error::Invalid("denial_memory: expected 0 (none) or more");
  }
  if (options.timeout < Duration::zero() || options.timeout > std::chrono::minutes(1)) {
    return Error::Invalid("timeout: expected 0 (as the URL says) to 1 minute");
  }
  return {};
}

}  // namespace

// Of the own loop.
struct FleetStore::House {
  std::promise<void> ready;
  bool told_ready = false;
  int waited = 0;
  size_t cursor = 0;
  bool found_some = false;  // in this pass over the book
};

// A function to be told, and what tells it; kept and used again.
struct FleetStore::Told {
  std::optional<Completion> completion;
  std::function<void()> then;
};

Result<std::shared_ptr<FleetStore>> FleetStore::Create(const RedisOptions& options) {
  if (auto checked = CheckOptions(options); !checked) {
    return checked.error();
  }
  auto client = ClientOptions(options);
  if (!client) {
    return client.error();
  }
  auto book = KeyBook::Create(options.memory_bytes);
  if (!book) {
    return book.error();
  }
  std::shared_ptr<FleetStore> store(new FleetStore(options, std::move(*client), std::move(*book)));
  if (auto started = store->Start(); !started) {
    return started.error();
  }
  return store;
}

FleetStore::FleetStore(const RedisOptions& options, redis::Options client_options,
                       std::unique_ptr<KeyBook> book)
    : options_(options),
      client_options_(std::move(client_options)),
      book_(std::move(book)),
      local_ids_(IdMemoryMs(options)),
      quotas_(options.nodes, options.clock != nullptr ? *options.clock : SystemClock()),
      secret_(options.fleet_secret),
      common_{.clock = options.clock != nullptr ? *options.clock : SystemClock(),
              .book = *book_,
              .local_ids = local_ids_,
              .quotas = quotas_,
              .secret = secret_,
              .denial_memory = options.denial_memory,
              .id_memory_ms = IdMemoryMs(options),
              .closed_retry = client_options_.breaker.open_after_disconnect},
      events_(options.on_event) {}

FleetStore::~FleetStore() {
  own_loop_.Run([this] {
    const base::MutexLock lock(mutex_);
    pulses_.erase(own_lane_.get());
  });
  own_loop_.Run([this] { own_lane_.reset(); });  // its calls fail now, and may look for the lock
  own_loop_.Stop();
}

Result<void> FleetStore::Start() {
  auto lane = NewLane(own_loop_.context());
  if (!lane) {
    return lane.error();
  }
  own_lane_ = std::move(*lane);
  house_ = std::make_unique<House>();
  own_loop_.Start("weir-store", -1);
  own_loop_.Run([this] {
    own_lane_->client().Start();
    const base::MutexLock lock(mutex_);
    pulses_[own_lane_.get()] =
        std::make_unique<Pulse>(own_loop_.context(), [this] { return KeepHouse(); });
  });
  const auto ready = house_->ready.get_future();
  (void)ready.wait_for(options_.start_wait);  // what is there by then is looked at
  return options_.allow_eviction ? Result<void>() : RefuseEviction();
}

Result<void> FleetStore::RefuseEviction() {
  redis::Status status;
  own_loop_.Run([&] { status = own_lane_->client().status(); });
  for (const redis::NodeStatus& node : status.nodes) {
    if (node.evicts) {
      return Error::Invalid(
          "Redis at " + node.address + " has maxmemory-policy " + node.policy +
          ": when its memory is full it forgets keys, and whoever it forgot gets a fresh limit; "
          "set maxmemory-policy noeviction there, or allow eviction by name");
    }
  }
  return {};
}

Result<std::unique_ptr<Lane>> FleetStore::NewLane(boost::asio::io_context& context) {
  // The lane is not there yet; its client's address stands for it.
  auto who = std::make_shared<int>(0);
  auto client = redis::Client::Create(
      context, client_options_, [this, who](const redis::Event& e) { events_.Note(who.get(), e); });
  if (!client) {
    return client.error();
  }
  auto lane = std::make_unique<Lane>(common_, std::move(*client));
  const base::MutexLock lock(mutex_);
  lanes_.push_back(lane.get());
  who_[lane.get()] = who;
  return lane;
}

Result<void> FleetStore::Attach(boost::asio::io_context& context) {
  auto lane = NewLane(context);
  if (!lane) {
    return lane.error();
  }
  Lane& made = **lane;
  {
    const base::MutexLock lock(mutex_);
    attached_.push_back(std::move(*lane));
    pulses_[&made] = std::make_unique<Pulse>(context, [this, &made] {
      Publish(made);
      return kPublishEvery;
    });
  }
  attached_here.push_back({this, &made});
  made.client().Start();
  return {};
}

void FleetStore::Detach() {
  Lane* const lane = FindLaneHere();
  if (lane == nullptr) {
    return;
  }
  std::erase_if(attached_here, [this](const Attached& entry) { return entry.store == this; });
  std::unique_ptr<Lane> gone;
  std::unique_ptr<Pulse> pulse;
  {
    const base::MutexLock lock(mutex_);
    const auto found = std::find_if(attached_.begin(), attached_.end(),
                                    [lane](const auto& each) { return each.get() == lane; });
    gone = std::move(*found);
    attached_.erase(found);
    pulse = std::move(pulses_[lane]);
    pulses_.erase(lane);
  }
  EndLane(*gone);
}

Lane* FleetStore::FindLaneHere() const noexcept {
  for (const Attached& entry : attached_here) {
    if (entry.store == this) {
      return entry.lane;
    }
  }
  return nullptr;
}

Result<const SharedQuota*> FleetStore::Bind(const Quota& quota, uint64_t scope) {
  const auto bound = quotas_.Bind(quota, scope);
  if (!bound) {
    return bound.error();
  }
  return static_cast<const SharedQuota*>(*bound);
}

void FleetStore::Decide(SharedRequest& request) noexcept {
  RunAndWait([&request](Lane& lane, Completion& completion) {
    std::unique_ptr<Deciding> deciding = lane.TakeDeciding();
    Deciding& running = *deciding;
    running.Start(request, completion, std::move(deciding));
  });
}

// Who asks again when it is told is already where it has to be. Not for ever: what is decided
// without a call is told at once, inside the question.
void FleetStore::DecideThen(SharedRequest& request, std::function<void()> done) {
  if (net::Loop::Current() == &own_loop_ && told_depth_ < kToldDepthMax) {
    DecideHere(request, std::move(done));
  } else {
    own_loop_.Post([this, &request, then = std::move(done)]() mutable {
      DecideHere(request, std::move(then));
    });
  }
}

void FleetStore::DecideHere(SharedRequest& request, std::function<void()> then) {
  std::unique_ptr<Told> taken;
  if (idle_.empty()) {
    taken = std::make_unique<Told>();
  } else {
    taken = std::move(idle_.back());
    idle_.pop_back();
  }
  Told* const told = taken.release();  // its own until it is told
  told->then = std::move(then);
  told->completion.emplace([this, told] {
    const std::function<void()> tell = std::move(told->then);
    if (idle_.size() < kIdleMax) {
      idle_.emplace_back(told);
    } else {
      delete told;
    }
    ++told_depth_;
    tell();
    --told_depth_;
  });
  std::unique_ptr<Deciding> deciding = own_lane_->TakeDeciding();
  Deciding& running = *deciding;
  running.Start(request, *told->completion, std::move(deciding));
}

void FleetStore::Ask(std::span<OneCall* const> calls) noexcept {
  RunAndWait([calls](Lane& lane, Completion& completion) {
    for (OneCall* const call : calls) {
      call->Submit(lane, completion);
    }
  });
}

// How long until the next look.
Duration FleetStore::KeepHouse() {
  House& house = *house_;
  if (!house.told_ready) {
    if (!own_lane_->client().ready()) {
      return ++house.waited < kStartLooks ? kStartEvery : kLookEvery;
    }
    house.told_ready = true;
    house.ready.set_value();
  }
  Publish(*own_lane_);
  if (!book_->owes()) {
    house.cursor = 0;
    return kLookEvery;
  }
  const size_t before = house.cursor;
  const bool more = own_lane_->RepaySome(house.cursor);
  house.found_some = house.found_some || (more && before != house.cursor);
  if (more) {
    return kRepayEvery;
  }
  house.cursor = 0;
  return std::exchange(house.found_some, false) ? kRepayEvery : kLookEvery;
}

// What a lane does now and then.
void FleetStore::Publish(Lane& lane) {
  lane.RetryLater();
  redis::Status status = lane.client().status();
  const base::MutexLock lock(mutex_);
  statuses_[&lane] = std::move(status);
}

}  // namespace weir::shared
