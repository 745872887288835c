// The calls that decide. None of them allocates, so none needs a guard against exceptions.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <optional>
#include <string_view>

#include "weir/decision.h"
#include "weir/limiter.h"
#include "weir/weir.h"

#include "c_api/answer.h"
#include "c_api/failure.h"
#include "c_api/handles.h"

namespace weir::c_api {

namespace {

static_assert(sizeof(weir_receipt) == sizeof(Receipt));

static_assert(WEIR_ADMIT == static_cast<int>(ChargeMode::kAdmit));
static_assert(WEIR_COUNT_ALWAYS == static_cast<int>(ChargeMode::kCountAlways));
static_assert(WEIR_UP_TO == static_cast<int>(ChargeMode::kUpTo));
static_assert(WEIR_DRY_RUN == static_cast<int>(ChargeMode::kDryRun));

Timestamp At(int64_t now_ns) noexcept {
  return Timestamp(Duration(now_ns));
}

int Charge(weir_limiter* limiter, std::string_view key, uint64_t cost, int mode,
           std::optional<Timestamp> now, Duration max_wait, weir_receipt* receipt,
           weir_decision* decision) noexcept {
  if (receipt != nullptr) {
    *receipt = weir_receipt{};
  }
  if (const int failed = CheckArguments(limiter, key.data(), key.size()); failed != WEIR_OK) {
    return AnswerFailure(failed, decision);
  }
  if (mode < WEIR_ADMIT || mode > WEIR_DRY_RUN) {
    return AnswerFailure(Fail(WEIR_INVALID_ARGUMENT,
                              "mode: not a weir_mode; choose 0 (admit), 1 (count always), "
                              "2 (up to) or 3 (dry run)"),
                         decision);
  }
  Receipt paid;
  const Decision made =
      limiter->limiter.Check(key, CheckOptions{.cost = cost,
                                               .mode = static_cast<ChargeMode>(mode),
                                               .now = now,
                                               .receipt = receipt != nullptr ? &paid : nullptr,
                                               .max_wait = max_wait});
  if (receipt != nullptr) {
    *receipt = std::bit_cast<weir_receipt>(paid);
  }
  return Answer(made, decision);
}

}  // namespace

}  // namespace weir::c_api

namespace c_api = weir::c_api;

int weir_check(weir_limiter* limiter, const char* key, size_t key_length, uint64_t cost,
               weir_decision* decision) {
  if (const int failed = c_api::CheckArguments(limiter, key, key_length); failed != WEIR_OK) {
    return c_api::AnswerFailure(failed, decision);
  }
  return c_api::Answer(limiter->limiter.Check({key, key_length}, cost), decision);
}

int weir_check_at(weir_limiter* limiter, const char* key, size_t key_length, uint64_t cost,
                  int64_t now_ns, weir_decision* decision) {
  if (const int failed = c_api::CheckArguments(limiter, key, key_length); failed != WEIR_OK) {
    return c_api::AnswerFailure(failed, decision);
  }
  return c_api::Answer(limiter->limiter.Check({key, key_length}, c_api::At(now_ns), cost),
                       decision);
}

int weir_now(const weir_limiter* limiter, int64_t* now_ns) {
  if (limiter == nullptr) {
    return c_api::FailNull("limiter");
  }
  if (now_ns == nullptr) {
    return c_api::FailNull("now_ns");
  }
  *now_ns = limiter->limiter.Now().time_since_epoch().count();
  return WEIR_OK;
}

int weir_check_many(weir_limiter* limiter, const weir_key* keys, size_t count, uint64_t cost,
                    weir_decision* decisions) {
  if (decisions == nullptr && count > 0) {
    return c_api::FailNull("decisions");
  }
  const auto refuse_all = [&](int status) {
    for (size_t i = 0; i < count; ++i) {
      c_api::AnswerFailure(status, &decisions[i]);
    }
    return status;
  };
  if (limiter == nullptr) {
    return refuse_all(c_api::FailNull("limiter"));
  }
  if (keys == nullptr && count > 0) {
    return refuse_all(c_api::FailNull("keys"));
  }
  if (std::any_of(keys, keys + count,
                  [](const weir_key& key) { return key.bytes == nullptr && key.length > 0; })) {
    return refuse_all(c_api::FailKey());
  }
  // In pieces, so that the views and answers fit the stack and the first-level cache. Each reads
  // the clock: in a batch of millions the first one's time would become too old to be believed.
  constexpr size_t kPiece = 64;
  std::array<std::string_view, kPiece> views;
  std::array<weir::Decision, kPiece> answers;
  for (size_t begin = 0; begin < count; begin += kPiece) {
    const size_t size = std::min(kPiece, count - begin);
    for (size_t i = 0; i < size; ++i) {
      views[i] = {keys[begin + i].bytes, keys[begin + i].length};
    }
    limiter->limiter.CheckMany({views.data(), size}, {answers.data(), size}, cost);
    for (size_t i = 0; i < size; ++i) {
      c_api::HandOut(answers[i], &decisions[begin + i]);
    }
  }
  return WEIR_OK;
}

int weir_charge(weir_limiter* limiter, const char* key, size_t key_length, uint64_t cost, int mode,
                weir_receipt* receipt, weir_decision* decision) {
  return c_api::Charge(limiter, {key, key_length}, cost, mode, std::nullopt, weir::Duration::max(),
                       receipt, decision);
}

int weir_charge_at(weir_limiter* limiter, const char* key, size_t key_length, uint64_t cost,
                   int mode, int64_t now_ns, weir_receipt* receipt, weir_decision* decision) {
  return c_api::Charge(limiter, {key, key_length}, cost, mode, c_api::At(now_ns),
                       weir::Duration::max(), receipt, decision);
}

int weir_charge_within(weir_limiter* limiter, const char* key, size_t key_length, uint64_t cost,
                       int mode, int64_t max_wait_ns, weir_receipt* receipt,
                       weir_decision* decision) {
  if (max_wait_ns < 0) {
    if (receipt != nullptr) {
      *receipt = weir_receipt{};
    }
    return c_api::AnswerFailure(
        c_api::Fail(WEIR_INVALID_ARGUMENT, "max_wait_ns: negative; the least is 0"), decision);
  }
  return c_api::Charge(limiter, {key, key_length}, cost, mode, std::nullopt,
                       weir::Duration(max_wait_ns), receipt, decision);
}

int weir_take_up_to(weir_limiter* limiter, const char* key, size_t key_length, uint64_t most,
                    weir_decision* decision) {
  return weir_charge(limiter, key, key_length, most, WEIR_UP_TO, nullptr, decision);
}

int weir_reset(weir_limiter* limiter, const char* key, size_t key_length) {
  if (const int failed = c_api::CheckArguments(limiter, key, key_length); failed != WEIR_OK) {
    return failed;
  }
  switch (limiter->limiter.Reset({key, key_length})) {
    case weir::ResetOutcome::kDone:
    case weir::ResetOutcome::kShared:
      return 1;
    case weir::ResetOutcome::kUnknown:
      return 0;
    case weir::ResetOutcome::kRefused:
      break;
  }
  return c_api::Fail(WEIR_INVALID_ARGUMENT,
                     "key: a check would refuse it; expected 1 to 65535 bytes without NUL");
}

int64_t weir_give_back(weir_limiter* limiter, weir_receipt* receipt) {
  if (limiter == nullptr) {
    return c_api::FailNull("limiter");
  }
  if (receipt == nullptr) {
    return c_api::FailNull("receipt");
  }
  auto paid = std::bit_cast<weir::Receipt>(*receipt);
  *receipt = weir_receipt{};
  return limiter->limiter.GiveBack(paid);
}
