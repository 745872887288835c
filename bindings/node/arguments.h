// Reading what JavaScript passed. Arguments come in the same order everywhere: handle, key, cost,
// then the rest. What cannot be read becomes an exception that names it.
#ifndef WEIR_NODE_ARGUMENTS_H
#define WEIR_NODE_ARGUMENTS_H

#include <node_api.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "weir/weir.h"

enum { kMaxArguments = 5, kKeyBytesMax = 65535, kShortKey = 256, kManyMax = 65536 };

// What index.js reads; it is told where each part is.
typedef struct {
  weir_decision decision;
  weir_receipt receipt;
  weir_hold hold;
  uint64_t reservation;
  weir_settlement settlement;
} answers;

// One to an environment: the main thread and each worker have their own.
typedef struct {
  answers* answer;  // the memory of an ArrayBuffer
  napi_ref keep_answer;
} instance;

// A key's bytes: in place for a Uint8Array, else copied, to `copied` if they are many.
typedef struct {
  const char* bytes;
  size_t length;
  char* copied;  // to be freed
  char few[kShortKey];
} key_bytes;

// A call from JavaScript, as far as it has been read.
typedef struct {
  napi_env env;
  napi_value arguments[kMaxArguments];  // those that were not given are undefined
  weir_limiter* limiter;
  answers* answer;
  key_bytes key;
  uint64_t cost;
} request;

static napi_value throw_last_error(napi_env env, int64_t status) {
  napi_throw_error(env, weir_status_name((int)status), weir_last_error());
  return NULL;
}

static void* throw_type(napi_env env, const char* message) {
  napi_throw_type_error(env, NULL, message);
  return NULL;
}

static void* allocated(napi_env env, void* memory) {
  if (memory == NULL) {
    napi_throw_error(env, "overloaded", "the system has no memory left");
  }
  return memory;
}

static void set(napi_env env, napi_value object, const char* name, napi_value value) {
  napi_set_named_property(env, object, name, value);
}

static napi_value number(napi_env env, int64_t value) {
  napi_value made = NULL;
  napi_create_int64(env, value, &made);
  return made;
}

// What a call answered, or its failure as an exception.
static napi_value answer_or_throw(napi_env env, int64_t answer) {
  return answer < 0 ? throw_last_error(env, answer) : number(env, answer);
}

// ---- Reading arguments.

// index.js keeps handles in private fields and never mixes stores with limiters, so that no tag
// needs to be looked up on every call.
static void* handle_of(napi_env env, napi_value value) {
  void* handle = NULL;
  return napi_get_value_external(env, value, &handle) == napi_ok
             ? handle
             : throw_type(env, "handle: must be one that this package made");
}

// The bytes of a Uint8Array, or NULL if it is none.
static char* array_bytes(napi_env env, napi_value value, size_t* length) {
  bool is_array = false;
  napi_is_typedarray(env, value, &is_array);
  if (!is_array) {
    return NULL;
  }
  napi_typedarray_type type = napi_int8_array;
  void* data = NULL;
  napi_get_typedarray_info(env, value, &type, length, &data, NULL, NULL);
  static char none;
  return type != napi_uint8_array ? NULL : data != NULL ? data : &none;
}

static bool read_key(napi_env env, napi_value value, key_bytes* key) {
  key->copied = NULL;
  key->bytes = key->few;
  if (napi_get_value_string_utf8(env, value, key->few, kShortKey, &key->length) == napi_ok) {
    // Nearly full: perhaps cut, up to 3 bytes early so as not to split a character.
    if (key->length < kShortKey - 4) {
      return true;
    }
    // Longer than any key may be is enough to be refused for its length.
    key->copied = allocated(env, malloc(kKeyBytesMax + 6));
    if (key->copied == NULL) {
      return false;
    }
    key->bytes = key->copied;
    napi_get_value_string_utf8(env, value, key->copied, kKeyBytesMax + 6, &key->length);
    return true;
  }
  key->bytes = array_bytes(env, value, &key->length);
  return key->bytes != NULL || throw_type(env, "key: must be a string or a Uint8Array") != NULL;
}

// The bytes of a struct that this package handed out, such as a receipt; copied to `read`, since
// the array need not be aligned. NULL: with an exception.
static char* read_struct(napi_env env, napi_value value, void* read, size_t size,
                         const char* otherwise) {
  size_t length = 0;
  char* bytes = array_bytes(env, value, &length);
  if (bytes == NULL || length != size) {
    return throw_type(env, otherwise);
  }
  memcpy(read, bytes, size);
  return bytes;
}

// The keys of an array of `count`: in place, or copied one after the other to `text`, which is to
// be freed. False: with an exception.
static bool read_keys(napi_env env, napi_value array, uint32_t count, weir_key* keys, char** text) {
  size_t room = 0;
  for (int copying = 0; copying < 2; ++copying) {
    char* end = copying ? allocated(env, malloc(room + 1)) : NULL;
    if (copying && (*text = end) == NULL) {
      return false;
    }
    for (uint32_t i = 0; i < count; ++i) {
      napi_value value = NULL;
      size_t length = 0;
      napi_get_element(env, array, i, &value);
      if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok) {
        keys[i].bytes = array_bytes(env, value, &keys[i].length);
        if (keys[i].bytes == NULL) {
          return throw_type(env, "keys: each must be a string or a Uint8Array") != NULL;
        }
        continue;
      }
      const size_t most = length < kKeyBytesMax + 5 ? length : kKeyBytesMax + 5;
      if (copying) {
        napi_get_value_string_utf8(env, value, end, (most < room ? most : room) + 1, &length);
        keys[i].bytes = end;
        keys[i].length = length;
        end += length;
        room -= length;
      } else {
        room += most;
      }
    }
  }
  return true;
}

// Text as C wants it, or NULL with an exception. A NUL inside would cut it unseen.
static char* text_of(napi_env env, napi_value value) {
  size_t length = 0;
  if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok) {
    return throw_type(env, "quota: must be a string");
  }
  char* text = allocated(env, malloc(length + 1));
  if (text == NULL) {
    return NULL;
  }
  napi_get_value_string_utf8(env, value, text, length + 1, &length);
  if (strlen(text) != length) {
    free(text);
    return throw_type(env, "quota: must not contain a NUL character");
  }
  return text;
}

static int64_t integer(const request* asked, int index) {
  int64_t value = 0;
  napi_get_value_int64(asked->env, asked->arguments[index], &value);
  return value;
}

static void read_arguments(napi_env env, napi_callback_info info, request* asked) {
  size_t count = kMaxArguments;
  asked->env = env;
  napi_get_cb_info(env, info, &count, asked->arguments, NULL, NULL);
}

// The first argument of a call on a limiter.
static bool read_limiter(napi_env env, napi_callback_info info, request* asked) {
  read_arguments(env, info, asked);
  asked->limiter = handle_of(env, asked->arguments[0]);
  instance* self = NULL;
  napi_get_instance_data(env, (void**)&self);
  asked->answer = self->answer;
  return asked->limiter != NULL;
}

// The first three of a call about a key. The key is to be finished with.
static bool read_question(napi_env env, napi_callback_info info, request* asked) {
  if (!read_limiter(env, info, asked) || !read_key(env, asked->arguments[1], &asked->key)) {
    return false;
  }
  asked->cost = (uint64_t)integer(asked, 2);
  return true;
}

static napi_value finish(const request* asked, int answer) {
  free(asked->key.copied);
  return answer_or_throw(asked->env, answer);
}

// ---- Structs of named numbers: options in, counters out.

typedef struct {
  const char* name;
  size_t offset;
  size_t size;  // 4 or 8
} field;

#define FIELD(type, name, member) {name, offsetof(type, member), sizeof(((type*)NULL)->member)}
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

// The object has all of them, each a BigInt of the field's range: index.js has seen to that.
static void read_fields(napi_env env, napi_value object, const field* fields, size_t count,
                        void* read) {
  for (size_t i = 0; i < count; ++i) {
    napi_value value = NULL;
    uint64_t wide = 0;
    bool lossless = false;
    napi_get_named_property(env, object, fields[i].name, &value);
    napi_get_value_bigint_uint64(env, value, &wide, &lossless);
    const uint32_t narrow = (uint32_t)wide;
    memcpy((char*)read + fields[i].offset, fields[i].size == 4 ? (void*)&narrow : (void*)&wide,
           fields[i].size);
  }
}

static napi_value made_of_fields(napi_env env, const field* fields, size_t count,
                                 const void* from) {
  napi_value made = NULL;
  napi_create_object(env, &made);
  for (size_t i = 0; i < count; ++i) {
    uint64_t wide = 0;
    uint32_t narrow = 0;
    memcpy(fields[i].size == 4 ? (void*)&narrow : (void*)&wide,
           (const char*)from + fields[i].offset, fields[i].size);
    set(env, made, fields[i].name, number(env, (int64_t)(wide + narrow)));
  }
  return made;
}

#endif  // WEIR_NODE_ARGUMENTS_H
