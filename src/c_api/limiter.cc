#include "weir/limiter.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "weir/weir.h"

#include "c_api/failure.h"
#include "c_api/handles.h"
#include "c_api/options.h"

namespace c_api = weir::c_api;

namespace {

// Makes a limiter of the text with `create(quota)`.
template <class Create>
int Make(const char* text, weir_limiter** limiter, Create create) {
  if (limiter == nullptr) {
    return c_api::FailNull("limiter");
  }
  *limiter = nullptr;
  if (text == nullptr) {
    return c_api::FailNull("quota");
  }
  return c_api::WithoutExceptions([&] {
    auto quota = weir::Quota::Parse(text);
    if (!quota) {
      return c_api::Fail(quota.error());
    }
    weir::Result<weir::Limiter> made = create(*quota);
    if (!made) {
      return c_api::Fail(made.error());
    }
    *limiter = new weir_limiter{*std::move(made)};
    return static_cast<int>(WEIR_OK);
  });
}

}  // namespace

int weir_limiter_create(const char* quota, const weir_store_options* options,
                        weir_limiter** limiter) {
  return weir_limiter_create_with(quota, nullptr, options, nullptr, limiter);
}

int weir_limiter_create_on(const char* quota, weir_store* store, weir_limiter** limiter) {
  if (store == nullptr) {
    if (limiter != nullptr) {
      *limiter = nullptr;
    }
    return c_api::Fail(WEIR_INVALID_ARGUMENT,
                       "store: NULL is not allowed; weir_limiter_create makes its own");
  }
  return weir_limiter_create_with(quota, store, nullptr, nullptr, limiter);
}

int weir_limiter_create_with(const char* quota, weir_store* store,
                             const weir_store_options* options, const weir_limiter_options* own,
                             weir_limiter** limiter) {
  return Make(quota, limiter, [&](const weir::Quota& parsed) -> weir::Result<weir::Limiter> {
    const auto chosen = c_api::ReadOptions(own);
    if (!chosen) {
      return chosen.error();
    }
    if (store == nullptr) {
      const auto memory = c_api::ReadOptions(options);
      return memory ? weir::Limiter::Create(parsed, *memory, *chosen) : memory.error();
    }
    if (options != nullptr) {
      return weir::Error::Invalid("options: must be NULL on a store, which has its own");
    }
    return weir::Limiter::Create(parsed, store->store, *chosen);
  });
}

int weir_limiter_update(weir_limiter* limiter, const char* quota) {
  if (limiter == nullptr) {
    return c_api::FailNull("limiter");
  }
  if (quota == nullptr) {
    return c_api::FailNull("quota");
  }
  return c_api::WithoutExceptions([&] {
    auto parsed = weir::Quota::Parse(quota);
    if (!parsed) {
      return c_api::Fail(parsed.error());
    }
    auto updated = limiter->limiter.Update(*parsed);
    return updated ? static_cast<int>(WEIR_OK) : c_api::Fail(updated.error());
  });
}

int weir_limiter_quota(const weir_limiter* limiter, char* text, size_t text_size) {
  if (limiter == nullptr) {
    return c_api::FailNull("limiter");
  }
  if (text == nullptr && text_size > 0) {
    return c_api::FailNull("text");
  }
  return c_api::WithoutExceptions([&] {
    const std::string quota = limiter->limiter.quota().ToString();
    if (text_size > 0) {
      const size_t fitting = std::min(quota.size(), text_size - 1);
      std::memcpy(text, quota.data(), fitting);
      text[fitting] = '\0';
    }
    return static_cast<int>(quota.size());
  });
}

int weir_limiter_stats(const weir_limiter* limiter, weir_stats* stats) {
  if (limiter == nullptr) {
    return c_api::FailNull("limiter");
  }
  return c_api::WithoutExceptions(
      [&] { return c_api::WriteStats(*limiter->limiter.store(), stats); });
}

int weir_top_keys(const weir_limiter* limiter, weir_top_key* keys, size_t most) {
  if (limiter == nullptr) {
    return c_api::FailNull("limiter");
  }
  if (keys == nullptr && most > 0) {
    return c_api::FailNull("keys");
  }
  return c_api::WithoutExceptions([&] {
    const std::vector<weir::TopKey> found = limiter->limiter.TopKeys(most);
    for (size_t i = 0; i < found.size(); ++i) {
      keys[i] = {.count = found[i].count,
                 .denied = found[i].denied,
                 .error = found[i].error,
                 .key_length = static_cast<uint32_t>(found[i].key.size()),
                 .cut = found[i].cut ? 1U : 0U,
                 .key = {}};
      found[i].key.copy(keys[i].key, sizeof keys[i].key);
    }
    return static_cast<int>(found.size());
  });
}

void weir_limiter_free(weir_limiter* limiter) {
  delete limiter;
}
