// Plans that come with the program, so that nobody waits for kernels to be chosen: of cards that
// were measured by `octet tune` (shipped/measured_plans.json), and of others as the model in
// measure/predict expects them (shipped/predicted_plans.json). Both are embedded in the library.
//
//   {"device": "NVIDIA H200", "names": ["H200"], "multiprocessors": 132, "source": "measured",
//    "layout": "rows", "date": "2026-11-19", "commit": "6a7b5bd", "plans": {
//     "24576x4608+swiglu": {"sm90_128x192_p_s5_c2x1": [2304, 4096], ...}, ...}}
//
// A plan is of a weight, and of numbers of rows. The type of the outputs and a bias are left out:
// they change nothing about which kernel is the fastest. Neither do a driver or a toolkit change
// much: those checks are for the plan file, whose measurements would replace these.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/gemm_tuning.h"

namespace octet::tune {

struct ShippedCard {
  std::string device;              // as its driver calls it, or as cards.json does
  std::vector<std::string> names;  // see is_called()
  int multiprocessors = 0;         // tells relatives of the same name apart
  bool is_measured = false;        // else predicted
  std::string layout;              // of the weights that were measured; empty: of any
  std::string date, commit;        // of the measurement, or of the prediction
  std::map<std::string, std::map<int64_t, std::string>> kernels;  // by weight, then by rows

  bool is(std::string_view device_name, int its_multiprocessors) const;
};

// "24576x4608+swiglu": as `kernels` names the weight of a problem.
std::string shipped_weight(const GemmProblem& problem);

// A file of cards, and back. Throws Error for a text that the writer cannot have made.
std::string shipped_text(const std::vector<ShippedCard>& cards);
std::vector<ShippedCard> shipped_from_text(std::string_view text, const std::string& what);

// All that this build has, those that were measured first.
const std::vector<ShippedCard>& shipped_cards();

// What is known of one device.
class ShippedPlans {
 public:
  ShippedPlans() = default;  // nothing
  ShippedPlans(const std::vector<ShippedCard>& cards, std::string_view device_name,
               int multiprocessors);

  struct Found {
    GemmPlan plan;          // without times: they are of another card, or of none
    bool is_exact = false;  // measured for just this layout and number of rows
  };
  // For the nearest number of rows, since similar ones run best on the same kernel; nothing if none
  // is within a factor of 1.5. Measured plans come before predicted ones.
  std::optional<Found> find(const GemmProblem& problem) const;

 private:
  std::vector<ShippedCard> cards_;
};

}  // namespace octet::tune
