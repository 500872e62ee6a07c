// <module>.weight in FP8 (E4M3) with <module>.weight_scale, per row as the official files have it,
// or one for all.
#include "weights/dialect.h"
#include "weights/dialects/coded_weight.h"

namespace octet::weights {
namespace {

bool stores_fp8(const Checkpoint& checkpoint, const std::string& module) {
  const TensorInfo* weight = checkpoint.find(module + ".weight");
  return weight != nullptr && weight->dtype == DType::f8_e4m3;
}

std::unique_ptr<StoredWeight> open_fp8(const Checkpoint& checkpoint, const std::string& module,
                                       int64_t rows, int64_t k) {
  return std::make_unique<CodedWeight>(checkpoint, module, rows, k, DType::f8_e4m3,
                                       CodedLayout{.codes = module + ".weight",
                                                   .scales = module + ".weight_scale",
                                                   .siblings = {module + ".input_scale"}});
}

}  // namespace

const Dialect kScaledFp8Dialect = {"fp8", "FP8 with a scale per row or one for all", stores_fp8,
                                   open_fp8};

}  // namespace octet::weights
