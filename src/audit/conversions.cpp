// What comes before products: weights that are widened, and activations that become codes.
#include <algorithm>
#include <array>
#include <optional>

#include "audit/linear_finder.h"

namespace octet::audit {
namespace {

// Kernels before a conversion to codes that may have looked for the largest value, and the like.
constexpr size_t kQuantizeChain = 10;
// Scales are this much smaller than what they multiply.
constexpr int64_t kScaleShare = 8;
// Without operands, copies of fewer threads are of something small.
constexpr uint64_t kLargeThreads = 1 << 14;
// Among which tensors are divided.
constexpr int64_t kMostProcesses = 256;

// A step of quantizing activations, by the op's name.
bool looks_for_scales(std::string_view op) {
  static constexpr std::array kSteps = {
      "aten::abs",        "aten::amax",  "aten::max",       "aten::div",        "aten::div_",
      "aten::round",      "aten::clamp", "aten::clamp_min", "aten::round_",     "aten::clamp_",
      "aten::reciprocal", "aten::mul",   "aten::aminmax",   "aten::clamp_min_", "aten::maximum"};
  return std::find(kSteps.begin(), kSteps.end(), op) != kSteps.end();
}

// Between processes.
bool sends(std::string_view op) {
  return op.starts_with("c10d::") || op.starts_with("_c10d_functional::") ||
         op.starts_with("nccl:") || op == "record_param_comms";
}

// Of how many codes bits are shifted and masked: of integers, not of truth values, which masks are
// made of. 0: of none.
int64_t unpacked_by(std::string_view op, const Signature& operands) {
  if (op.find("bitwise") == op.npos && op.find("shift") == op.npos) return 0;
  int64_t most = 0;
  for (const Operand& operand : operands) {
    const bool holds_bits = operand.type == ScalarType::int32 || is_code(operand.type);
    if (holds_bits) most = std::max(most, elements_of(operand));
  }
  return most > 1 ? most : 0;
}

}  // namespace

int64_t most_floats(const Signature& signature) {
  int64_t most = 0;
  for (const Operand& operand : signature) {
    if (is_float(operand.type)) most = std::max(most, elements_of(operand));
  }
  return most;
}

// Arithmetic on numbers that were just widened: scales, offsets, another rounding.
bool LinearFinder::continues_widening(uint32_t index) {
  const Work& work = list_.works()[index];
  const Signature* operands = list_.signature(work);
  if (operands == nullptr || waiting_.size() == 0) return false;
  if (work.work != WorkClass::elementwise && work.work != WorkClass::copy) return false;
  const int64_t numbers = most_floats(*operands);
  if (numbers == 0 || !is_scaling(list_.op_name(work))) return false;
  int large = 0;
  for (const Operand& operand : *operands) {
    if (elements_of(operand) * kScaleShare >= numbers) ++large;
  }
  // A copy has both sides among its operands, a product with a scale only one.
  const int expected = work.work == WorkClass::copy ? 2 : 1;
  WaitingWeight* waiting = waiting_.latest(numbers, products_);
  if (waiting == nullptr) return false;
  if (large > expected) {
    // Scales may have been expanded, or gathered; of FP8, and of what was unpacked, they must have.
    const bool is_weight = waiting->unpacked || waiting->conversion.code == ScalarType::fp8;
    if (!is_weight || waiting->conversion.scaled || !may_expand_scales(list_.op_name(work))) {
      waiting_.combine(numbers);
      return true;
    }
  }
  waiting->more.push_back(index);
  const bool scales =
      multiplies(list_.op_name(work)) && has_scales(*operands, waiting->conversion.code, numbers);
  waiting->scaled = waiting->scaled || scales;
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
  if (list_.is_in_backward(list_.works()[index]) || list_.is_in_optimizer(list_.works()[index])) {
    return;
  }
  const auto received = received_.find(conversion.codes);
  const bool by_name = list_.works()[index].work == WorkClass::dequantize_weight;
  if (received != received_.end() && received->second) return;
  waiting_.add(
      {.work = index,
       .conversion = conversion,
       .numbers = numbers,
       .more = {},
       .products_before = products_,
       .named = by_name,
       .told = list_.op_name(list_.works()[index]).find("equant") != std::string_view::npos,
       .unpacked = unpacked_ > 0 || code_book_ > 0,
       .combined = conversion.combined,
       // Several tensors are sent as one, and each process has a part.
       .received = conversion.codes / kMostProcesses < most_received_ && !by_name,
       .scaled = conversion.scaled});
}

// Of a handful that a product has; without products there may be millions.
void LinearFinder::remember_coded(int64_t elements) {
  constexpr size_t kMostCoded = 64;
  if (coded_.size() == kMostCoded) coded_.erase(coded_.begin());
  coded_.push_back(elements);
}

// Codes that other processes sent. If this one made such codes of numbers right before, it did so
// to send them: the same numbers, or its part of them.
void LinearFinder::note_received(const Signature& operands) {
  constexpr size_t kMostReceived = 256;
  const int64_t codes = widening_of(operands).codes;
  if (codes == 0 || received_.size() == kMostReceived) return;
  most_received_ = std::max(most_received_, codes);
  const bool made = std::any_of(coded_.begin(), coded_.end(),
                                [&](int64_t part) { return part > 0 && codes % part == 0; });
  received_[codes] = received_[codes] || made;
}
// The kernels right before that looked for the scales of the same activations belong to it.
void LinearFinder::quantize(uint32_t index, const Conversion& conversion) {
  const int64_t elements = conversion.codes;
  waiting_.forget_written_back(conversion.dims);
  set_class(index, WorkClass::quantize_activation);
  quantized_.push_back(index);
  // Weights may be kept as codes, made numbers for their product, and codes again right after it.
  bool restores = false;
  each_taken([&](const LinearCall& call) {
    const bool latest = call.product + 1 == products_ || conversion.code == ScalarType::fp8;
    restores = restores || (latest && call.is_widened && call.stored_dims == conversion.dims);
  });
  if (!restores) remember_coded(elements);
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

bool LinearFinder::look_for_conversion(uint32_t index) {
  const Work& work = list_.works()[index];
  const Signature* operands = list_.signature(work);
  if (work.work == WorkClass::quantize_activation) {
    quantized_.push_back(index);
    if (operands != nullptr) remember_coded(most_floats(*operands));
    return false;
  }
  const std::string_view op = list_.op_name(work);
  if (sends(op)) {
    // The innermost op has a list of tensors, its caller their types.
    for (const Signature* sent : list_.signatures_around(work)) note_received(*sent);
  }
  if (operands != nullptr) unpacked_ = std::max(unpacked_, unpacked_by(op, *operands));
  if (operands != nullptr) note_untyped(op, *operands);
  const bool by_name = work.work == WorkClass::dequantize_weight;
  const auto conversion = operands == nullptr ? std::optional<Conversion>()
                                              : conversion_of(op, *operands, unpacked_ > 0);
  if (conversion && conversion->direction == Conversion::Direction::to_codes && !by_name) {
    quantize(index, *conversion);
    return true;
  }
  if (conversion || by_name) {
    if (!conversion) {
      // A kernel of an op that does more, whose other operands say nothing about the weight.
      widen(index, operands == nullptr ? Conversion{} : widening_of(*operands), 0);
      return true;
    }
    const int64_t numbers = most_floats(*operands);
    widen(index, *conversion,
          numbers < conversion->codes ? 0 : numbers);  // else only scales
    return true;
  }
  if (lookups_ > 0 && operands != nullptr && scale_looked_up(index, *operands)) return true;
  if (continues_widening(index)) return true;
  const bool ordered = list_.trace().has_order || list_.trace().is_host_only();
  if (operands == nullptr && ordered) note_cast(work);
  if (operands == nullptr) return false;
  if (const int64_t entries = code_book_of(op, *operands); entries > 0) {
    code_book_ = entries;
    ++lookups_;
  }
  return false;
}

// Tables have shapes without types, and no order: a copy of a weight's size may widen it.
void LinearFinder::note_untyped(std::string_view op, const Signature& operands) {
  const bool untyped = std::all_of(operands.begin(), operands.end(), [](const Operand& operand) {
    return operand.type == ScalarType::unknown;
  });
  const bool copies = op == "aten::copy_" && operands.size() > 1 && operands[0].dims.size() == 2 &&
                      operands[0].dims == operands[1].dims;
  if (untyped && copies) ++untyped_[operands[0].dims];
}

// Of what was looked up in a table of codes, the operands are a list of
// tensors, of which no profiler writes the sizes: numbers that are multiplied
// by fewer right after it are the weight.
bool LinearFinder::scale_looked_up(uint32_t index, const Signature& operands) {
  constexpr int64_t kMostOfFourBits = 16;
  const Work& work = list_.works()[index];
  if (work.work != WorkClass::elementwise || !may_expand_scales(list_.op_name(work))) return false;
  const Operand* numbers = nullptr;
  int64_t scales = 0;
  for (const Operand& operand : operands) {
    if (!is_float(operand.type)) continue;
    if (numbers == nullptr || elements_of(operand) > elements_of(*numbers)) {
      if (numbers != nullptr) scales = std::max(scales, elements_of(*numbers));
      numbers = &operand;
    } else {
      scales = std::max(scales, elements_of(operand));
    }
  }
  if (numbers == nullptr || scales == 0) return false;
  // Scales, or signs, of as many numbers as were unpacked have been expanded.
  const bool expanded = scales == unpacked_ && scales == elements_of(*numbers);
  if (scales * kScaleShare > elements_of(*numbers) && !expanded) return false;
  const bool four_bit = code_book_ <= kMostOfFourBits;
  widen(index,
        {.code = four_bit ? ScalarType::fp4 : ScalarType::int8,
         .codes = elements_of(*numbers),
         .dims = numbers->dims,
         .by_table = true,
         .scaled = true},
        elements_of(*numbers));
  --lookups_;
  return true;
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
    const bool casts =
        list_.is_called_by(work, "aten::_to_copy") || name == "onnx::DequantizeLinear";
    cast_before_ = cast_before_ || casts;
    return;
  }
  const uint64_t threads = list_.trace().kernels[work.event].threads;
  const bool large = threads == 0 || threads >= kLargeThreads;
  // A norm in float32 ends with a cast, too: of activations.
  normed_before_ = normed_before_ || name.find("rsqrt") != name.npos;
  if (large && !normed_before_ && may_widen(name)) cast_before_ = true;
}

}  // namespace octet::audit
