// A weight that is widened leaves a track in every trace with operands: codes of n x k elements go
// into a copy or a multiplication, numbers come out, perhaps more arithmetic with a small operand
// (the scales), and then a product in floating point with n x k weights. Addresses would be better
// evidence, but no profiler writes them; sizes have to do, and the order of things.
#include "audit/linears.h"

#include <algorithm>
#include <array>
#include <optional>

#include "audit/waiting_weights.h"

namespace octet::audit {
namespace {

// Kernels before a conversion to codes that may have looked for the largest value, and the like.
constexpr size_t kQuantizeChain = 10;
// Scales are this much smaller than what they multiply.
constexpr int64_t kScaleShare = 8;
// Without operands, copies of fewer threads are of something small.
constexpr uint64_t kLargeThreads = 1 << 14;

int64_t most_floats(const Signature& signature) {
  int64_t most = 0;
  for (const Operand& operand : signature) {
    if (is_float(operand.type)) most = std::max(most, elements_of(operand));
  }
  return most;
}

// A step of quantizing activations, by the op's name.
bool looks_for_scales(std::string_view op) {
  static constexpr std::array kSteps = {
      "aten::abs",        "aten::amax",  "aten::max",       "aten::div",        "aten::div_",
      "aten::round",      "aten::clamp", "aten::clamp_min", "aten::round_",     "aten::clamp_",
      "aten::reciprocal", "aten::mul",   "aten::aminmax",   "aten::clamp_min_", "aten::maximum"};
  return std::find(kSteps.begin(), kSteps.end(), op) != kSteps.end();
}

// Shifts and masks bits of codes: of integers, not of truth values, which masks are made of.
bool unpacks(std::string_view op, const Signature& operands) {
  if (op.find("bitwise") == op.npos && op.find("shift") == op.npos) return false;
  return std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
    const bool holds_bits = operand.type == ScalarType::int32 || is_code(operand.type);
    return elements_of(operand) > 1 && holds_bits;
  });
}

bool is_integer(ScalarType type) { return type == ScalarType::int32 || type == ScalarType::int64; }

class LinearFinder {
 public:
  explicit LinearFinder(WorkList& list) : list_(list) {}

  std::vector<LinearCall> find() {
    for (uint32_t i = 0; i < list_.works().size(); ++i) {
      const Work& work = list_.works()[i];
      if (is_gemm(work.work)) {
        multiply(i);
      } else if (work.work == WorkClass::attention || work.work == WorkClass::convolution) {
        // Keys, values and filters can be codes, too: they wait for no linear.
        if (const Signature* operands = list_.signature(work))
          waiting_.forget(*operands, products_);
      } else {
        look_for_conversion(i);
      }
    }
    return std::move(calls_);
  }

 private:
  void multiply(uint32_t index);
  void multiply_floating(LinearCall& call, int64_t batch);
  void look_for_conversion(uint32_t index);
  void widen(uint32_t index, const Conversion& conversion, int64_t numbers);
  void quantize(uint32_t index, const Conversion& conversion);
  void remember_coded(int64_t elements);
  bool continues_widening(uint32_t index);
  void note_cast(const Work& work);
  double take(size_t waiting, WorkClass as);
  void take_named(LinearCall& call);
  void take_activations(LinearCall& call);
  void set_class(uint32_t index, WorkClass work);
  bool is_same_call(uint32_t index) const;

  WorkList& list_;
  WaitingWeights waiting_;
  // Since the last product: works that quantize activations, and how many elements each made codes
  // of that are codes still.
  std::vector<uint32_t> quantized_;
  std::vector<int64_t> coded_;
  uint32_t last_decoded_ = kNone;  // the work that made numbers of such codes again
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

// Split sums are added up by a second kernel of the same op.
bool LinearFinder::is_same_call(uint32_t index) const {
  if (calls_.empty() || !list_.trace().has_order) return false;
  const uint32_t op = list_.op(list_.works()[index]);
  return !list_.trace().is_host_only() && op != kNone && !list_.trace().ops[op].is_range &&
         op == list_.op(list_.works()[calls_.back().work]);
}

// The time of a conversion with all that belongs to it, which gets its class.
double LinearFinder::take(size_t index, WorkClass as) {
  const WaitingWeight taken = waiting_.take(index);
  // A tensor of several matrices is taken several times, and its time counts once.
  double us = taken.was_taken ? 0 : list_.us(list_.works()[taken.work]);
  set_class(taken.work, as);
  for (const uint32_t more : taken.more) {
    us += list_.us(list_.works()[more]);
    set_class(more, as);
  }
  return us;
}

// Scales that were quantized themselves are widened by a kernel of their own.
void LinearFinder::take_named(LinearCall& call) {
  for (size_t i = waiting_.size(); i-- > 0 && waiting_[i].products_before == products_;) {
    if (waiting_[i].named) {
      call.dequantize_us += take(i, WorkClass::dequantize_weight);
    }
  }
}

// Codes of activations that became numbers again, as honest simulations of INT8 do.
void LinearFinder::take_activations(LinearCall& call) {
  for (const uint32_t index : quantized_) call.quantize_us += list_.us(list_.works()[index]);
  quantized_.clear();
  coded_.clear();
  for (size_t i = waiting_.size(); i-- > 0 && waiting_[i].products_before == products_;) {
    if (call.m > 0 && waiting_[i].conversion.codes == call.m * call.k) {
      call.quantize_us += take(i, WorkClass::quantize_activation);
    }
  }
}

void LinearFinder::multiply_floating(LinearCall& call, int64_t batch) {
  const Work& work = list_.works()[call.work];
  if (const auto waiting = waiting_.find(call.m, call.n, call.k, batch, products_)) {
    const WaitingWeight& widened = waiting_[*waiting];
    const ScalarType named = list_.works()[widened.work].type;
    call.stored = named != ScalarType::unknown ? named : widened.conversion.code;
    // Bytes with more than one weight each have four bits per weight.
    const bool packed = call.stored == ScalarType::uint8 && widened.conversion.codes > 0 &&
                        widened.conversion.codes * 3 / 2 < call.n * call.k;
    const bool four_bit = packed || (unpacked_before_ && call.stored != ScalarType::fp8);
    call.verdict = four_bit ? AuditVerdict::fake_four_bit : verdict_of_widened(call.stored);
    call.dequantize_us = take(*waiting, WorkClass::dequantize_weight);
    take_named(call);
  } else if (const size_t pieces = waiting_.find_pieces(call.n * call.k, products_); pieces > 1) {
    call.stored = waiting_[waiting_.size() - 1].conversion.code;
    call.verdict = verdict_of_widened(call.stored);
    for (size_t i = 0; i < pieces; ++i) {
      call.dequantize_us += take(waiting_.size() - 1, WorkClass::dequantize_weight);
    }
  } else if (cast_before_ || list_.hides_work(work)) {
    call.verdict = AuditVerdict::unclear;
    call.doubt = cast_before_ ? Doubt::cast_before : Doubt::compiled;
  } else if (work.work == WorkClass::gemm && list_.op_name(work).starts_with("aten::")) {
    call.verdict = AuditVerdict::unquantized;  // such ops take no codes
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
  if (batch > 1 && !waiting_.find(call.m, call.n, call.k, batch, products_)) {
    // Of two activations; or of experts whose weights were never codes, which is the same to us.
    if (const Signature* operands = list_.signature(work)) waiting_.forget(*operands, products_);
    return;
  }
  const bool floating = work.work == WorkClass::half_gemm || work.work == WorkClass::single_gemm ||
                        work.work == WorkClass::gemm;
  // Outliers of LLM.int8, and rotations: parts of a linear that multiplies in INT8 otherwise.
  if (floating && list_.is_part_of_int8(work)) return;
  const bool integers = product && (is_integer(product->a) || is_integer(product->weight));
  if (floating && !integers) multiply_floating(call, batch);
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
  if (operands == nullptr || waiting_.size() == 0) return false;
  if (work.work != WorkClass::elementwise && work.work != WorkClass::copy) return false;
  const int64_t numbers = most_floats(*operands);
  if (numbers == 0) return false;
  int large = 0;
  for (const Operand& operand : *operands) {
    if (elements_of(operand) * kScaleShare >= numbers) ++large;
  }
  // A copy has both sides among its operands, a product with a scale only one.
  const int expected = work.work == WorkClass::copy ? 2 : 1;
  if (large > expected) return false;
  WaitingWeight* waiting = waiting_.latest(numbers, products_);
  if (waiting == nullptr) return false;
  waiting->more.push_back(index);
  return true;
}

void LinearFinder::widen(uint32_t index, const Conversion& conversion, int64_t numbers) {
  // What aten::to calls, down to the copy, is one conversion.
  WaitingWeight* last = waiting_.last();
  if (last != nullptr && last->conversion.codes == conversion.codes &&
      list_.calls_op_of(list_.works()[last->work], list_.works()[index])) {
    last->more.push_back(index);
    if (numbers > 0) last->numbers = numbers;
    return;
  }
  const auto coded = std::find(coded_.begin(), coded_.end(), conversion.codes);
  const bool was_coded = conversion.codes > 0 && coded != coded_.end();
  const bool goes_on = last_decoded_ != kNone &&
                       list_.calls_op_of(list_.works()[last_decoded_], list_.works()[index]);
  if (was_coded || goes_on) {
    // Activations that were just quantized.
    if (!goes_on) {
      coded_.erase(coded);
      last_decoded_ = index;
    }
    set_class(index, WorkClass::quantize_activation);
    quantized_.push_back(index);
    return;
  }
  waiting_.add({.work = index,
                .conversion = conversion,
                .numbers = numbers,
                .more = {},
                .products_before = products_,
                .named = list_.works()[index].work == WorkClass::dequantize_weight});
}

// Of a handful that a product has; without products there may be millions.
void LinearFinder::remember_coded(int64_t elements) {
  constexpr size_t kMostCoded = 64;
  if (coded_.size() == kMostCoded) coded_.erase(coded_.begin());
  coded_.push_back(elements);
}

// The kernels right before that looked for the scales of the same activations belong to it.
void LinearFinder::quantize(uint32_t index, const Conversion& conversion) {
  const int64_t elements = conversion.codes;
  waiting_.forget_written_back(conversion.dims);
  set_class(index, WorkClass::quantize_activation);
  quantized_.push_back(index);
  remember_coded(elements);
  for (size_t back = 1; back <= kQuantizeChain && back <= index; ++back) {
    const auto before = static_cast<uint32_t>(index - back);
    const Work& work = list_.works()[before];
    if (work.work != WorkClass::elementwise && work.work != WorkClass::copy) break;
    if (!looks_for_scales(list_.op_name(work))) continue;
    const Signature* operands = list_.signature(work);
    if (operands != nullptr && elements > 0 && most_floats(*operands) != elements) continue;
    set_class(before, WorkClass::quantize_activation);
    quantized_.push_back(before);
  }
}

void LinearFinder::look_for_conversion(uint32_t index) {
  const Work& work = list_.works()[index];
  const Signature* operands = list_.signature(work);
  if (work.work == WorkClass::quantize_activation) {
    quantized_.push_back(index);
    if (operands != nullptr) remember_coded(most_floats(*operands));
    return;
  }
  const std::string_view op = list_.op_name(work);
  if (operands != nullptr && unpacks(op, *operands)) unpacked_before_ = true;
  const bool by_name = work.work == WorkClass::dequantize_weight;
  const auto conversion = operands == nullptr ? std::optional<Conversion>()
                                              : conversion_of(op, *operands, unpacked_before_);
  if (conversion && conversion->direction == Conversion::Direction::to_codes && !by_name) {
    quantize(index, *conversion);
    return;
  }
  if (conversion || by_name) {
    if (!conversion) {
      // A kernel of an op that does more, whose other operands say nothing about the weight.
      widen(index, operands == nullptr ? Conversion{} : widening_of(*operands), 0);
      return;
    }
    const int64_t numbers = most_floats(*operands);
    widen(index, *conversion, numbers < conversion->codes ? 0 : numbers);  // else only scales
    return;
  }
  if (continues_widening(index)) return;
  if (operands == nullptr && list_.trace().has_order) note_cast(work);
}

// Where no operands were recorded, names have to do.
void LinearFinder::note_cast(const Work& work) {
  const std::string& name = list_.name(work);
  if (work.work == WorkClass::unknown) {
    const bool says_so = name.find("dequant") != name.npos || name.find("Dequ") != name.npos;
    if (says_so) cast_before_ = true;
    return;
  }
  if (work.work != WorkClass::copy && work.work != WorkClass::elementwise) return;
  if (list_.trace().is_host_only()) {
    if (list_.is_called_by(work, "aten::_to_copy")) cast_before_ = true;
    return;
  }
  const bool large = list_.trace().kernels[work.event].threads >= kLargeThreads;
  if (large && may_widen(name)) cast_before_ = true;
}

}  // namespace

std::vector<LinearCall> find_linears(WorkList& list) {
  const bool has_order = list.trace().has_order || list.trace().is_host_only();
  return has_order ? LinearFinder(list).find() : find_linears_in_sums(list);
}

}  // namespace octet::audit
