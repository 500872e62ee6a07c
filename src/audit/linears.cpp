#include "audit/linears.h"

#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "audit/linear_finder.h"

namespace octet::audit {
namespace {

// Fewer weights that were widened, each before its product, may be chance.
constexpr int64_t kFewestPairs = 2;

bool is_integer(ScalarType type) { return type == ScalarType::int32 || type == ScalarType::int64; }

}  // namespace

std::vector<LinearCall> LinearFinder::find() {
  for (uint32_t i = 0; i < list_.works().size(); ++i) {
    const Work& work = list_.works()[i];
    if (is_gemm(work.work)) {
      multiply(i);
    } else if (work.work == WorkClass::attention || work.work == WorkClass::convolution) {
      // Keys, values and filters can be codes, too: they wait for no linear.
      waiting_.forget(products_);
    } else {
      if (list_.is_softmax(work)) see_softmax(work);
      look_for_conversion(i);
    }
  }
  settle();
  return std::move(calls_);
}

void LinearFinder::set_class(uint32_t index, WorkClass work) {
  Work& changed = list_.works()[index];
  if (changed.work == work) return;
  changed.work = work;
  changed.evidence = Evidence::neighbours;
}

// Split sums are added up by a second kernel of the same op.
bool LinearFinder::is_same_call(uint32_t index) const {
  if (calls_.empty() || !list_.trace().has_order) return false;
  const uint32_t op = list_.op(list_.works()[index]);
  return !list_.trace().is_host_only() && op != kNone && !list_.trace().ops[op].is_range &&
         op == list_.op(list_.works()[calls_.back().work]);
}

// A conversion with all that belongs to it.
void LinearFinder::take(LinearCall& call, const WeightMatch& match) {
  const WaitingWeight taken = waiting_.take(match, match.rows > 0 ? call.n : 0);
  call.is_widened = true;
  // A tensor of several matrices is taken several times, and its time counts once.
  if (!taken.was_taken) call.widening.push_back(taken.work);
  call.widening.insert(call.widening.end(), taken.more.begin(), taken.more.end());
}

// Scales that were quantized themselves are widened by a kernel of their own.
void LinearFinder::take_named(LinearCall& call) {
  for (size_t i = waiting_.size(); i-- > 0 && waiting_[i].products_before == products_;) {
    if (waiting_[i].named) take(call, {.index = i});
  }
}

// Codes of activations that became numbers again, as honest simulations of INT8 do.
void LinearFinder::take_activations(LinearCall& call) {
  for (const uint32_t index : quantized_) call.quantize_us += list_.us(list_.works()[index]);
  quantized_.clear();
  coded_.clear();
  for (size_t i = waiting_.size(); i-- > 0 && waiting_[i].products_before == products_;) {
    if (call.m == 0 || waiting_[i].conversion.codes != call.m * call.k) continue;
    const WaitingWeight taken = waiting_.take({.index = i});
    if (taken.was_taken) continue;
    call.quantize_us += list_.us(list_.works()[taken.work]);
    set_class(taken.work, WorkClass::quantize_activation);
    for (const uint32_t more : taken.more) {
      call.quantize_us += list_.us(list_.works()[more]);
      set_class(more, WorkClass::quantize_activation);
    }
  }
}

// An op that takes a weight of codes and multiplies in floating point: what it ran before widened
// the weight; if it ran nothing else, the product itself did.
bool LinearFinder::multiply_codes(LinearCall& call, const Product& product) {
  if (!is_float(product.a) || !is_code(product.weight)) return false;
  const Work& work = list_.works()[call.work];
  if (work.work != WorkClass::half_gemm && work.work != WorkClass::single_gemm) return false;
  const uint32_t op = list_.op(work);
  for (uint32_t i = call.work; i-- > 0 && list_.op(list_.works()[i]) == op;) {
    if (is_gemm(list_.works()[i].work)) break;
    call.widening.push_back(i);
  }
  call.stored = product.weight;
  call.stored_dims = {product.n, product.k};
  call.sure = true;
  call.is_widened = !call.widening.empty();
  call.verdict = call.is_widened ? verdict_of_widened(product.weight) : AuditVerdict::weight_only;
  return true;
}

void LinearFinder::multiply_floating(LinearCall& call, int64_t batch) {
  const Work& work = list_.works()[call.work];
  const ProductSize size{call.m, call.n, call.k, batch};
  const bool may_be_linear = !list_.is_in_backward(work);
  const auto match = may_be_linear ? waiting_.find(size, products_) : std::nullopt;
  if (match) {
    const WaitingWeight& widened = waiting_[match->index];
    const ScalarType named = list_.works()[widened.work].type;
    call.stored = named != ScalarType::unknown ? named : widened.conversion.code;
    // Four to a word are of 8 bits, whatever else the kernel can widen.
    const bool bytes = match->rows == 0 && call.n > 0 && widened.conversion.words > 0 &&
                       widened.conversion.words * 4 == call.n * call.k;
    if (bytes) call.stored = ScalarType::int8;
    call.stored_dims = widened.conversion.dims;
    // Bytes with more than one weight each have four bits per weight.
    const bool packed = call.stored == ScalarType::uint8 && widened.conversion.codes > 0 &&
                        match->rows == 0 && widened.conversion.codes * 3 / 2 < call.n * call.k;
    const bool four_bit = packed || (widened.unpacked && call.stored != ScalarType::fp8);
    call.verdict = four_bit ? AuditVerdict::fake_four_bit : verdict_of_widened(call.stored);
    call.sure = match->sure;
    if (match->rows > 0) {
      // Parts are sure once there are all of them.
      if (widened.parts == 0) parts_.clear();
      parts_.push_back(calls_.size());
      const bool complete = widened.parts_taken + call.n == match->rows;
      call.sure = match->sure && complete;
      call.is_loose_part = !complete;
      for (size_t i = 0; complete && i + 1 < parts_.size(); ++i) {
        calls_[parts_[i]].sure = match->sure;
        calls_[parts_[i]].is_loose_part = false;
      }
    }
    take(call, *match);
    take_named(call);
    return;
  }
  if (may_be_linear) {
    if (const auto pieces = waiting_.find_pieces(size, products_); pieces.count > 1) {
      const WaitingWeight& piece = waiting_[waiting_.size() - 1];
      call.stored = piece.conversion.code;
      call.stored_dims = piece.conversion.dims;
      call.verdict = piece.unpacked && call.stored != ScalarType::fp8
                         ? AuditVerdict::fake_four_bit
                         : verdict_of_widened(call.stored);
      call.sure = pieces.sure;
      for (size_t i = 0; i < pieces.count; ++i) take(call, {.index = waiting_.size() - 1});
      return;
    }
  }
  if (cast_before_ || list_.hides_work(work)) {
    call.verdict = AuditVerdict::unclear;
    call.doubt = cast_before_ ? Doubt::cast_before : Doubt::compiled;
  } else if (work.work == WorkClass::gemm && list_.op_name(work).starts_with("aten::")) {
    call.verdict = AuditVerdict::unquantized;  // such ops take no codes
  }
}

// Scores of attention go into a softmax, so that the product before it had keys for a weight: codes
// of keys make no quantized linear.
void LinearFinder::see_softmax(const Work& work) {
  const Signature* operands = list_.signature(work);
  softmax_ = operands == nullptr ? 0 : most_floats(*operands);
  if (calls_.empty() || softmax_ == 0 ||
      calls_.back().m * calls_.back().n * calls_.back().batch != softmax_)
    return;
  forget_widening(calls_.back());
  if (is_native(calls_.back().verdict)) calls_.pop_back();
}

// What was widened for it is no weight.
void LinearFinder::forget_widening(LinearCall& call) {
  if (call.is_widened) call.verdict = verdict_of_product(list_.works()[call.work].work);
  call.is_widened = false;
  call.widening.clear();
  call.sure = false;
}

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
    const bool floats = calls_[i].verdict == AuditVerdict::unquantized;
    if (floats && widened.contains(linear_of(calls_[i]))) ++without;
  }
  return pairs > 0 && without >= pairs;
}

// One pair may be chance: a widened weight is only believed in if there are several, and one that
// could be another tensor only beside others that could not.
void LinearFinder::settle() {
  std::map<AuditVerdict, int64_t> sure;
  for (LinearCall& call : calls_) {
    if (call.is_loose_part) forget_widening(call);
    if (call.sure) sure[call.verdict] += call.calls;
  }
  const bool kept = keeps_widened();
  for (LinearCall& call : calls_) {
    if (!call.is_widened) continue;
    if (sure[call.verdict] >= kFewestPairs && !kept) {
      call.sure = true;
      for (const uint32_t index : call.widening) {
        call.dequantize_us += list_.us(list_.works()[index]);
        set_class(index, WorkClass::dequantize_weight);
      }
      continue;
    }
    call.doubt = kept && sure[call.verdict] >= kFewestPairs ? Doubt::kept
                 : call.sure                                ? Doubt::few_pairs
                                                            : Doubt::size_alone;
    call.verdict = AuditVerdict::unclear;
  }
}

void LinearFinder::multiply(uint32_t index) {
  const Work& work = list_.works()[index];
  if (is_same_call(index)) {
    LinearCall& call = calls_.back();
    const bool longer = list_.us(work) > list_.us(list_.works()[call.work]);
    call.gemm_us += list_.us(work);
    if (longer) call.work = index;
    return;
  }
  const auto product = list_.product(work);
  LinearCall call{.work = index, .verdict = verdict_of_product(work.work)};
  call.gemm_us = list_.us(work);
  call.calls = list_.calls(work);
  int64_t batch = 1;
  if (product) {
    call.m = product->m;
    call.n = product->n;
    call.k = product->k;
    batch = product->batch;
  }
  call.batch = batch;
  if (batch > 1 && !waiting_.find({call.m, call.n, call.k, batch}, products_)) {
    // Of two activations; or of experts whose weights were never codes, which is the same to us.
    if (const Signature* operands = list_.signature(work)) waiting_.forget(*operands, products_);
    softmax_ = 0;
    return;
  }
  const bool floating = work.work == WorkClass::half_gemm || work.work == WorkClass::single_gemm ||
                        work.work == WorkClass::gemm;
  // Outliers of LLM.int8, and rotations: parts of a linear that multiplies in INT8 otherwise.
  if (floating && list_.is_part_of_int8(work)) return;
  const bool integers = product && (is_integer(product->a) || is_integer(product->weight));
  if (floating && !integers && !(product && multiply_codes(call, *product))) {
    multiply_floating(call, batch);
  }
  if (call.verdict == AuditVerdict::unclear && call.doubt == Doubt::none) {
    call.doubt = Doubt::no_type;
  }
  take_activations(call);
  // Probabilities of attention are multiplied by values.
  const bool attends = softmax_ > 0 && softmax_ == call.m * call.k * batch;
  if (attends) forget_widening(call);
  if (!attends || !is_native(call.verdict)) calls_.push_back(call);
  cast_before_ = unpacked_before_ = false;
  code_book_ = softmax_ = 0;
  ++products_;
}

std::vector<LinearCall> find_linears(WorkList& list) {
  const bool has_order = list.trace().has_order || list.trace().is_host_only();
  return has_order ? LinearFinder(list).find() : find_linears_in_sums(list);
}

}  // namespace octet::audit
