#include "redis/client_test.h"

namespace weir::redis {

class Crowd::Member final : public Call {
 public:
  Member(Crowd& crowd, size_t index) : crowd_(crowd), index_(index), key_(KeyOf(index)) {}

  void Go() {
    ++crowd_.busy_;
    nonce_ = std::to_string(index_) + "-" + std::to_string(++round_);
    const std::string_view keys[] = {key_};
    const std::string_view arguments[] = {nonce_};
    began_ = SystemClock().Now();
    crowd_.client_.Submit(
        *this,
        {.script = &Echo(), .keys = keys, .arguments = arguments, .timeout = crowd_.timeout_});
  }

 private:
  void OnReply(const codec::resp::Reply& reply) noexcept override {
    Tally& tally = crowd_.tally_;
    ++tally.good;
    ++crowd_.books_[index_].answered;
    tally.mismatched += reply.size == 2 && reply.element(1).text == nonce_ ? 0 : 1;
    Ended();
    if (!crowd_.stopped_) {
      Go();
    }
  }
  void OnFailure(const Failure& failure) noexcept override {
    Tally& tally = crowd_.tally_;
    ++tally.failed;
    ++tally.by_kind[static_cast<size_t>(failure.kind)];
    tally.may_have_run += failure.may_have_run ? 1 : 0;
    crowd_.books_[index_].unknown += failure.may_have_run ? 1 : 0;
    tally.last_text = failure.text;
    Ended();
    if (!crowd_.stopped_) {
      crowd_.resting_.push_back(this);
      if (crowd_.resting_.size() == 1) {
        crowd_.RestThenGo();
      }
    }
  }
  void Ended() {
    crowd_.tally_.slowest = std::max(crowd_.tally_.slowest, SystemClock().Now() - began_);
    --crowd_.busy_;
  }

  Crowd& crowd_;
  const size_t index_;
  const std::string key_;
  uint64_t round_ = 0;
  std::string nonce_;
  Timestamp began_{};
};

const Script& Crowd::Echo() {
  static const Script script("echo", "return {redis.call('INCR', KEYS[1]), ARGV[1]}");
  return script;
}

Crowd::Crowd(boost::asio::io_context& context, Client& client, size_t size, Tally& tally,
             Duration timeout)
    : client_(client), tally_(tally), timeout_(timeout), books_(size), timer_(context) {
  for (size_t i = 0; i < size; ++i) {
    members_.push_back(std::make_unique<Member>(*this, i));
    members_.back()->Go();
  }
}

Crowd::~Crowd() = default;

void Crowd::RestThenGo() {
  timer_.expires_after(std::chrono::milliseconds(1));
  timer_.async_wait([this, here = std::weak_ptr(here_)](const boost::system::error_code& error) {
    if (error || here.expired() || stopped_) {
      return;
    }
    for (Member* const member : std::exchange(resting_, {})) {
      member->Go();
    }
  });
}

}  // namespace weir::redis
