// A row of the table: one fault, what is asked of weir under it, what was measured.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/chaos/probe.h"

namespace weir::chaos {

// What a row found.
struct Finding {
  std::string asked;
  std::string measured;
  enum class Verdict : uint8_t { kPass, kMiss, kShown } verdict = Verdict::kShown;
};

// Handed to a row; what it says becomes the table.
class Report {
 public:
  struct Options {
    bool quick = false;   // shorter faults, fewer rounds
    bool counts = false;  // times are shown and not judged: for machines that are busy otherwise
  };

  explicit Report(const Options& options) : options_(options) {}

  [[nodiscard]] bool quick() const noexcept { return options_.quick; }

  // A number or a bound, judged always.
  void Expect(std::string asked, std::string measured, bool holds);
  // One that the machine has a part in.
  void ExpectTime(std::string asked, std::string measured, bool holds);
  // Worth knowing, not asked for.
  void Show(std::string what, std::string measured);
  // For whoever watches.
  void Progress(const std::string& what) const;

  [[nodiscard]] const std::vector<Finding>& findings() const noexcept { return findings_; }
  [[nodiscard]] bool missed() const noexcept;

 private:
  const Options options_;
  std::vector<Finding> findings_;
};

struct Row {
  std::string_view name;
  std::string_view fault;
  void (*run)(Report& report, Probe& probe);
};

// In the order of the table.
[[nodiscard]] const std::vector<Row>& Rows();

// silence_rows.cc
void SilentMaster(Report& report, Probe& probe);
void Flapping(Report& report, Probe& probe);
// charge_rows.cc
void ScriptFlush(Report& report, Probe& probe);
void LostReplies(Report& report, Probe& probe);
void Reshard(Report& report, Probe& probe);
// failover_rows.cc
void KilledMaster(Report& report, Probe& probe);
void Gone(Report& report, Probe& probe);
// exact_rows.cc
void SkewedClocks(Report& report, Probe& probe);
void Crowded(Report& report, Probe& probe);
// policy_rows.cc
void Policies(Report& report, Probe& probe);

// "12.3 ms"
[[nodiscard]] std::string Ms(int64_t ns);
[[nodiscard]] std::string Text(uint64_t number);

}  // namespace weir::chaos
