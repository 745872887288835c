#include "testing/lua_host.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include <lua.hpp>

namespace weir::testing {

namespace {

// ---- struct.pack and struct.unpack, as far as '<' with B, I<n> and d go.

struct Field {
  char kind;
  size_t bytes;
};

// The next field of a format; kind 0 at its end.
Field NextField(const char*& format) {
  while (*format == '<') {
    ++format;
  }
  const char kind = *format;
  if (kind == '\0') {
    return {0, 0};
  }
  ++format;
  if (kind != 'I') {
    return {kind, kind == 'd' ? size_t{8} : size_t{1}};
  }
  size_t bytes = 0;
  while (*format >= '0' && *format <= '9') {
    bytes = bytes * 10 + static_cast<size_t>(*format++ - '0');
  }
  return {kind, bytes};
}

int Pack(lua_State* lua) {
  const char* format = luaL_checkstring(lua, 1);
  std::string packed;
  int at = 2;
  for (Field field = NextField(format); field.kind != 0; field = NextField(format)) {
    const double number = luaL_checknumber(lua, at++);
    const uint64_t word = field.kind == 'd' ? std::bit_cast<uint64_t>(number)
                                            : static_cast<uint64_t>(static_cast<int64_t>(number));
    for (size_t i = 0; i < field.bytes; ++i) {
      packed += static_cast<char>(word >> (8 * i) & 0xff);
    }
  }
  lua_pushlstring(lua, packed.data(), packed.size());
  return 1;
}

int Unpack(lua_State* lua) {
  const char* format = luaL_checkstring(lua, 1);
  size_t size = 0;
  const char* const data = luaL_checklstring(lua, 2, &size);
  auto at = static_cast<size_t>(luaL_optinteger(lua, 3, 1)) - 1;
  int results = 0;
  for (Field field = NextField(format); field.kind != 0; field = NextField(format)) {
    if (at + field.bytes > size) {
      return luaL_error(lua, "data string too short");
    }
    uint64_t word = 0;
    for (size_t i = 0; i < field.bytes; ++i) {
      word |= uint64_t{static_cast<unsigned char>(data[at + i])} << (8 * i);
    }
    at += field.bytes;
    lua_pushnumber(lua, field.kind == 'd' ? std::bit_cast<double>(word)
                                          : static_cast<double>(static_cast<int64_t>(word)));
    ++results;
  }
  lua_pushinteger(lua, static_cast<lua_Integer>(at + 1));
  return results + 1;
}

// ---- Replies, as Redis turns them into values of Lua and back.

void Push(lua_State* lua, const ToyReply& reply) {
  switch (reply.kind) {
    case ToyReply::Kind::kNull:
      lua_pushboolean(lua, 0);
      return;
    case ToyReply::Kind::kInteger:
      lua_pushnumber(lua, static_cast<double>(reply.integer));
      return;
    case ToyReply::Kind::kText:
      lua_pushlstring(lua, reply.text.data(), reply.text.size());
      return;
    case ToyReply::Kind::kStatus:
    case ToyReply::Kind::kError:
      lua_newtable(lua);
      lua_pushlstring(lua, reply.text.data(), reply.text.size());
      lua_setfield(lua, -2, reply.kind == ToyReply::Kind::kStatus ? "ok" : "err");
      return;
    case ToyReply::Kind::kArray:
      lua_newtable(lua);
      for (size_t i = 0; i < reply.items.size(); ++i) {
        Push(lua, reply.items[i]);
        lua_rawseti(lua, -2, static_cast<int>(i + 1));
      }
      return;
  }
}

int Call(lua_State* lua) {
  auto* const redis = static_cast<ToyRedis*>(lua_touserdata(lua, lua_upvalueindex(1)));
  ToyRedis::Command command;
  for (int i = 1; i <= lua_gettop(lua); ++i) {
    if (lua_type(lua, i) == LUA_TNUMBER) {
      char number[64];
      std::snprintf(number, sizeof number, "%.17g", lua_tonumber(lua, i));
      command.emplace_back(number);
    } else {
      size_t size = 0;
      const char* const text = luaL_checklstring(lua, i, &size);
      command.emplace_back(text, size);
    }
  }
  const ToyReply reply = redis->Run(command);
  Push(lua, reply);
  if (reply.kind == ToyReply::Kind::kError) {
    lua_getfield(lua, -1, "err");
    return lua_error(lua);
  }
  return 1;
}

int ErrorReply(lua_State* lua) {
  lua_newtable(lua);
  lua_pushvalue(lua, 1);
  lua_setfield(lua, -2, "err");
  return 1;
}

ScriptReply ReplyOf(lua_State* lua) {
  ScriptReply reply;
  if (lua_type(lua, -1) == LUA_TSTRING) {
    size_t size = 0;
    const char* const text = lua_tolstring(lua, -1, &size);
    reply.text.assign(text, size);
    return reply;
  }
  if (lua_type(lua, -1) == LUA_TNUMBER) {
    reply.integers.push_back(static_cast<int64_t>(lua_tonumber(lua, -1)));
    return reply;
  }
  if (!lua_istable(lua, -1)) {
    reply.error = "neither a text nor an array";
    return reply;
  }
  lua_getfield(lua, -1, "err");
  if (lua_isstring(lua, -1) != 0) {
    reply.error = lua_tostring(lua, -1);
    return reply;
  }
  lua_pop(lua, 1);
  for (int i = 1;; ++i) {
    lua_rawgeti(lua, -1, i);
    if (lua_isnil(lua, -1)) {
      return reply;
    }
    reply.integers.push_back(static_cast<int64_t>(lua_tonumber(lua, -1)));
    lua_pop(lua, 1);
  }
}

void SetTexts(lua_State* lua, const char* name, std::span<const std::string> texts) {
  lua_createtable(lua, static_cast<int>(texts.size()), 0);
  for (size_t i = 0; i < texts.size(); ++i) {
    lua_pushlstring(lua, texts[i].data(), texts[i].size());
    lua_rawseti(lua, -2, static_cast<int>(i + 1));
  }
  lua_setglobal(lua, name);
}

}  // namespace

class LuaHost::Machine {
 public:
  explicit Machine(ToyRedis& redis) : lua_(luaL_newstate()) {
    luaL_openlibs(lua_);
    lua_newtable(lua_);
    lua_pushlightuserdata(lua_, &redis);
    lua_pushcclosure(lua_, Call, 1);
    lua_setfield(lua_, -2, "call");
    lua_pushcfunction(lua_, ErrorReply);
    lua_setfield(lua_, -2, "error_reply");
    lua_setglobal(lua_, "redis");
    lua_newtable(lua_);
    lua_pushcfunction(lua_, Pack);
    lua_setfield(lua_, -2, "pack");
    lua_pushcfunction(lua_, Unpack);
    lua_setfield(lua_, -2, "unpack");
    lua_setglobal(lua_, "struct");
    for (const script::Text& text : script::All()) {
      functions_[static_cast<size_t>(&text - script::All().data())] = Load(text.text);
    }
  }
  ~Machine() { lua_close(lua_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  int Load(std::string_view text) {
    if (luaL_loadbuffer(lua_, text.data(), text.size(), "@script") != 0) {
      std::fprintf(stderr, "%s\n", lua_tostring(lua_, -1));
      std::abort();
    }
    return luaL_ref(lua_, LUA_REGISTRYINDEX);
  }

  ScriptReply Run(int function, std::span<const std::string> keys,
                  std::span<const std::string> arguments) {
    SetTexts(lua_, "KEYS", keys);
    SetTexts(lua_, "ARGV", arguments);
    lua_rawgeti(lua_, LUA_REGISTRYINDEX, function);
    ScriptReply reply;
    if (lua_pcall(lua_, 0, 1, 0) != 0) {
      reply.error = lua_tostring(lua_, -1);
    } else {
      reply = ReplyOf(lua_);
    }
    lua_settop(lua_, 0);
    return reply;
  }

  [[nodiscard]] int FunctionOf(script::Id id) const { return functions_[static_cast<size_t>(id)]; }
  void Forget(int function) { luaL_unref(lua_, LUA_REGISTRYINDEX, function); }

 private:
  lua_State* lua_;
  std::array<int, script::kScripts> functions_{};
};

LuaHost::LuaHost() : machine_(std::make_unique<Machine>(redis_)) {}
LuaHost::~LuaHost() = default;

std::vector<ScriptReply> LuaHost::Run(std::span<const ScriptQuestion> questions) {
  std::vector<ScriptReply> replies;
  for (const ScriptQuestion& question : questions) {
    replies.push_back(
        machine_->Run(machine_->FunctionOf(question.script), question.keys, question.arguments));
  }
  return replies;
}

ScriptReply LuaHost::Eval(const std::string& text, std::span<const std::string> keys,
                          std::span<const std::string> arguments) {
  const int function = machine_->Load(text);
  const ScriptReply reply = machine_->Run(function, keys, arguments);
  machine_->Forget(function);
  return reply;
}

}  // namespace weir::testing
