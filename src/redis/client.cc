#include "redis/client.h"

#include <random>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "redis/engine.h"
#include "redis/socket.h"
#include "redis/tls.h"

namespace weir::redis {

namespace {

namespace asio = boost::asio;

using Executor = asio::io_context::executor_type;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;

uint64_t Seed() {
  std::random_device device;
  return (uint64_t{device()} << 32) ^ device();
}

}  // namespace

class Client::State final : public Host, public std::enable_shared_from_this<Client::State> {
 public:
  State(asio::io_context& context, const Options& options, EventHook on_event,
        std::shared_ptr<const TlsClientContext> tls)
      : context_(context),
        timer_(context),
        on_event_(std::move(on_event)),
        tls_(std::move(tls)),
        engine_(std::make_unique<Engine>(options, SystemClock(), *this, Seed())) {}

  [[nodiscard]] Engine& engine() const noexcept { return *engine_; }

  // What the loop still has for us finds nothing any more.
  void Stop() {
    stopped_ = true;
    timer_.cancel();
    engine_.reset();
  }

 private:
  std::unique_ptr<Channel> Open(const Address& address, ChannelUser& user) override {
    return OpenSocket(context_, address, tls_, user);
  }

  void WantTurnEnd() override {
    asio::post(context_, [self = shared_from_this()] {
      if (!self->stopped_) {
        self->engine_->OnTurnEnd();
      }
    });
  }

  void WantTime(Timestamp at) override {
    // Both clocks are the machine's monotonic one.
    timer_.expires_at(std::chrono::steady_clock::time_point(at.time_since_epoch()));
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error && !self->stopped_) {
        self->engine_->OnTime();
      }
    });
  }

  void Tell(const Event& event) override {
    if (on_event_) {
      on_event_(event);
    }
  }

  asio::io_context& context_;
  Timer timer_;
  const EventHook on_event_;
  const std::shared_ptr<const TlsClientContext> tls_;
  std::unique_ptr<Engine> engine_;
  bool stopped_ = false;
};

Result<std::unique_ptr<Client>> Client::Create(asio::io_context& context, const Options& options,
                                               EventHook on_event) {
  std::shared_ptr<const TlsClientContext> tls;
  if (options.tls.enabled) {
    auto made = TlsClientContext::Create(options.tls);
    if (!made) {
      return made.error();
    }
    tls = *made;
  }
  return std::unique_ptr<Client>(
      new Client(std::make_shared<State>(context, options, std::move(on_event), std::move(tls))));
}

Client::Client(std::shared_ptr<State> state) : state_(std::move(state)) {}

Client::~Client() {
  state_->Stop();
}

void Client::Start() {
  state_->engine().Start();
}

void Client::Submit(Call& call, const Request& request) {
  state_->engine().Submit(call, request);
}

uint32_t Client::GroupOf(std::string_view key) const noexcept {
  return state_->engine().GroupOf(key);
}

bool Client::is_divided() const noexcept {
  return state_->engine().is_divided();
}

bool Client::ready() const noexcept {
  return state_->engine().ready();
}

bool Client::IsUsable(uint16_t slot) const noexcept {
  return state_->engine().IsUsable(slot);
}

bool Client::IsSettling(std::string_view key) const noexcept {
  return state_->engine().IsSettling(key);
}

bool Client::settling() const noexcept {
  return state_->engine().settling();
}

Status Client::status() const {
  return state_->engine().status();
}

const Options& Client::options() const noexcept {
  return state_->engine().options();
}

}  // namespace weir::redis
