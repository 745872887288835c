#include "shared/reservation_record.h"

#include <charconv>

namespace weir::shared {

namespace {

constexpr std::string_view kVersion = "1";

void Put(std::string& out, uint64_t value) {
  out += std::to_string(value);
  out += ' ';
}

// Takes a number and the blank or line end behind it.
bool Take(std::string_view& text, uint64_t& value) {
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto used = static_cast<size_t>(at - text.data());
  if (error != std::errc{} || used >= text.size() || (text[used] != ' ' && text[used] != '\n')) {
    return false;
  }
  text.remove_prefix(used + 1);
  return true;
}

bool TakeCharge(std::string_view& text, SharedStore& store, LocalReservation& reservation) {
  uint64_t scope = 0;
  uint64_t charged = 0;
  uint64_t cost = 0;
  SharedReceipt receipt;
  if (!Take(text, scope) || !Take(text, receipt.key[0]) || !Take(text, receipt.key[1])) {
    return false;
  }
  for (uint64_t& word : receipt.mark) {
    if (!Take(text, word)) {
      return false;
    }
  }
  if (!Take(text, charged) || !Take(text, cost) || charged > Quota::kMaxLimit) {
    return false;
  }
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) {
    return false;
  }
  const auto quota = Quota::Parse(text.substr(0, end));
  text.remove_prefix(end + 1);
  if (!quota) {
    return false;
  }
  const auto bound = store.Bind(*quota, scope);
  if (!bound) {
    return false;
  }
  receipt.quota = *bound;
  receipt.charged = static_cast<uint32_t>(charged);
  reservation.receipts.push_back(receipt);
  reservation.costs.push_back(cost);
  return true;
}

}  // namespace

std::string WriteRecord(const LocalReservation& reservation) {
  std::string out(kVersion);
  out += ' ';
  out += std::to_string(reservation.estimate);
  out += '\n';
  for (size_t i = 0; i < reservation.receipts.size(); ++i) {
    const SharedReceipt& receipt = reservation.receipts[i];
    Put(out, receipt.quota->scope);
    Put(out, receipt.key[0]);
    Put(out, receipt.key[1]);
    for (const uint64_t word : receipt.mark) {
      Put(out, word);
    }
    Put(out, receipt.charged);
    Put(out, reservation.costs[i]);
    out += receipt.quota->quota.ToString();
    out += '\n';
  }
  return out;
}

std::optional<LocalReservation> ReadRecord(std::string_view text, SharedStore& store) {
  LocalReservation reservation;
  if (!text.starts_with(kVersion) || text.size() < 2 || text[1] != ' ') {
    return std::nullopt;
  }
  text.remove_prefix(2);
  if (!Take(text, reservation.estimate)) {
    return std::nullopt;
  }
  while (!text.empty()) {
    if (reservation.receipts.size() >= kMaxCharges || !TakeCharge(text, store, reservation)) {
      return std::nullopt;
    }
  }
  return reservation;
}

}  // namespace weir::shared
