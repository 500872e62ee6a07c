#include "audit/products.h"

#include <algorithm>
#include <array>
#include <limits>

namespace octet::audit {
namespace {

bool has_word(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

int64_t rows_of(const Operand& operand) {
  const int64_t columns = operand.dims.back();
  return columns > 0 ? elements_of(operand) / columns : 0;
}

// "aten::addmm": the bias comes first.
bool begins_with_bias(std::string_view op) {
  return has_word(op, "addmm") || has_word(op, "baddbmm");
}

// aten::linear takes a weight [n, k]; aten::mm takes [k, n].
bool takes_rows_of_weights(std::string_view op) {
  return has_word(op, "linear") || has_word(op, "Linear");
}

std::optional<Product> product_of_pair(std::string_view op, const Operand& a, const Operand& b) {
  Product product{.a = a.type, .weight = b.type};
  product.k = a.dims.back();
  product.m = rows_of(a);
  if (product.k <= 0 || product.m <= 0) return std::nullopt;
  const int64_t first = b.dims[b.dims.size() - 2], second = b.dims.back();
  if (b.dims.size() > 2) {
    if (a.dims.size() < 3) return std::nullopt;
    product.batch = elements_of(b) / (first * second);
    product.m /= product.batch;
    if (product.m <= 0) return std::nullopt;
  }
  const bool rows_fit = second == product.k, columns_fit = first == product.k;
  if (!rows_fit && !columns_fit) return std::nullopt;
  const bool rows = rows_fit && (!columns_fit || takes_rows_of_weights(op));
  product.n = rows ? first : second;
  if (product.n <= 0) return std::nullopt;
  return product;
}

// The name without its namespace: every op of "quanto::" has that word.
std::string_view own_name(std::string_view op) {
  const size_t at = op.rfind("::");
  return at == op.npos ? op : op.substr(at + 2);
}

bool dequantizes(std::string_view op) { return has_word(op, "dequant") || has_word(op, "Dequant"); }

bool quantizes(std::string_view op) {
  const std::string_view name = own_name(op);
  return (has_word(name, "quant") || has_word(name, "Quant")) && !dequantizes(name);
}

// Arithmetic that widens codes on the way, and what compilers generate of it. Comparisons, lookups
// and masks take codes too, and convert nothing.
bool may_convert(std::string_view op) {
  static constexpr std::array kWords = {"mul",    "div",   "sub",  "add",  "quant",
                                        "triton", "fused", "copy", "cast", "reorder"};
  const std::string_view name = own_name(op);
  return name == "to" || std::any_of(kWords.begin(), kWords.end(),
                                     [&](const char* word) { return has_word(name, word); });
}

}  // namespace

int64_t elements_of(std::span<const int64_t> dims) {
  if (dims.empty()) return 0;
  int64_t elements = 1;
  for (const int64_t dim : dims) {
    if (dim <= 0 || elements > std::numeric_limits<int64_t>::max() / 16 / dim) return 0;
    elements *= dim;
  }
  return elements;
}

std::optional<Product> product_of(std::string_view op, const Signature& signature) {
  const Operand* a = nullptr;
  const size_t first = begins_with_bias(op) ? 1 : 0;
  for (size_t i = first; i < signature.size(); ++i) {
    const Operand& operand = signature[i];
    if (operand.dims.size() < 2 || elements_of(operand) == 0) continue;
    if (a == nullptr) {
      a = &operand;
      continue;
    }
    return product_of_pair(op, *a, operand);
  }
  return std::nullopt;
}

const Operand* activations_operand(std::string_view op, const Signature& signature) {
  for (size_t i = begins_with_bias(op) ? 1 : 0; i < signature.size(); ++i) {
    if (signature[i].dims.size() >= 2) return &signature[i];
  }
  return nullptr;
}

ScalarType activations_of(std::string_view op, const Signature& signature) {
  const Operand* activations = activations_operand(op, signature);
  return activations == nullptr ? ScalarType::unknown : activations->type;
}

std::optional<WorkClass> gemm_of_types(ScalarType a, ScalarType weight) {
  const auto both = [&](ScalarType type) { return a == type && weight == type; };
  const auto half = [](ScalarType type) {
    return type == ScalarType::bf16 || type == ScalarType::f16;
  };
  // Unsigned codes of activations are common on CPUs.
  const bool integers =
      (a == ScalarType::int8 || a == ScalarType::uint8) && weight == ScalarType::int8;
  if (integers) return WorkClass::int8_gemm;
  if (both(ScalarType::fp8)) return WorkClass::fp8_gemm;
  if (both(ScalarType::fp4)) return WorkClass::four_bit_gemm;
  if (half(a) && half(weight)) return WorkClass::half_gemm;
  if (both(ScalarType::f32) || both(ScalarType::f64)) return WorkClass::single_gemm;
  return std::nullopt;
}

std::optional<Conversion> conversion_of(std::string_view op, const Signature& signature,
                                        bool wide) {
  if (!may_convert(op)) return std::nullopt;
  const auto is_coded = [wide](ScalarType type) {
    return is_code(type) || (wide && (type == ScalarType::int16 || type == ScalarType::int32 ||
                                      type == ScalarType::int64));
  };
  const Operand* codes = nullptr;
  const Operand* last_large = nullptr;
  int64_t most = 0, most_float = 0;
  size_t tensors = 0;
  for (const Operand& operand : signature) {
    const int64_t elements = elements_of(operand);
    if (elements == 0) continue;
    ++tensors;
    most = std::max(most, elements);
    if (is_float(operand.type)) most_float = std::max(most_float, elements);
    if (is_coded(operand.type) && (codes == nullptr || elements > elements_of(*codes))) {
      codes = &operand;
    }
  }
  if (codes == nullptr) return std::nullopt;
  // There are fewer packed codes than numbers, at most eight to a word.
  if (elements_of(*codes) * 8 < most) return std::nullopt;
  for (const Operand& operand : signature) {
    if (elements_of(operand) * 8 >= most) last_large = &operand;
  }
  // GPTQ unpacks its 8-bit codes to int16, since they have no sign, and those of fewer bits to
  // int8.
  const bool of_bytes = codes->type == ScalarType::int16;
  const ScalarType unpacked = of_bytes ? ScalarType::int8 : ScalarType::fp4;
  Conversion conversion{.code = is_code(codes->type) ? codes->type : unpacked,
                        .codes = elements_of(*codes),
                        .dims = codes->dims,
                        .scaled = has_scales(signature, codes->type, elements_of(*codes)),
                        .of_bytes = of_bytes};
  if (op.ends_with("copy_") || op == "onednn::reorder") {
    // copy_(into, from)
    if (signature.size() < 2 || is_coded(signature[0].type) == is_coded(signature[1].type)) {
      return std::nullopt;
    }
    if (!is_float(signature[0].type) && !is_float(signature[1].type)) return std::nullopt;
    conversion.direction = is_coded(signature[0].type) ? Conversion::Direction::to_codes
                                                       : Conversion::Direction::to_numbers;
    return conversion;
  }
  // A generated kernel has its output among its operands, the last of them; an op of PyTorch with
  // codes among its inputs returns numbers.
  const bool generated = has_word(op, "triton") || has_word(op, "fused");
  if (generated) {
    if (tensors < 2 || last_large == nullptr) return std::nullopt;
    const auto numbers = [&](const Operand& operand) {
      return is_float(operand.type) && elements_of(operand) >= conversion.codes;
    };
    // Numbers of the program itself are part of what was generated.
    const bool multiplies = has_word(op, "_mul") && conversion.code == ScalarType::int8;
    conversion.scaled = conversion.scaled || multiplies;
    conversion.combined = conversion.code != ScalarType::fp8 &&
                          std::count_if(signature.begin(), signature.end(), numbers) > 1;
    if (is_coded(last_large->type)) {
      conversion.direction = Conversion::Direction::to_codes;
    } else if (!is_float(last_large->type)) {
      return std::nullopt;
    }
    return conversion;
  }
  if (quantizes(op)) {
    // Codes alone cannot be what is quantized.
    if (most_float >= conversion.codes) conversion.direction = Conversion::Direction::to_codes;
    return conversion;
  }
  if (dequantizes(op)) return conversion;
  // Bytes that multiply as many numbers are a mask; what was unpacked has expanded scales.
  if (most_float >= conversion.codes && !of_bytes) return std::nullopt;
  // Unpacked integers alone only move on; numbers are made of them where numbers are.
  if (wide && !is_code(codes->type) && most_float == 0) return std::nullopt;
  return conversion;
}

bool has_scales(const Signature& signature, ScalarType code, int64_t codes) {
  constexpr int64_t kLeastCodesOfScale = 8;
  return std::any_of(signature.begin(), signature.end(), [&](const Operand& operand) {
    if (!is_float(operand.type)) return false;
    const int64_t scales = elements_of(operand);
    return operand.dims.empty() ? operand.type != ScalarType::f64 || code == ScalarType::int8
                                : scales > 0 && scales * kLeastCodesOfScale <= codes;
  });
}

Conversion widening_of(const Signature& signature) {
  Conversion conversion;
  for (const Operand& operand : signature) {
    if (operand.type == ScalarType::int32 && operand.dims.size() >= 2) {
      conversion.words = std::max(conversion.words, elements_of(operand));
    }
    if (!is_code(operand.type) || elements_of(operand) <= conversion.codes) continue;
    conversion.code = operand.type;
    conversion.codes = elements_of(operand);
    conversion.dims = operand.dims;
  }
  return conversion;
}

int64_t code_book_of(std::string_view op, const Signature& signature) {
  constexpr int64_t kMostEntries = 256;
  static constexpr std::array kLookups = {"aten::index",     "aten::index_select",
                                          "aten::take",      "aten::gather",
                                          "aten::embedding", "aten::embedding_bag"};
  if (std::find(kLookups.begin(), kLookups.end(), op) == kLookups.end()) return 0;
  if (signature.empty() || !is_float(signature[0].type)) return 0;
  // AQLM's tables have vectors of weights.
  const std::vector<int64_t>& table = signature[0].dims;
  constexpr int64_t kLongestVector = 8, kFourBits = 16;
  const bool has_vectors = op == "aten::embedding_bag" && table.size() == 2 &&
                           table[1] <= kLongestVector &&
                           (table[0] == kMostEntries || table[0] == kMostEntries * kMostEntries);
  if (has_vectors) return kFourBits;
  const int64_t entries = elements_of(signature[0]);
  return entries == 8 || entries == 16 || entries == kMostEntries ? entries : 0;
}

bool may_widen(std::string_view kernel) {
  if (has_word(kernel, "triton_poi_fused")) {
    // Of activations: what no weight needs.
    static constexpr std::array kOfActivations = {"silu", "gelu", "relu",     "sigmoid", "tanh",
                                                  "cat",  "cos",  "softmax",  "rsqrt",   "mean",
                                                  "norm", "pow",  "embedding"};
    return has_word(kernel, "_to_copy") &&
           std::none_of(kOfActivations.begin(), kOfActivations.end(),
                        [&](const char* word) { return has_word(kernel, word); });
  }
  // XLA names its fusions after what they do, or after their root.
  if (kernel.starts_with("loop_") || kernel.starts_with("wrapped_")) {
    return has_word(kernel, "convert");
  }
  if (has_word(kernel, "float16_copy_kernel_cuda")) return true;  // bfloat16's ends like that, too
  if (has_word(kernel, "DequantizeLinear")) return true;          // TensorRT's, of whatever
  // Casting variants of the templates.
  const bool casts = has_word(kernel, "LoadWithCast") || has_word(kernel, "gpu_kernel_impl<");
  if (!casts) return false;
  const bool copies = has_word(kernel, "direct_copy_kernel_cuda");
  const bool to_half =
      copies ? has_word(kernel, "lambda(c10::BFloat16)") || has_word(kernel, "lambda(c10::Half)")
             : has_word(kernel, "Functor<c10::BFloat16") || has_word(kernel, "Functor<c10::Half");
  return to_half;
}

bool casts_unknown_types(std::string_view kernel) {
  if (kernel == "aten::copy_") return true;
  if (!has_word(kernel, "unrolled_elementwise_kernel") ||
      !has_word(kernel, "direct_copy_kernel_cuda")) {
    return false;
  }
  const size_t lambda = kernel.find("lambda(");
  return lambda == kernel.npos || kernel.substr(lambda).starts_with("lambda()");
}

bool is_compiled_code(std::string_view range) {
  return range.starts_with("## Call CompiledFxGraph") || range.starts_with("Torch-Compiled");
}

bool may_be_of_linears(std::string_view kernel) {
  // What names say that do something else; a product may have one of them as well, and then says
  // that it is a product. What dequantizes may do so with weights, unless it says with what.
  static constexpr std::array kOtherWork = {
      "norm",      "Norm",       "rope",      "Rope",    "rotary",     "Rotary",  "reduce",
      "Reduce",    "copy",       "Copy",      "sampl",   "Sampl",      "topk",    "TopK",
      "argmax",    "scatter",    "gather",    "Gather",  "memset",     "sort",    "Sort",
      "convert",   "pack",       "quant",     "Quant",   "transpose",  "permute", "softmax",
      "Softmax",   "activation", "cache",     "Cache",   "align",      "mask",    "allreduce",
      "AllReduce", "embedding",  "Embedding", "barrier", "elementwise"};
  static constexpr std::array kProducts = {"gemm",   "Gemm",    "GEMM",   "gemv",
                                           "matmul", "MatMul",  "Matmul", "linear",
                                           "Linear", "mul_mat", "_mm"};
  static constexpr std::array kDequantizes = {"dequant", "Dequant", "unpack", "Unpack"};
  static constexpr std::array kOtherData = {"cache",  "Cache",  "kv_",        "KV",
                                            "gather", "reduce", "activation", "optim"};
  const auto says = [&](const auto& words) {
    return std::any_of(words.begin(), words.end(),
                       [&](const char* word) { return has_word(kernel, word); });
  };
  if (says(kProducts) || !says(kOtherWork)) return true;
  return says(kDequantizes) && !says(kOtherData);
}

}  // namespace octet::audit
