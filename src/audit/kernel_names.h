// What the names of kernels and ops tell: kernel_names.json, ops and kernels of the libraries that
// INT8 models run on, each row with an example and its source.
#pragma once

#include <string>
#include <string_view>

#include "audit/trace.h"
#include "audit/work_class.h"

namespace octet::audit {

struct NamedKernel {
  WorkClass work = WorkClass::unknown;
  std::string_view library;   // "cuBLASLt", "Triton", ...; empty: none known
  std::string_view evidence;  // the pattern that matched, for the report
  // Types of the product where the name has them: of weights, for weight_only_gemm and dequantize.
  ScalarType type = ScalarType::unknown;
};

// The first row that matches decides. Names of any length and content are allowed.
NamedKernel kernel_by_name(std::string_view name);
// The same for ops of the host: aten::mm, _C::cutlass_scaled_mm, bitsandbytes::dequantize_4bit.
NamedKernel op_by_name(std::string_view name);

}  // namespace octet::audit
