// The addon under index.js: weir.h over N-API, a function for a function. index.js checks choices
// and numbers; here pointers are made safe. Every failure becomes a JavaScript exception.
#include <node_api.h>
#include <stdlib.h>
#include <string.h>

#include "weir/weir.h"

enum { kMaxArguments = 8, kKeyBytesMax = 65535, kShortKey = 256 };

// One to an environment: the main thread and each worker have their own.
typedef struct {
  weir_decision* answer;  // the memory of the ArrayBuffer that index.js reads
  napi_ref keep_answer;
} instance;

static napi_value throw_last_error(napi_env env, int status) {
  napi_throw_error(env, weir_status_name(status), weir_last_error());
  return NULL;
}

static napi_value throw_type(napi_env env, const char* message) {
  napi_throw_type_error(env, NULL, message);
  return NULL;
}

// Arguments that were not given are undefined.
static void read_arguments(napi_env env, napi_callback_info info, napi_value* arguments) {
  size_t count = kMaxArguments;
  napi_get_cb_info(env, info, &count, arguments, NULL, NULL);
}

// The pointer, or NULL with an exception. index.js keeps handles in private fields and never mixes
// stores with limiters, so that no tag needs to be looked up on every call.
static void* handle_of(napi_env env, napi_value value) {
  void* handle = NULL;
  if (napi_get_value_external(env, value, &handle) != napi_ok) {
    throw_type(env, "handle: must be one that this package made");
    return NULL;
  }
  return handle;
}

// A key's bytes: in place for a Uint8Array, else copied, to `copied` if they are many.
typedef struct {
  const char* bytes;
  size_t length;
  char* copied;  // to be freed
  char few[kShortKey];
} key_bytes;

static bool read_key(napi_env env, napi_value value, key_bytes* key) {
  key->copied = NULL;
  key->bytes = key->few;
  if (napi_get_value_string_utf8(env, value, key->few, kShortKey, &key->length) == napi_ok) {
    // Nearly full: perhaps cut, up to 3 bytes early so as not to split a character.
    if (key->length < kShortKey - 4) {
      return true;
    }
    // Longer than any key may be is enough to be refused for its length.
    key->copied = malloc(kKeyBytesMax + 6);
    if (key->copied == NULL) {
      napi_throw_error(env, "overloaded", "the system has no memory left");
      return false;
    }
    key->bytes = key->copied;
    napi_get_value_string_utf8(env, value, key->copied, kKeyBytesMax + 6, &key->length);
    return true;
  }
  bool is_array = false;
  napi_is_typedarray(env, value, &is_array);
  if (is_array) {
    napi_typedarray_type type;
    void* data = NULL;
    napi_get_typedarray_info(env, value, &type, &key->length, &data, NULL, NULL);
    if (type == napi_uint8_array) {
      key->bytes = data;
      return true;
    }
  }
  throw_type(env, "key: must be a string or a Uint8Array");
  return false;
}

// Text as C wants it, or NULL with an exception. A NUL inside would cut it unseen.
static char* text_of(napi_env env, napi_value value) {
  size_t length = 0;
  if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok) {
    throw_type(env, "quota: must be a string");
    return NULL;
  }
  char* text = malloc(length + 1);
  if (text == NULL) {
    napi_throw_error(env, "overloaded", "the system has no memory left");
    return NULL;
  }
  napi_get_value_string_utf8(env, value, text, length + 1, &length);
  if (strlen(text) != length) {
    free(text);
    throw_type(env, "quota: must not contain a NUL character");
    return NULL;
  }
  return text;
}

static napi_value number(napi_env env, int64_t value) {
  napi_value made = NULL;
  napi_create_int64(env, value, &made);
  return made;
}

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

// From six values that index.js has checked.
static weir_store_options read_options(napi_env env, const napi_value* values) {
  weir_store_options options = {0};
  options.struct_size = sizeof options;
  int64_t budget = 0;
  bool lossless = false;
  napi_get_value_int64(env, values[0], &budget);
  options.budget_bytes = (uint64_t)budget;
  napi_get_value_int64(env, values[1], &options.max_skew_ns);
  napi_get_value_bigint_uint64(env, values[2], &options.fleet_secret, &lossless);
  napi_get_value_uint32(env, values[3], &options.overflow);
  napi_get_value_uint32(env, values[4], &options.keys);
  napi_get_value_uint32(env, values[5], &options.huge_pages);
  return options;
}

static napi_value create_store(napi_env env, napi_callback_info info) {
  napi_value arguments[kMaxArguments];
  read_arguments(env, info, arguments);
  const weir_store_options options = read_options(env, arguments);
  weir_store* store = NULL;
  const int status = weir_store_create(&options, &store);
  return status < 0 ? throw_last_error(env, status) : wrap(env, store, free_store);
}

static napi_value finish_limiter(napi_env env, int status, char* quota, weir_limiter* limiter) {
  free(quota);
  return status < 0 ? throw_last_error(env, status) : wrap(env, limiter, free_limiter);
}

static napi_value create_limiter(napi_env env, napi_callback_info info) {
  napi_value arguments[kMaxArguments];
  read_arguments(env, info, arguments);
  char* quota = text_of(env, arguments[0]);
  if (quota == NULL) {
    return NULL;
  }
  const weir_store_options options = read_options(env, arguments + 1);
  weir_limiter* limiter = NULL;
  const int status = weir_limiter_create(quota, &options, &limiter);
  return finish_limiter(env, status, quota, limiter);
}

static napi_value create_limiter_on(napi_env env, napi_callback_info info) {
  napi_value arguments[kMaxArguments];
  read_arguments(env, info, arguments);
  weir_store* store = handle_of(env, arguments[1]);
  char* quota = store != NULL ? text_of(env, arguments[0]) : NULL;
  if (quota == NULL) {
    return NULL;
  }
  weir_limiter* limiter = NULL;
  const int status = weir_limiter_create_on(quota, store, &limiter);
  return finish_limiter(env, status, quota, limiter);
}

static napi_value update(napi_env env, napi_callback_info info) {
  napi_value arguments[kMaxArguments];
  read_arguments(env, info, arguments);
  weir_limiter* limiter = handle_of(env, arguments[0]);
  char* quota = limiter != NULL ? text_of(env, arguments[1]) : NULL;
  if (quota == NULL) {
    return NULL;
  }
  const int status = weir_limiter_update(limiter, quota);
  free(quota);
  return status < 0 ? throw_last_error(env, status) : NULL;
}

static napi_value check(napi_env env, napi_callback_info info) {
  napi_value arguments[kMaxArguments];
  read_arguments(env, info, arguments);
  weir_limiter* limiter = handle_of(env, arguments[0]);
  key_bytes key;
  if (limiter == NULL || !read_key(env, arguments[1], &key)) {
    return NULL;
  }
  int64_t cost = 0;
  napi_get_value_int64(env, arguments[2], &cost);
  instance* self = NULL;
  napi_get_instance_data(env, (void**)&self);
  const int answer = weir_check(limiter, key.bytes, key.length, (uint64_t)cost, self->answer);
  free(key.copied);
  return answer < 0 ? throw_last_error(env, answer) : number(env, answer);
}

// The receipt's 32 bytes, or NULL with an exception.
static void* receipt_of(napi_env env, napi_value value) {
  napi_typedarray_type type = napi_int8_array;
  size_t length = 0;
  void* data = NULL;
  if (napi_get_typedarray_info(env, value, &type, &length, &data, NULL, NULL) != napi_ok ||
      type != napi_uint8_array || length != sizeof(weir_receipt)) {
    throw_type(env, "receipt: must be one that charge returned");
    return NULL;
  }
  return data;
}

static napi_value charge(napi_env env, napi_callback_info info) {
  napi_value arguments[kMaxArguments];
  read_arguments(env, info, arguments);
  weir_limiter* limiter = handle_of(env, arguments[0]);
  key_bytes key;
  if (limiter == NULL || !read_key(env, arguments[1], &key)) {
    return NULL;
  }
  int64_t cost = 0;
  int32_t mode = 0;
  napi_get_value_int64(env, arguments[2], &cost);
  napi_get_value_int32(env, arguments[3], &mode);
  void* bytes = receipt_of(env, arguments[4]);
  int answer = 0;
  if (bytes != NULL) {
    instance* self = NULL;
    napi_get_instance_data(env, (void**)&self);
    weir_receipt receipt;
    answer =
        weir_charge(limiter, key.bytes, key.length, (uint64_t)cost, mode, &receipt, self->answer);
    memcpy(bytes, &receipt, sizeof receipt);  // the array need not be aligned
  }
  free(key.copied);
  return answer < 0 ? throw_last_error(env, answer) : number(env, answer);
}

static napi_value give_back(napi_env env, napi_callback_info info) {
  napi_value arguments[kMaxArguments];
  read_arguments(env, info, arguments);
  weir_limiter* limiter = handle_of(env, arguments[0]);
  void* bytes = limiter != NULL ? receipt_of(env, arguments[1]) : NULL;
  if (bytes == NULL) {
    return NULL;
  }
  weir_receipt receipt;
  memcpy(&receipt, bytes, sizeof receipt);
  const int64_t units = weir_give_back(limiter, &receipt);
  memcpy(bytes, &receipt, sizeof receipt);
  return units < 0 ? throw_last_error(env, (int)units) : number(env, units);
}

static void set(napi_env env, napi_value object, const char* name, napi_value value) {
  napi_set_named_property(env, object, name, value);
}

static napi_value stats(napi_env env, napi_callback_info info) {
  napi_value arguments[kMaxArguments];
  read_arguments(env, info, arguments);
  weir_limiter* limiter = handle_of(env, arguments[0]);
  if (limiter == NULL) {
    return NULL;
  }
  weir_stats found = {0};
  found.struct_size = sizeof found;
  const int status = weir_limiter_stats(limiter, &found);
  if (status < 0) {
    return throw_last_error(env, status);
  }
  napi_value made = NULL;
  napi_create_object(env, &made);
  set(env, made, "decisions", number(env, (int64_t)found.decisions));
  set(env, made, "denials", number(env, (int64_t)found.denials));
  set(env, made, "refusals", number(env, (int64_t)found.refusals));
  set(env, made, "overflow", number(env, (int64_t)found.overflow));
  set(env, made, "reclaims", number(env, (int64_t)found.reclaims));
  set(env, made, "lostRaces", number(env, (int64_t)found.lost_races));
  set(env, made, "slots", number(env, (int64_t)found.slots));
  set(env, made, "liveSlots", number(env, (int64_t)found.live_slots));
  set(env, made, "budgetBytes", number(env, (int64_t)found.budget_bytes));
  set(env, made, "hugePages", number(env, (int64_t)found.huge_pages));
  return made;
}

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

NAPI_MODULE_INIT() {
  if (weir_abi_version() != WEIR_ABI_VERSION) {
    napi_throw_error(env, NULL, "libweir.so has another ABI version than weir.h: npm rebuild weir");
    return NULL;
  }
  instance* self = calloc(1, sizeof *self);
  if (self == NULL) {
    napi_throw_error(env, "overloaded", "the system has no memory left");
    return NULL;
  }
  napi_value answer = NULL;
  napi_create_arraybuffer(env, sizeof *self->answer, (void**)&self->answer, &answer);
  napi_create_reference(env, answer, 1, &self->keep_answer);
  napi_set_instance_data(env, self, free_instance, NULL);
  set(env, exports, "answer", answer);
  set(env, exports, "outcomes", names(env, weir_outcome_name));
  set(env, exports, "bases", names(env, weir_basis_name));
  set(env, exports, "problems", names(env, weir_problem_name));
  napi_value version = NULL;
  napi_create_string_utf8(env, weir_version(), NAPI_AUTO_LENGTH, &version);
  set(env, exports, "version", version);

  const struct {
    const char* name;
    napi_callback call;
  } functions[] = {
      {"createStore", create_store},
      {"createLimiter", create_limiter},
      {"createLimiterOn", create_limiter_on},
      {"update", update},
      {"check", check},
      {"charge", charge},
      {"giveBack", give_back},
      {"stats", stats},
  };
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) {
    napi_value function = NULL;
    napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].call, NULL,
                         &function);
    set(env, exports, functions[i].name, function);
  }
  return exports;
}
