// The addon under index.js: weir.h over N-API, a function for a function. index.js checks choices
// and numbers; here and in arguments.h pointers are made safe. Every failure becomes a JavaScript
// exception. Answers are left in memory that index.js reads, since making an object through N-API
// costs more than deciding.
#include <node_api.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "weir/weir.h"

#include "arguments.h"

static const field kStoreOptions[] = {
    FIELD(weir_store_options, "budgetBytes", budget_bytes),
    FIELD(weir_store_options, "maxSkewNs", max_skew_ns),
    FIELD(weir_store_options, "fleetSecret", fleet_secret),
    FIELD(weir_store_options, "overflow", overflow),
    FIELD(weir_store_options, "keys", keys),
    FIELD(weir_store_options, "hugePages", huge_pages),
    FIELD(weir_store_options, "recordPercent", record_percent),
    FIELD(weir_store_options, "widePercent", wide_percent),
    FIELD(weir_store_options, "sketchPercent", sketch_percent),
    FIELD(weir_store_options, "hotKeys", hot_keys),
};

static const field kLimiterOptions[] = {
    FIELD(weir_limiter_options, "precision", precision),
    FIELD(weir_limiter_options, "topKeys", top_keys),
    FIELD(weir_limiter_options, "topKeysSample", top_keys_sample),
};

static const field kStats[] = {
    FIELD(weir_stats, "decisions", decisions),
    FIELD(weir_stats, "denials", denials),
    FIELD(weir_stats, "refusals", refusals),
    FIELD(weir_stats, "overflow", overflow),
    FIELD(weir_stats, "reclaims", reclaims),
    FIELD(weir_stats, "lostRaces", lost_races),
    FIELD(weir_stats, "slots", slots),
    FIELD(weir_stats, "liveSlots", live_slots),
    FIELD(weir_stats, "budgetBytes", budget_bytes),
    FIELD(weir_stats, "hugePages", huge_pages),
    FIELD(weir_stats, "records", records),
    FIELD(weir_stats, "promotions", promotions),
    FIELD(weir_stats, "leases", leases),
    FIELD(weir_stats, "leasesReturned", leases_returned),
    FIELD(weir_stats, "leaseUnitsReturned", lease_units_returned),
};

static const field kTopKey[] = {
    FIELD(weir_top_key, "count", count),
    FIELD(weir_top_key, "denied", denied),
    FIELD(weir_top_key, "error", error),
    FIELD(weir_top_key, "cut", cut),
};

// ---- Stores and limiters.

static void free_store(napi_env env, void* store, void* hint) {
  (void)env, (void)hint;
  weir_store_free(store);
}

static void free_limiter(napi_env env, void* limiter, void* hint) {
  (void)env, (void)hint;
  weir_limiter_free(limiter);
}

static napi_value wrap(napi_env env, void* handle, napi_finalize finalize) {
  napi_value made = NULL;
  napi_create_external(env, handle, finalize, NULL, &made);
  return made;
}

static weir_store_options store_options(napi_env env, napi_value object) {
  weir_store_options options = {0};
  options.struct_size = sizeof options;
  read_fields(env, object, kStoreOptions, COUNT_OF(kStoreOptions), &options);
  return options;
}

// (options)
static napi_value create_store(napi_env env, napi_callback_info info) {
  request asked;
  read_arguments(env, info, &asked);
  const weir_store_options options = store_options(env, asked.arguments[0]);
  weir_store* store = NULL;
  const int status = weir_store_create(&options, &store);
  return status < 0 ? throw_last_error(env, status) : wrap(env, store, free_store);
}

// (quota, the store's handle or options for one, own options)
static napi_value create_limiter(napi_env env, napi_callback_info info) {
  request asked;
  read_arguments(env, info, &asked);
  napi_valuetype kind = napi_undefined;
  napi_typeof(env, asked.arguments[1], &kind);
  weir_store* store = kind == napi_external ? handle_of(env, asked.arguments[1]) : NULL;
  char* quota = text_of(env, asked.arguments[0]);
  if (quota == NULL) {
    return NULL;
  }
  weir_limiter_options own = {0};
  own.struct_size = sizeof own;
  read_fields(env, asked.arguments[2], kLimiterOptions, COUNT_OF(kLimiterOptions), &own);
  weir_store_options options = {0};
  if (store == NULL) {
    options = store_options(env, asked.arguments[1]);
  }
  weir_limiter* limiter = NULL;
  const int status =
      weir_limiter_create_with(quota, store, store == NULL ? &options : NULL, &own, &limiter);
  free(quota);
  return status < 0 ? throw_last_error(env, status) : wrap(env, limiter, free_limiter);
}

// (limiter, quota)
static napi_value update(napi_env env, napi_callback_info info) {
  request asked;
  char* quota = read_limiter(env, info, &asked) ? text_of(env, asked.arguments[1]) : NULL;
  if (quota == NULL) {
    return NULL;
  }
  const int status = weir_limiter_update(asked.limiter, quota);
  free(quota);
  return answer_or_throw(env, status);
}

static napi_value stats(napi_env env, napi_callback_info info) {
  request asked;
  if (!read_limiter(env, info, &asked)) {
    return NULL;
  }
  weir_stats found = {0};
  found.struct_size = sizeof found;
  const int status = weir_limiter_stats(asked.limiter, &found);
  return status < 0 ? throw_last_error(env, status)
                    : made_of_fields(env, kStats, COUNT_OF(kStats), &found);
}

// (limiter, most): an array of objects, each with the key's bytes.
static napi_value top_keys(napi_env env, napi_callback_info info) {
  request asked;
  if (!read_limiter(env, info, &asked)) {
    return NULL;
  }
  const size_t most = (size_t)integer(&asked, 1);
  weir_top_key* keys = allocated(env, calloc(most, sizeof *keys));
  if (keys == NULL) {
    return NULL;
  }
  const int found = weir_top_keys(asked.limiter, keys, most);
  napi_value made = NULL;
  napi_create_array(env, &made);
  for (int i = 0; i < found; ++i) {
    napi_value key = made_of_fields(env, kTopKey, COUNT_OF(kTopKey), &keys[i]);
    napi_value bytes = NULL;
    napi_create_buffer_copy(env, keys[i].key_length, keys[i].key, NULL, &bytes);
    set(env, key, "bytes", bytes);
    napi_set_element(env, made, (uint32_t)i, key);
  }
  free(keys);
  return found < 0 ? throw_last_error(env, found) : made;
}

// ---- Deciding.

static napi_value check(napi_env env, napi_callback_info info) {
  request asked;
  if (!read_question(env, info, &asked)) {
    return NULL;
  }
  return finish(&asked, weir_check(asked.limiter, asked.key.bytes, asked.key.length, asked.cost,
                                   &asked.answer->decision));
}

// (limiter, key, cost, mode)
static napi_value charge(napi_env env, napi_callback_info info) {
  request asked;
  if (!read_question(env, info, &asked)) {
    return NULL;
  }
  return finish(&asked, weir_charge(asked.limiter, asked.key.bytes, asked.key.length, asked.cost,
                                    (int)integer(&asked, 3), &asked.answer->receipt,
                                    &asked.answer->decision));
}

static napi_value give_back(napi_env env, napi_callback_info info) {
  request asked;
  weir_receipt receipt;
  char* bytes = read_limiter(env, info, &asked)
                    ? read_struct(env, asked.arguments[1], &receipt, sizeof receipt,
                                  "receipt: must be one that charge returned")
                    : NULL;
  if (bytes == NULL) {
    return NULL;
  }
  const int64_t units = weir_give_back(asked.limiter, &receipt);
  memcpy(bytes, &receipt, sizeof receipt);  // emptied
  return answer_or_throw(env, units);
}

// (limiter, key, 0)
static napi_value reset(napi_env env, napi_callback_info info) {
  request asked;
  if (!read_question(env, info, &asked)) {
    return NULL;
  }
  return finish(&asked, weir_reset(asked.limiter, asked.key.bytes, asked.key.length));
}

// (limiter, key, cost, lease in ns)
static napi_value acquire(napi_env env, napi_callback_info info) {
  request asked;
  if (!read_question(env, info, &asked)) {
    return NULL;
  }
  return finish(&asked,
                weir_acquire(asked.limiter, asked.key.bytes, asked.key.length, asked.cost,
                             integer(&asked, 3), &asked.answer->hold, &asked.answer->decision));
}

static bool read_hold(napi_env env, napi_callback_info info, request* asked, weir_hold* hold) {
  return read_limiter(env, info, asked) &&
         read_struct(env, asked->arguments[1], hold, sizeof *hold,
                     "hold: must be one that acquire returned") != NULL;
}

static napi_value release(napi_env env, napi_callback_info info) {
  request asked;
  weir_hold hold;
  return read_hold(env, info, &asked, &hold)
             ? answer_or_throw(env, weir_release(asked.limiter, &hold))
             : NULL;
}

// (limiter, hold, lease in ns)
static napi_value renew(napi_env env, napi_callback_info info) {
  request asked;
  weir_hold hold;
  return read_hold(env, info, &asked, &hold)
             ? answer_or_throw(env, weir_renew(asked.limiter, &hold, integer(&asked, 2)))
             : NULL;
}

// (limiter, key, estimate, lasts in ns)
static napi_value reserve(napi_env env, napi_callback_info info) {
  request asked;
  if (!read_question(env, info, &asked)) {
    return NULL;
  }
  return finish(&asked, weir_reserve(asked.limiter, asked.key.bytes, asked.key.length, asked.cost,
                                     integer(&asked, 3), &asked.answer->reservation,
                                     &asked.answer->decision));
}

// (limiter, reservation as a BigInt, actual)
static napi_value settle(napi_env env, napi_callback_info info) {
  request asked;
  if (!read_limiter(env, info, &asked)) {
    return NULL;
  }
  uint64_t reservation = 0;
  bool lossless = false;
  if (napi_get_value_bigint_uint64(env, asked.arguments[1], &reservation, &lossless) != napi_ok) {
    return throw_type(env, "reservation: must be one that reserve returned");
  }
  return answer_or_throw(env, weir_settle(asked.limiter, reservation, (uint64_t)integer(&asked, 2),
                                          &asked.answer->settlement));
}

// (limiter, keys, cost): an ArrayBuffer of decisions.
static napi_value check_many(napi_env env, napi_callback_info info) {
  request asked;
  uint32_t count = 0;
  if (!read_limiter(env, info, &asked)) {
    return NULL;
  }
  if (napi_get_array_length(env, asked.arguments[1], &count) != napi_ok || count > kManyMax) {
    return throw_type(env, "keys: must be an array of at most 65536");
  }
  weir_key* keys = allocated(env, calloc(count + 1, sizeof *keys));
  if (keys == NULL) {
    return NULL;
  }
  char* text = NULL;
  napi_value made = NULL;
  if (read_keys(env, asked.arguments[1], count, keys, &text)) {
    void* decisions = NULL;
    napi_create_arraybuffer(env, count * sizeof(weir_decision), &decisions, &made);
    const int status =
        weir_check_many(asked.limiter, keys, count, (uint64_t)integer(&asked, 2), decisions);
    made = status < 0 ? throw_last_error(env, status) : made;
  }
  free(text);
  free(keys);
  return made;
}

// ---- The module.

// The names in the order of their numbers, up to the first that is unknown.
static napi_value names(napi_env env, const char* (*name_of)(int)) {
  napi_value made = NULL;
  napi_create_array(env, &made);
  for (uint32_t i = 0; strcmp(name_of((int)i), "unknown") != 0; ++i) {
    napi_value name = NULL;
    napi_create_string_utf8(env, name_of((int)i), NAPI_AUTO_LENGTH, &name);
    napi_set_element(env, made, i, name);
  }
  return made;
}

static void free_instance(napi_env env, void* data, void* hint) {
  (void)hint;
  napi_delete_reference(env, ((instance*)data)->keep_answer);
  free(data);
}

static void set_functions(napi_env env, napi_value exports) {
  const struct {
    const char* name;
    napi_callback call;
  } functions[] = {
      {"createStore", create_store},
      {"createLimiter", create_limiter},
      {"update", update},
      {"stats", stats},
      {"topKeys", top_keys},
      {"check", check},
      {"checkMany", check_many},
      {"charge", charge},
      {"giveBack", give_back},
      {"reset", reset},
      {"acquire", acquire},
      {"release", release},
      {"renew", renew},
      {"reserve", reserve},
      {"settle", settle},
  };
  for (size_t i = 0; i < COUNT_OF(functions); ++i) {
    napi_value function = NULL;
    napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].call, NULL,
                         &function);
    set(env, exports, functions[i].name, function);
  }
}

NAPI_MODULE_INIT() {
  if (weir_abi_version() != WEIR_ABI_VERSION) {
    napi_throw_error(env, NULL, "libweir.so has another ABI version than weir.h: npm rebuild weir");
    return NULL;
  }
  instance* self = allocated(env, calloc(1, sizeof *self));
  if (self == NULL) {
    return NULL;
  }
  napi_value answer = NULL;
  napi_create_arraybuffer(env, sizeof *self->answer, (void**)&self->answer, &answer);
  napi_create_reference(env, answer, 1, &self->keep_answer);
  napi_set_instance_data(env, self, free_instance, NULL);
  set(env, exports, "answer", answer);
  set(env, exports, "receiptAt", number(env, offsetof(answers, receipt)));
  set(env, exports, "receiptSize", number(env, sizeof(weir_receipt)));
  set(env, exports, "holdSize", number(env, sizeof(weir_hold)));
  set(env, exports, "holdAt", number(env, offsetof(answers, hold)));
  set(env, exports, "reservationAt", number(env, offsetof(answers, reservation)));
  set(env, exports, "settlementAt", number(env, offsetof(answers, settlement)));
  set(env, exports, "outcomes", names(env, weir_outcome_name));
  set(env, exports, "bases", names(env, weir_basis_name));
  set(env, exports, "problems", names(env, weir_problem_name));
  napi_value version = NULL;
  napi_create_string_utf8(env, weir_version(), NAPI_AUTO_LENGTH, &version);
  set(env, exports, "version", version);
  set_functions(env, exports);
  return exports;
}
