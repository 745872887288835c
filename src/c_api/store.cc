#include "weir/store.h"

#include <utility>

#include "weir/weir.h"

#include "c_api/failure.h"
#include "c_api/handles.h"
#include "c_api/options.h"

namespace c_api = weir::c_api;

int weir_store_create(const weir_store_options* options, weir_store** store) {
  if (store == nullptr) {
    return c_api::FailNull("store");
  }
  *store = nullptr;
  return c_api::WithoutExceptions([&] {
    auto chosen = c_api::ReadOptions(options);
    if (!chosen) {
      return c_api::Fail(chosen.error());
    }
    auto made = weir::MemoryStore::Create(*chosen);
    if (!made) {
      return c_api::Fail(made.error());
    }
    *store = new weir_store{*std::move(made)};
    return static_cast<int>(WEIR_OK);
  });
}

int weir_store_stats(const weir_store* store, weir_stats* stats) {
  if (store == nullptr) {
    return c_api::FailNull("store");
  }
  return c_api::WithoutExceptions([&] { return c_api::WriteStats(*store->store, stats); });
}

int weir_store_maintain(weir_store* store) {
  if (store == nullptr) {
    return c_api::FailNull("store");
  }
  store->store->Maintain();
  return WEIR_OK;
}

void weir_store_free(weir_store* store) {
  delete store;
}
