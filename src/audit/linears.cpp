#include "audit/linears.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "audit/linear_finder.h"

namespace octet::audit {
namespace {

// Numbers of a weight's size beside codes of the same: the codes may be its mask.
bool has_other_weight(const Signature& operands, const Product& product) {
  int matrices = 0;
  for (const Operand& operand : operands) {
    if (!is_float(operand.type) || operand.dims.size() < 2) continue;
    const int64_t rows = operand.dims[operand.dims.size() - 2], columns = operand.dims.back();
    const bool fits =
        (rows == product.n && columns == product.k) || (rows == product.k && columns == product.n);
    matrices += fits ? 1 : 0;
  }
  // The activations are one of them where m is n.
  return matrices > (product.m == product.n ? 1 : 0);
}

// Ops that multiply floating-point numbers and nothing else.
bool takes_numbers_alone(std::string_view op) {
  static constexpr std::array<std::string_view, 5> kOfOnnx = {"onnx::MatMul", "onnx::FusedMatMul",
                                                              "onnx::TransposeMatMul", "onnx::Gemm",
                                                              "onnx::FusedGemm"};
  return op.starts_with("aten::") || std::find(kOfOnnx.begin(), kOfOnnx.end(), op) != kOfOnnx.end();
}

// Of what was shifted and masked, or looked up in a table of 16.
bool holds_four_bits(const WaitingWeight& weight, ScalarType stored) {
  const bool is_byte =
      (weight.conversion.by_table && stored == ScalarType::int8) || weight.conversion.of_bytes;
  return weight.unpacked && stored != ScalarType::fp8 && !is_byte;
}

// Eight bits without a scale are a mask, or counts. What dequantizes by name has one, and what was
// unpacked is told by that.
bool needs_no_scale(const WaitingWeight& weight) {
  const bool is_integer =
      weight.conversion.code == ScalarType::int8 || weight.conversion.code == ScalarType::uint8;
  return !is_integer || weight.scaled || weight.named || weight.told || weight.unpacked;
}

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
      cast_before_ = false;
      if (const Signature* operands = list_.signature(work)) waiting_.doubt(*operands);
      note_users(i);
      note_heads(i);
    } else {
      compiled_before_ = compiled_before_ || list_.is_compiled(work);
      if (list_.is_softmax(work)) see_softmax(work);
      if (chooses(list_.op_name(work))) see_choice(work);
      note_result(i);
      if (!look_for_conversion(i)) note_users(i);
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
  call.widened_before = taken.products_before;
  taken_.push_back(calls_.size());
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
  if (has_other_weight(*list_.signature(work), product)) {
    call.verdict = AuditVerdict::unclear;
    call.doubt = Doubt::size_alone;
    return true;
  }
  const uint32_t op = list_.op(work);
  for (uint32_t i = call.work; i-- > 0 && list_.op(list_.works()[i]) == op;) {
    const Work& before = list_.works()[i];
    if (is_gemm(before.work)) break;
    const bool sets =
        !list_.trace().is_host_only() && list_.trace().kernels[before.event].is_transfer;
    if (!sets) call.widening.push_back(i);
  }
  call.stored = product.weight;
  call.stored_dims = {product.n, product.k};
  call.sure = call.is_scaled = true;
  call.widened_before = call.product;
  call.is_widened = !call.widening.empty();
  call.verdict = call.is_widened ? verdict_of_widened(product.weight) : AuditVerdict::weight_only;
  return true;
}

void LinearFinder::multiply_floating(LinearCall& call, int64_t batch) {
  const Work& work = list_.works()[call.work];
  const ProductSize size{call.m, call.n, call.k, batch};
  const bool may_be_linear = !call.is_gradient;
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
    const bool four_bit = packed || holds_four_bits(widened, call.stored);
    call.verdict = four_bit ? AuditVerdict::fake_four_bit : verdict_of_widened(call.stored);
    call.is_used = widened.doubtful;
    call.is_scaled = needs_no_scale(widened);
    call.is_refuted = widened.refuted;
    call.shares = match->rows > 0 || match->several;
    call.is_foreign = widened.received || widened.combined ||
                      list_.is_elsewhere(list_.works()[widened.work], work);
    call.sure =
        match->sure && !call.is_foreign && (match->rows > 0 || follows(widened.products_before));
    if (match->rows > 0) {
      // Parts are sure once there are all of them.
      if (widened.parts == 0) parts_.clear();
      parts_.push_back(calls_.size());
      const bool complete = widened.parts_taken + call.n == match->rows;
      call.sure = call.sure && complete;
      call.is_loose_part = !complete;
      for (size_t i = 0; complete && i + 1 < parts_.size(); ++i) {
        LinearCall& part = calls_[parts_[i]];
        part.sure = call.sure;
        part.is_loose_part = false;
        call.is_used = call.is_used || part.is_used;
      }
      for (size_t i = 0; call.is_used && complete && i + 1 < parts_.size(); ++i) {
        calls_[parts_[i]].is_used = true;
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
      call.verdict = holds_four_bits(piece, call.stored) ? AuditVerdict::fake_four_bit
                                                         : verdict_of_widened(call.stored);
      call.sure = pieces.sure;
      call.is_scaled = needs_no_scale(piece);
      for (size_t i = 0; i < pieces.count; ++i) take(call, {.index = waiting_.size() - 1});
      return;
    }
  }
  // In another layout, its weight may be what waits.
  if (call.n > 0) waiting_.doubt({.type = ScalarType::unknown, .dims = {call.n, call.k}});
  const bool untyped = work.work == WorkClass::gemm;
  if (untyped && !takes_numbers_alone(list_.op_name(work))) return;  // codes as well, perhaps
  if (code_book_ > 0) {
    call.verdict = AuditVerdict::unclear;
    call.doubt = Doubt::looked_up;
  } else if (cast_before_ || compiled_before_ || list_.hides_work(work)) {
    call.verdict = AuditVerdict::unclear;
    call.doubt = cast_before_ ? Doubt::cast_before : Doubt::compiled;
  } else if (untyped) {
    call.verdict = AuditVerdict::unquantized;  // such ops take no codes
  }
}

// Scores of attention go into a softmax, so that the product before it had keys for a weight: codes
// of keys make no quantized linear.
void LinearFinder::see_softmax(const Work& work) {
  const Signature* operands = list_.signature(work);
  if (operands == nullptr && !list_.trace().has_shapes) {
    // The product before it made scores, and the next one multiplies by values.
    after_softmax_ = true;
    if (!calls_.empty() && calls_.back().product + 1 == products_) forget_widening(calls_.back());
    return;
  }
  softmax_ = operands == nullptr ? 0 : most_floats(*operands);
  if (calls_.empty() || was_of_two_ || softmax_ == 0 ||
      calls_.back().m * calls_.back().n * calls_.back().batch != softmax_)
    return;
  forget_widening(calls_.back());
  if (is_native(calls_.back().verdict)) calls_.pop_back();
}

// The best of many was chosen by the product before it: distances to a table of
// codes.
void LinearFinder::see_choice(const Work& work) {
  const Signature* operands = list_.signature(work);
  if (operands == nullptr || calls_.empty() || was_of_two_) return;
  LinearCall& scores = calls_.back();
  if (scores.m * scores.n == most_floats(*operands)) forget_widening(scores);
}

// What was widened for it is no weight.
void LinearFinder::forget_widening(LinearCall& call) {
  if (call.is_widened) call.verdict = verdict_of_product(list_.works()[call.work].work);
  note_use({.type = ScalarType::unknown, .dims = {call.n, call.k}});
  note_use({.type = ScalarType::unknown, .dims = call.stored_dims});
  call.is_widened = false;
  call.widening.clear();
  call.sure = false;
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
  call.product = products_;
  call.is_gradient = list_.is_in_backward(work);
  note_activations(index);
  if (batch > 1) note_heads(index);
  if (batch > 1 && !waiting_.find({call.m, call.n, call.k, batch}, products_)) {
    // Of two activations; or of experts whose weights were never codes, which is the same to us.
    if (const Signature* operands = list_.signature(work)) {
      waiting_.forget(*operands, products_);
      waiting_.doubt(*operands);
    }
    softmax_ = 0;
    was_of_two_ = true;
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
  const bool attends = after_softmax_ || (softmax_ > 0 && softmax_ == call.m * call.k * batch);
  if (attends) forget_widening(call);
  if (after_softmax_ || !attends || !is_native(call.verdict)) calls_.push_back(call);
  cast_before_ = normed_before_ = compiled_before_ = false;
  after_softmax_ = was_of_two_ = false;
  unpacked_ = code_book_ = lookups_ = softmax_ = 0;
  ++products_;
}

std::vector<LinearCall> find_linears(WorkList& list) {
  if (list.trace().has_order) return LinearFinder(list).find();
  if (!list.trace().is_host_only()) return find_linears_in_sums(list);
  std::vector<LinearCall> found = LinearFinder(list).find();
  doubt_by_casts(list, found);
  return found;
}

}  // namespace octet::audit
