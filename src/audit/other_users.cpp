// What else may have used a tensor that was widened. Each has been widened for something: where
// another op is seen to take it, no product counts as its user.
#include <algorithm>
#include <array>

#include "audit/linear_finder.h"

namespace octet::audit {
namespace {

std::string_view short_name(std::string_view op) {
  if (op.starts_with("aten::")) op.remove_prefix(6);
  while (op.ends_with('_')) op.remove_suffix(1);
  return op;
}

template <class Names>
bool is_one_of(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Takes rows of a table.
bool looks_up(std::string_view op) {
  static constexpr std::array<std::string_view, 5> kLookups = {"embedding", "index", "index_select",
                                                               "gather", "take_along_dim"};
  return is_one_of(kLookups, short_name(op));
}

// Sums and norms leave what they read to others: DoRA takes those of weights.
bool reduces(std::string_view op) {
  static constexpr std::array<std::string_view, 9> kReductions = {
      "linalg_vector_norm", "norm", "abs", "amax", "amin", "aminmax", "sum", "mean", "var"};
  return is_one_of(kReductions, short_name(op));
}

// Of those that are otherwise only called: sizes, views, random numbers.
bool reads_tensors(std::string_view op) {
  static constexpr std::array<std::string_view, 7> kReaders = {
      "sort", "topk", "cumsum", "cumprod", "searchsorted", "bucketize", "_unique2"};
  const std::string_view name = short_name(op);
  return is_one_of(kReaders, name) || name.starts_with("linalg_") || name.find("fft") != name.npos;
}

bool takes_list(std::string_view op, std::string_view kernel) {
  const std::string_view name = short_name(op);
  return name == "cat" || name == "stack" || name.starts_with("_foreach_") ||
         name.starts_with("_fused_") || kernel.find("multi_tensor_apply") != kernel.npos;
}

// Numbers beside as many codes or integers are scales of those.
bool scales_codes(const Operand& numbers, const Signature& operands) {
  return std::any_of(operands.begin(), operands.end(), [&](const Operand& operand) {
    const bool holds_codes = is_code(operand.type) || operand.type == ScalarType::int32 ||
                             operand.type == ScalarType::int64;
    return holds_codes && elements_of(operand) == elements_of(numbers);
  });
}

bool has_dims(const Signature& signature) {
  return std::any_of(signature.begin(), signature.end(),
                     [](const Operand& operand) { return !operand.dims.empty(); });
}

}  // namespace

bool chooses(std::string_view op) {
  static constexpr std::array<std::string_view, 3> kChoices = {"argmin", "argmax", "topk"};
  return is_one_of(kChoices, short_name(op));
}

bool is_scaling(std::string_view op) {
  static constexpr std::array<std::string_view, 14> kArithmetic = {
      "mul",  "div", "sub",      "rsub",  "add",        "neg",     "multiply",
      "copy", "to",  "_to_copy", "clone", "contiguous", "addcmul", "addcdiv"};
  return !op.starts_with("aten::") || is_one_of(kArithmetic, short_name(op));
}

bool multiplies(std::string_view op) {
  static constexpr std::array<std::string_view, 5> kProducts = {"mul", "multiply", "div", "addcmul",
                                                                "addcdiv"};
  return !op.starts_with("aten::") || is_one_of(kProducts, short_name(op));
}

bool may_expand_scales(std::string_view op) {
  const std::string_view name = short_name(op);
  if (op.starts_with("aten::")) return name == "mul" || name == "multiply" || name == "div";
  return name.find("add") == name.npos && name.find("sub") == name.npos;
}

void LinearFinder::note_use(const Operand& operand, bool refutes) {
  each_taken([&](LinearCall& call) {
    if (may_be_view(operand.dims, call.stored_dims) ||
        may_be_view(operand.dims, {call.n, call.k})) {
      call.is_used = true;
      call.is_refuted =
          call.is_refuted || (refutes && is_same_matrix(operand.dims, call.stored_dims));
    }
  });
}

// The result of a product of few columns by few rows, as a LoRA has it, which is added to a weight
// of its size: the weight has no other use by that.
bool LinearFinder::is_low_rank(const Operand& operand) const {
  if (calls_.empty() || calls_.back().product + 1 != products_) return false;
  const LinearCall& call = calls_.back();
  constexpr int64_t kLeastRanks = 4;
  return is_same_matrix(operand.dims, {call.m, call.n}) &&
         call.k <= std::min(call.m, call.n) / kLeastRanks;
}

void LinearFinder::note_users(uint32_t index) {
  const Work& work = list_.works()[index];
  if (!list_.trace().has_shapes) return;
  const Signature* operands = list_.signature(work);
  const std::string_view op = list_.op_name(work);
  const bool hidden =
      work.work == WorkClass::unknown && (operands == nullptr || !has_dims(*operands));
  if (hidden || takes_list(op, list_.name(work))) {
    waiting_.doubt_listed();
    each_taken([&](LinearCall& call) { call.may_be_used = true; });
    return;
  }
  if (operands == nullptr || work.work == WorkClass::copy) return;
  if (work.work == WorkClass::other && !reads_tensors(op)) return;
  for (const Operand& operand : *operands) {
    if (!is_float(operand.type) || scales_codes(operand, *operands)) continue;
    const bool refutes = !reduces(op) && !is_low_rank(operand);
    looks_up(op) ? waiting_.forget(operand) : waiting_.doubt(operand, refutes);
    note_use(operand, refutes);
  }
}

// Keys and values, seen as heads.
void LinearFinder::note_heads(uint32_t index) {
  const Signature* operands = list_.signature(list_.works()[index]);
  if (operands == nullptr) return;
  each_taken([&](LinearCall& call) {
    const bool fits = std::any_of(operands->begin(), operands->end(), [&](const Operand& operand) {
      return is_float(operand.type) &&
             (elements_of(operand) == call.n * call.k ||
              elements_of(operand) == elements_of({.type = {}, .dims = call.stored_dims}));
    });
    call.is_used = call.is_used || fits;
  });
}

// What becomes of the last product: with a scale for each column, its weight was codes. One that
// goes to the host right away is what was asked for: scores of a search, or logits.
void LinearFinder::note_result(uint32_t index) {
  if (calls_.empty() || calls_.back().product + 1 != products_) return;
  LinearCall& call = calls_.back();
  const Signature* operands = list_.signature(list_.works()[index]);
  if (!call.is_widened || operands == nullptr) return;
  const auto has = [&](int64_t elements, bool as_integers) {
    return std::any_of(operands->begin(), operands->end(), [&](const Operand& operand) {
      const bool fits =
          is_float(operand.type) || (as_integers && operand.type == ScalarType::int32);
      return fits && elements_of(operand) == elements;
    });
  };
  const int64_t results = elements_of({.type = {}, .dims = {call.m, call.n}});
  if (results == 0 || !has(results, true)) return;
  if (has(call.n, false) && multiplies(list_.op_name(list_.works()[index]))) call.is_scaled = true;
  if (list_.name(list_.works()[index]).find("DtoH") != std::string::npos) call.is_answer = true;
}

// The first matrix of a product is not its weight; of a gradient's, neither matrix is.
void LinearFinder::note_activations(uint32_t index) {
  const Signature* operands = list_.signature(list_.works()[index]);
  if (operands == nullptr) return;
  if (list_.is_in_backward(list_.works()[index])) {
    for (const Operand& operand : *operands) note_use(operand);
    return;
  }
  const Operand* activations = activations_operand(list_.op_name(list_.works()[index]), *operands);
  if (activations == nullptr || !is_float(activations->type)) return;
  note_use(*activations);
  waiting_.doubt(*activations);
}

// Another product came between a weight and its own, which had none that was
// widened: weights that are widened together are used together.
bool LinearFinder::follows(size_t widened_before) const {
  for (size_t i = calls_.size(); i-- > 0 && calls_[i].product >= widened_before;) {
    if (!calls_[i].is_widened || calls_[i].is_loose_part) return false;
  }
  return true;
}

}  // namespace octet::audit
