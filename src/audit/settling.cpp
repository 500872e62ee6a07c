// Which of the weights that were widened are believed in, once all products were seen.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "audit/linear_finder.h"

namespace octet::audit {
namespace {

// Fewer weights that were widened, each before its product, may be chance.
constexpr int64_t kFewestPairs = 2;

// Of products in floating point, to which a weight may have been widened.
bool may_be_widened(const LinearCall& call) {
  return !call.is_gradient && !is_native(call.verdict) && call.verdict != AuditVerdict::weight_only;
}

}  // namespace

// Whether weights were widened once and kept, as when a model is loaded: after the last of them the
// same linears ran at least as often without.
bool LinearFinder::keeps_widened() const {
  std::set<std::tuple<std::string_view, int64_t, int64_t>> widened;
  const auto linear_of = [&](const LinearCall& call) {
    return std::tuple(list_.layer(list_.works()[call.work]), call.n, call.k);
  };
  int64_t pairs = 0, without = 0;
  for (const LinearCall& call : calls_) {
    if (!call.is_widened) continue;
    ++pairs;
    widened.insert(linear_of(call));
  }
  for (size_t i = calls_.size(); pairs > 0 && i-- > 0 && !calls_[i].is_widened;) {
    const bool floats = calls_[i].verdict == AuditVerdict::unquantized && !calls_[i].is_gradient;
    if (floats && widened.contains(linear_of(calls_[i]))) ++without;
  }
  return pairs > 0 && without >= pairs;
}

// Before nearly every product in floating point something of its weight's layout was widened, in
// several sizes: no coincidence does that.
bool LinearFinder::widens_nearly_all() const {
  constexpr double kNearlyAll = 0.9;
  constexpr int64_t kSmall = 16;  // LoRAs have fewer weights by more than that
  int64_t most = 0;
  for (const LinearCall& call : calls_) most = std::max(most, call.n * call.k);
  std::set<int64_t> rows;
  int64_t widened = 0, all = 0;
  for (const LinearCall& call : calls_) {
    if (!may_be_widened(call) || call.n * call.k * kSmall <= most) continue;
    ++all;
    if (!call.is_widened || call.is_foreign || call.widened_before != call.product) continue;
    if (!call.is_scaled || call.is_answer) continue;
    ++widened;
    rows.insert(call.n);
  }
  return rows.size() > 1 && static_cast<double>(widened) >= kNearlyAll * static_cast<double>(all);
}

// Weights that were widened together, before others ran, may have been widened when the model was
// loaded, unless that happened again.
void LinearFinder::doubt_one_group() {
  std::set<size_t> groups;
  const auto waited = [](const LinearCall& call) {
    return call.sure && !call.shares && call.is_widened && call.widened_before < call.product;
  };
  for (const LinearCall& call : calls_) {
    if (waited(call)) groups.insert(call.widened_before);
  }
  if (groups.size() != 1) return;
  for (LinearCall& call : calls_) {
    if (waited(call)) call.sure = false;
  }
}

// A weight is widened each time: of a linear that mostly runs without, it was another tensor.
void LinearFinder::doubt_the_rare() {
  struct Times {
    int64_t widened = 0, all = 0;
  };
  std::map<std::tuple<std::string_view, int64_t, int64_t>, Times> linears;
  const auto times_of = [&](const LinearCall& call) -> Times& {
    return linears[{list_.layer(list_.works()[call.work]), call.n, call.k}];
  };
  for (const LinearCall& call : calls_) {
    if (!may_be_widened(call)) continue;
    Times& times = times_of(call);
    times.widened += call.is_widened ? 1 : 0;
    ++times.all;
  }
  for (LinearCall& call : calls_) {
    if (!call.sure) continue;
    const Times& times = times_of(call);
    call.sure = times.widened * 2 >= times.all;
  }
}

// One size may coincide with that of another tensor in all layers, if something took tensors that
// nobody recorded; several sizes do not.
void LinearFinder::doubt_lone_shapes() {
  std::set<std::vector<int64_t>> shapes;
  for (const LinearCall& call : calls_) {
    if (call.sure) shapes.insert(call.stored_dims);
  }
  if (shapes.size() != 1) return;
  for (LinearCall& call : calls_) call.sure = call.sure && !call.may_be_used;
}

// Preconditioners and eigenbases are square, and multiply what the linears of a training step take
// and give.
void LinearFinder::doubt_squares_of_training() {
  bool trains = false, others = false;
  for (const LinearCall& call : calls_) {
    trains = trains || call.is_gradient;
    if (call.sure && call.n != call.k) return;
    others = others || (!call.is_widened && !call.is_gradient && call.n != call.k);
  }
  if (!trains || !others) return;
  for (LinearCall& call : calls_) call.sure = false;
}

// A matrix of the weight's size was copied as often as it was multiplied by, and nothing tells
// from which type.
void LinearFinder::doubt_untyped() {
  if (untyped_.empty()) return;
  std::map<std::pair<int64_t, int64_t>, int64_t> products;
  for (const LinearCall& call : calls_) products[{call.n, call.k}] += call.calls;
  for (LinearCall& call : calls_) {
    if (call.verdict != AuditVerdict::unquantized || call.m == call.n) continue;
    const auto copies = untyped_.find({call.n, call.k});
    if (copies == untyped_.end() || copies->second * 2 < products[{call.n, call.k}]) continue;
    call.verdict = AuditVerdict::unclear;
    call.doubt = Doubt::cast_before;
  }
}

// One pair may be chance: a widened weight is only believed in if there are several, and one that
// could be another tensor only beside others that could not.
void LinearFinder::settle() {
  for (LinearCall& call : calls_) {
    if (call.is_loose_part) forget_widening(call);
    call.sure = call.sure && !call.is_used && call.is_scaled && !call.is_answer;
  }
  if (widens_nearly_all()) {
    for (LinearCall& call : calls_) {
      call.sure = call.is_widened && !call.is_foreign && call.is_scaled;
      call.is_used = call.is_refuted = false;
    }
  }
  // Where its use was seen, and no activations look like it, the product was no use of it.
  for (LinearCall& call : calls_) {
    const bool looks_alike = call.n > 0 && call.m % call.n == 0;
    if (call.is_widened && call.is_refuted && !looks_alike) forget_widening(call);
  }
  doubt_untyped();
  doubt_one_group();
  doubt_the_rare();
  doubt_lone_shapes();
  doubt_squares_of_training();
  std::map<AuditVerdict, int64_t> sure;
  for (const LinearCall& call : calls_) {
    if (call.sure) sure[call.verdict] += call.calls;
  }
  const bool kept = keeps_widened();
  for (LinearCall& call : calls_) {
    if (!call.is_widened) continue;
    const bool believed = !call.is_used && !call.is_foreign && call.is_scaled;
    if (sure[call.verdict] >= kFewestPairs && !kept && believed) {
      call.sure = true;
      for (const uint32_t index : call.widening) {
        call.dequantize_us += list_.us(list_.works()[index]);
        set_class(index, WorkClass::dequantize_weight);
      }
      continue;
    }
    call.doubt = kept ? Doubt::kept : call.sure ? Doubt::few_pairs : Doubt::size_alone;
    call.verdict = AuditVerdict::unclear;
  }
}

}  // namespace octet::audit
