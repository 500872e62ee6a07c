// A weight that is widened leaves a track in every trace with operands: codes of n x k elements go
// into a copy or a multiplication, numbers come out, perhaps more arithmetic with a small operand
// (the scales), and then a product in floating point with n x k weights. Addresses would be better
// evidence, but no profiler writes them; sizes have to do, and the order of things.
#include "audit/linears.h"

#include <algorithm>
#include <array>
#include <optional>

namespace octet::audit {
namespace {

// Conversions that no product has asked for yet. More are forgotten, oldest first: a model that is
// dequantized as a whole before it runs has some hundred.
constexpr size_t kMaxWaiting = 1024;
// Kernels before a conversion to codes that may have looked for the largest value, and the like.
constexpr size_t kQuantizeChain = 10;
// LLM.int8 multiplies columns with outliers apart, in fp16: a part of a linear in INT8.
constexpr std::string_view kOutlierOp = "bitsandbytes::int8_mixed_scaled_mm";
// Scales are this much smaller than what they multiply.
constexpr int64_t kScaleShare = 8;
// Without operands, copies of fewer threads are of something small.
constexpr uint64_t kLargeThreads = 1 << 14;

struct Waiting {
  uint32_t work = 0;
  Conversion conversion;
  int64_t numbers = 0;         // elements of the other side; 0: not told
  std::vector<uint32_t> more;  // arithmetic on the numbers
  size_t products_before = 0;
};

// Whether so many bytes hold so many weights in one of the known ways: two or four to a byte, or
// blocks of GGUF, whose scales lie between the codes.
bool is_packed(int64_t bytes, int64_t weights) {
  struct Block {
    int64_t weights, bytes;
  };
  static constexpr Block kBlocks[] = {{2, 1},     {4, 1},     {32, 34},   {32, 18},
                                      {32, 20},   {32, 22},   {32, 24},   {256, 84},
                                      {256, 110}, {256, 144}, {256, 176}, {256, 210}};
  return std::any_of(std::begin(kBlocks), std::end(kBlocks), [&](const Block& block) {
    return bytes % block.bytes == 0 && bytes / block.bytes * block.weights == weights;
  });
}

int64_t most_elements(const Signature& signature, bool (*wanted)(ScalarType)) {
  int64_t most = 0;
  for (const Operand& operand : signature) {
    if (wanted(operand.type)) most = std::max(most, elements_of(operand));
  }
  return most;
}

bool is_any_float(ScalarType type) { return is_float(type); }

// A step of quantizing activations, by the op's name.
bool looks_for_scales(std::string_view op) {
  static constexpr std::array kSteps = {
      "aten::abs",        "aten::amax",  "aten::max",       "aten::div",        "aten::div_",
      "aten::round",      "aten::clamp", "aten::clamp_min", "aten::round_",     "aten::clamp_",
      "aten::reciprocal", "aten::mul",   "aten::aminmax",   "aten::clamp_min_", "aten::maximum"};
  return std::find(kSteps.begin(), kSteps.end(), op) != kSteps.end();
}

AuditVerdict verdict_of_native(WorkClass work) {
  switch (work) {
    case WorkClass::int8_gemm: return AuditVerdict::native_int8;
    case WorkClass::fp8_gemm: return AuditVerdict::native_fp8;
    case WorkClass::four_bit_gemm: return AuditVerdict::native_four_bit;
    case WorkClass::weight_only_gemm: return AuditVerdict::weight_only;
    case WorkClass::half_gemm:
    case WorkClass::single_gemm: return AuditVerdict::unquantized;
    default: return AuditVerdict::unclear;
  }
}

AuditVerdict verdict_of_widened(ScalarType stored) {
  switch (stored) {
    case ScalarType::fp8: return AuditVerdict::fake_fp8;
    case ScalarType::fp4: return AuditVerdict::fake_four_bit;
    default: return AuditVerdict::fake_int8;
  }
}

class LinearFinder {
 public:
  explicit LinearFinder(WorkList& list) : list_(list) {}

  std::vector<LinearCall> find() {
    if (!list_.trace().has_order && !list_.trace().is_host_only()) return find_in_sums();
    for (uint32_t i = 0; i < list_.works().size(); ++i) {
      const Work& work = list_.works()[i];
      if (is_gemm(work.work)) {
        multiply(i);
      } else if (work.work != WorkClass::attention && work.work != WorkClass::convolution) {
        look_for_conversion(i);
      }
    }
    return std::move(calls_);
  }

 private:
  std::vector<LinearCall> find_in_sums();
  void multiply(uint32_t index);
  void look_for_conversion(uint32_t index);
  void widen(uint32_t index, const Conversion& conversion, int64_t numbers);
  void quantize(uint32_t index, int64_t elements);
  bool continues_widening(uint32_t index);
  void note_cast(const Work& work);
  std::optional<size_t> waiting_for(const LinearCall& call) const;
  double take(size_t waiting, WorkClass as);
  void take_named(LinearCall& call);
  void take_activations(LinearCall& call);
  void set_class(uint32_t index, WorkClass work);
  bool is_same_call(uint32_t index) const;

  WorkList& list_;
  std::vector<Waiting> waiting_;     // in order of time
  std::vector<uint32_t> quantized_;  // works since the last product
  std::vector<LinearCall> calls_;
  bool cast_before_ = false;  // a copy that may have widened a weight, where operands are unknown
  bool unpacked_before_ = false;  // bits of codes were shifted and masked
  size_t products_ = 0;
};

void LinearFinder::set_class(uint32_t index, WorkClass work) {
  Work& changed = list_.works()[index];
  if (changed.work == work) return;
  changed.work = work;
  changed.evidence = Evidence::neighbours;
}

// Files that only have sums tell no order: kernels that do nothing but widen weights speak for as
// many products in floating point as they were called.
std::vector<LinearCall> LinearFinder::find_in_sums() {
  int64_t widened = 0, casts = 0;
  double widened_us = 0, products_us = 0;
  ScalarType stored = ScalarType::unknown;
  for (const Work& work : list_.works()) {
    if (work.work == WorkClass::dequantize_weight) {
      widened += list_.calls(work);
      widened_us += list_.us(work);
      if (work.type != ScalarType::unknown) stored = work.type;
    } else if (work.work == WorkClass::half_gemm || work.work == WorkClass::single_gemm) {
      products_us += list_.us(work);
    } else if (may_widen(list_.name(work))) {
      casts += list_.calls(work);
    }
  }
  for (uint32_t i = 0; i < list_.works().size(); ++i) {
    const Work& work = list_.works()[i];
    if (!is_gemm(work.work)) continue;
    LinearCall call{.work = i, .verdict = verdict_of_native(work.work)};
    call.calls = list_.calls(work);
    call.gemm_us = list_.us(work);
    if (call.verdict == AuditVerdict::unquantized && widened >= call.calls) {
      widened -= call.calls;
      call.stored = stored;
      call.verdict = verdict_of_widened(stored);
      if (products_us > 0) call.dequantize_us = widened_us * call.gemm_us / products_us;
    } else if (call.verdict == AuditVerdict::unquantized && casts >= call.calls) {
      casts -= call.calls;
      call.verdict = AuditVerdict::unclear;
      call.doubt = Doubt::cast_before;
    }
    calls_.push_back(call);
  }
  return std::move(calls_);
}

// Split sums are added up by a second kernel of the same op.
bool LinearFinder::is_same_call(uint32_t index) const {
  if (calls_.empty() || !list_.trace().has_order) return false;
  const uint32_t op = list_.op(list_.works()[index]);
  return !list_.trace().is_host_only() && op != kNone && !list_.trace().ops[op].is_range &&
         op == list_.op(list_.works()[calls_.back().work]);
}

std::optional<size_t> LinearFinder::waiting_for(const LinearCall& call) const {
  const int64_t weights = call.n * call.k;
  for (size_t i = waiting_.size(); i-- > 0;) {
    const Waiting& waiting = waiting_[i];
    const bool right_before = waiting.products_before == products_;
    if (weights == 0) {
      // Nothing tells the size: only what came right before.
      if (right_before) return i;
      continue;
    }
    const int64_t codes = waiting.conversion.codes;
    // Pixels, and other bytes that are what the product multiplies.
    if (waiting.conversion.code == ScalarType::uint8 && codes == call.m * call.k) continue;
    if (waiting.numbers == weights || codes == weights) return i;
    // Bytes that hold two codes, or blocks of codes with their scale.
    const bool packs =
        waiting.conversion.code == ScalarType::uint8 || waiting.conversion.code == ScalarType::fp4;
    const bool fits = codes == 0 || (packs && is_packed(codes, weights));
    if (fits && waiting.numbers == 0 && right_before) return i;
  }
  return std::nullopt;
}

// The time of a conversion with all that belongs to it, which gets its class.
double LinearFinder::take(size_t index, WorkClass as) {
  const Waiting waiting = std::move(waiting_[index]);
  waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(index));
  double us = list_.us(list_.works()[waiting.work]);
  set_class(waiting.work, as);
  for (const uint32_t more : waiting.more) {
    us += list_.us(list_.works()[more]);
    set_class(more, as);
  }
  return us;
}

// Scales that were quantized themselves are widened by a kernel of their own.
void LinearFinder::take_named(LinearCall& call) {
  for (size_t i = waiting_.size(); i-- > 0 && waiting_[i].products_before == products_;) {
    if (list_.works()[waiting_[i].work].work == WorkClass::dequantize_weight) {
      call.dequantize_us += take(i, WorkClass::dequantize_weight);
    }
  }
}

// Codes of activations that became numbers again, as honest simulations of INT8 do.
void LinearFinder::take_activations(LinearCall& call) {
  for (const uint32_t index : quantized_) call.quantize_us += list_.us(list_.works()[index]);
  quantized_.clear();
  for (size_t i = waiting_.size(); i-- > 0 && waiting_[i].products_before == products_;) {
    if (call.m > 0 && waiting_[i].conversion.codes == call.m * call.k) {
      call.quantize_us += take(i, WorkClass::quantize_activation);
    }
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
  if (product && product->is_batched) return;  // of two activations
  if (work.work != WorkClass::int8_gemm && list_.is_called_by(work, kOutlierOp)) return;
  LinearCall call{.work = index, .verdict = verdict_of_native(work.work)};
  call.gemm_us = list_.us(work);
  call.calls = list_.calls(work);
  if (product) {
    call.m = product->m;
    call.n = product->n;
    call.k = product->k;
  }
  const bool floating = work.work == WorkClass::half_gemm || work.work == WorkClass::single_gemm ||
                        work.work == WorkClass::gemm;
  if (floating) {
    if (const auto waiting = waiting_for(call)) {
      const Waiting& widened = waiting_[*waiting];
      const ScalarType named = list_.works()[widened.work].type;
      call.stored = named != ScalarType::unknown ? named : widened.conversion.code;
      // Bytes that stand for more than one weight each hold four bits.
      const bool packed = call.stored == ScalarType::uint8 && widened.conversion.codes > 0 &&
                          widened.conversion.codes * 3 / 2 < call.n * call.k;
      const bool four_bit = packed || (unpacked_before_ && call.stored != ScalarType::fp8);
      call.verdict = four_bit ? AuditVerdict::fake_four_bit : verdict_of_widened(call.stored);
      call.dequantize_us = take(*waiting, WorkClass::dequantize_weight);
      take_named(call);
    } else if (cast_before_ || list_.hides_work(work)) {
      call.verdict = AuditVerdict::unclear;
      call.doubt = cast_before_ ? Doubt::cast_before : Doubt::compiled;
    } else if (work.work == WorkClass::gemm && list_.op_name(work).starts_with("aten::")) {
      call.verdict = AuditVerdict::unquantized;  // such ops take no codes
    }
  }
  if (call.verdict == AuditVerdict::unclear && call.doubt == Doubt::none) {
    call.doubt = Doubt::no_type;
  }
  take_activations(call);
  calls_.push_back(call);
  cast_before_ = unpacked_before_ = false;
  ++products_;
}

// Arithmetic on numbers that were just widened: scales, offsets, another rounding.
bool LinearFinder::continues_widening(uint32_t index) {
  const Work& work = list_.works()[index];
  const Signature* operands = list_.signature(work);
  if (operands == nullptr || waiting_.empty()) return false;
  if (work.work != WorkClass::elementwise && work.work != WorkClass::copy) return false;
  const int64_t numbers = most_elements(*operands, is_any_float);
  if (numbers == 0) return false;
  int large = 0;
  for (const Operand& operand : *operands) {
    if (elements_of(operand) * kScaleShare >= numbers) ++large;
  }
  // A copy has both sides among its operands, a product with a scale only one.
  const int expected = work.work == WorkClass::copy ? 2 : 1;
  if (large > expected) return false;
  for (auto waiting = waiting_.rbegin(); waiting != waiting_.rend(); ++waiting) {
    if (waiting->products_before != products_) break;
    if (waiting->conversion.codes == numbers || waiting->numbers == numbers) {
      waiting->more.push_back(index);
      return true;
    }
  }
  return false;
}

void LinearFinder::widen(uint32_t index, const Conversion& conversion, int64_t numbers) {
  if (waiting_.size() == kMaxWaiting) waiting_.erase(waiting_.begin());
  waiting_.push_back({.work = index,
                      .conversion = conversion,
                      .numbers = numbers,
                      .more = {},
                      .products_before = products_});
}

// The kernels right before that looked for the scales of the same activations belong to it.
void LinearFinder::quantize(uint32_t index, int64_t elements) {
  set_class(index, WorkClass::quantize_activation);
  quantized_.push_back(index);
  for (size_t back = 1; back <= kQuantizeChain && back <= index; ++back) {
    const auto before = static_cast<uint32_t>(index - back);
    const Work& work = list_.works()[before];
    if (work.work != WorkClass::elementwise && work.work != WorkClass::copy) break;
    if (!looks_for_scales(list_.op_name(work))) continue;
    const Signature* operands = list_.signature(work);
    if (operands != nullptr && elements > 0 && most_elements(*operands, is_any_float) != elements) {
      continue;
    }
    set_class(before, WorkClass::quantize_activation);
    quantized_.push_back(before);
  }
}

void LinearFinder::look_for_conversion(uint32_t index) {
  const Work& work = list_.works()[index];
  const Signature* operands = list_.signature(work);
  if (work.work == WorkClass::quantize_activation) {
    quantized_.push_back(index);
    return;
  }
  const std::string_view op = list_.op_name(work);
  if (op.find("bitwise") != op.npos || op.find("shift") != op.npos) unpacked_before_ = true;
  const bool by_name = work.work == WorkClass::dequantize_weight;
  const auto conversion =
      operands == nullptr ? std::optional<Conversion>() : conversion_of(op, *operands);
  if (conversion && conversion->direction == Conversion::Direction::to_codes && !by_name) {
    quantize(index, conversion->codes);
    return;
  }
  if (conversion || by_name) {
    if (!conversion) {
      // A kernel of an op that does more, whose other operands say nothing about the weight.
      widen(index, operands == nullptr ? Conversion{} : widening_of(*operands), 0);
      return;
    }
    int64_t numbers = most_elements(*operands, is_any_float);
    if (numbers < conversion->codes) numbers = 0;  // only scales were told
    widen(index, *conversion, numbers);
    return;
  }
  if (continues_widening(index)) return;
  if (operands == nullptr && list_.trace().has_order) note_cast(work);
}

// Where no operands were recorded, names have to do.
void LinearFinder::note_cast(const Work& work) {
  if (work.work != WorkClass::copy && work.work != WorkClass::elementwise) return;
  if (list_.trace().is_host_only()) {
    if (list_.is_called_by(work, "aten::_to_copy")) cast_before_ = true;
    return;
  }
  const bool large = list_.trace().kernels[work.event].threads >= kLargeThreads;
  if (large && may_widen(list_.name(work))) cast_before_ = true;
}

}  // namespace

std::vector<LinearCall> find_linears(WorkList& list) { return LinearFinder(list).find(); }

}  // namespace octet::audit
