#include "redis/slots.h"

#include <array>

#include "redis/call.h"

namespace weir::redis {

namespace {

// CRC16/XMODEM.
constexpr std::array<uint16_t, 256> MakeTable() {
  std::array<uint16_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 0x8000) != 0 ? (crc << 1) ^ 0x1021 : crc << 1;
    }
    table[byte] = static_cast<uint16_t>(crc);
  }
  return table;
}

constexpr std::array<uint16_t, 256> kTable = MakeTable();

// The finaliser of splitmix64.
constexpr uint64_t Mix(uint64_t value) noexcept {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

}  // namespace

uint16_t SlotOf(std::string_view key) noexcept {
  const size_t open = key.find('{');
  if (open != std::string_view::npos) {
    const size_t close = key.find('}', open + 1);
    if (close != std::string_view::npos && close != open + 1) {
      key = key.substr(open + 1, close - open - 1);
    }
  }
  uint32_t crc = 0;
  for (const char character : key) {
    crc = ((crc << 8) ^ kTable[((crc >> 8) ^ static_cast<uint8_t>(character)) & 0xff]) & 0xffff;
  }
  return static_cast<uint16_t>(crc % kSlots);
}

Rendezvous::Rendezvous(const std::vector<Address>& instances) {
  for (const Address& instance : instances) {
    uint64_t seed = 0xcbf29ce484222325U;  // FNV-1a
    for (const char character : instance.ToText()) {
      seed = (seed ^ static_cast<uint8_t>(character)) * 0x100000001b3U;
    }
    seeds_.push_back(Mix(seed));
  }
}

size_t Rendezvous::InstanceOf(uint16_t slot) const noexcept {
  size_t best = 0;
  uint64_t best_score = 0;
  for (size_t i = 0; i < seeds_.size(); ++i) {
    const uint64_t score = Mix(seeds_[i] + slot * 0x9e3779b97f4a7c15U);
    if (i == 0 || score > best_score) {
      best = i;
      best_score = score;
    }
  }
  return best;
}

}  // namespace weir::redis
