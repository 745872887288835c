#include "rules/access_list.h"

namespace weir::rules {

bool AccessList::Compile(const std::vector<ListEntry>& entries, AttributeTable& attributes) {
  for (const ListEntry& entry : entries) {
    const auto attribute = attributes.Intern(entry.attribute);
    if (!attribute) {
      return false;
    }
    Matcher matcher{MatcherKind::kExact, entry.value, "", entry.value, {}};
    if (entry.prefix) {
      matcher.kind = MatcherKind::kAddress;
      matcher.prefix = *entry.prefix;
    }
    index_.Add(*attribute, matcher, static_cast<uint32_t>(entries_.size()));
    entries_.push_back({*attribute, entry});
    has_deadlines_ = has_deadlines_ || entry.expires != kNever;
  }
  index_.Finish();
  return true;
}

const ListEntry* AccessList::Find(const RequestView& request, WallTime wall) const noexcept {
  const ListEntry* found = nullptr;
  index_.Match(request, [&](uint32_t place) {
    const auto& [attribute, entry] = entries_[place];
    const bool holds = entry.prefix
                           ? request.address() && entry.prefix->Contains(*request.address())
                           : request.Value(attribute) == entry.value;
    if (holds && wall < entry.expires) {
      found = &entry;
    }
  });
  return found;
}

}  // namespace weir::rules
