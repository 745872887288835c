// All path patterns of a rule set at once. A path walks down by its segments, the text's own way
// and the wildcard's; each node knows the best rule below it, so ways that cannot win are not
// taken.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/key_hash.h"
#include "rules/path_pattern.h"

namespace weir::rules {

class PathTrie {
 public:
  PathTrie() : nodes_(1) {}

  // `rank` orders the candidates, the least first; `group` is below 64.
  void Add(const PathPattern& pattern, uint32_t rank, unsigned group);
  // After the last Add.
  void Finish();

  // Calls visit(rank) for the patterns that match, and skips what hopeless(groups, least_rank) says
  // cannot win any more.
  template <class Hopeless, class Visit>
  void Match(const PathSegments& path, Hopeless hopeless, Visit visit) const {
    if (nodes_.front().groups == 0) {
      return;
    }
    uint64_t hashes[PathPattern::kMaxSegments];
    const size_t known = std::min(path.size(), PathPattern::kMaxSegments);
    for (size_t i = 0; i < known; ++i) {
      hashes[i] = HashOf(path[i]);
    }
    Walk(0, 0, path, hashes, hopeless, visit);
  }

 private:
  struct Node {
    uint32_t any = 0;               // the child for * and {name}; 0: none
    std::vector<uint32_t> ends;     // ranks of the patterns that end here
    std::vector<uint32_t> rests;    // and of those that go on with **
    uint64_t groups = 0;            // of all that is here and below
    uint32_t least = ~uint32_t{0};  // rank of the same
  };
  struct Edge {
    uint32_t from = 0;
    uint32_t to = 0;  // 0: free
    std::string text;
  };

  [[nodiscard]] static uint64_t HashOf(std::string_view segment) noexcept {
    return base::HashKey(segment, base::ProcessSecret());
  }
  [[nodiscard]] size_t HomeOf(uint32_t from, uint64_t hash) const noexcept {
    return base::MixHash(hash ^ from, kSalt) & (edges_.size() - 1);
  }
  [[nodiscard]] uint32_t Child(uint32_t from, std::string_view text, uint64_t hash) const noexcept {
    for (size_t at = HomeOf(from, hash); edges_[at].to != 0; at = (at + 1) & (edges_.size() - 1)) {
      if (edges_[at].from == from && edges_[at].text == text) {
        return edges_[at].to;
      }
    }
    return 0;
  }

  template <class Hopeless, class Visit>
  void Walk(uint32_t at, size_t depth, const PathSegments& path, const uint64_t* hashes,
            Hopeless& hopeless, Visit& visit) const {
    const Node& node = nodes_[at];
    if (hopeless(node.groups, node.least)) {
      return;
    }
    if (depth < path.size() && depth < PathPattern::kMaxSegments) {
      // What is said in so many words comes first: it is the most specific.
      if (const uint32_t child = Child(at, path[depth], hashes[depth])) {
        Walk(child, depth + 1, path, hashes, hopeless, visit);
      }
      if (node.any != 0) {
        Walk(node.any, depth + 1, path, hashes, hopeless, visit);
      }
    } else if (depth == path.size()) {
      for (const uint32_t rank : node.ends) {
        visit(rank);
      }
    }
    for (const uint32_t rank : node.rests) {
      visit(rank);
    }
  }

  static constexpr uint64_t kSalt = base::SaltFor(1);

  std::vector<Node> nodes_;
  std::vector<Edge> edges_;  // open addressing; a power of two of them
  std::vector<std::unordered_map<std::string, uint32_t>> children_;  // while it is built
};

}  // namespace weir::rules
