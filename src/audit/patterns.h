// What the names of kernels and ops tell, and lines of logs: kernel_names.json and log_lines.json,
// of the libraries and programs that INT8 models run on, each row with an example and its source.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "audit/trace.h"

namespace octet::audit {

struct NameRow {
  std::string library;  // "cuBLASLt", "Triton", ...; empty: none known
  std::string pattern;  // over the whole name, see glob.h
  // Near misses: names that fit one of these are none of the row.
  std::vector<std::string> except;
  WorkClass work = WorkClass::unknown;
  // Types of the product where the name has them: of weights, for weight_only_gemm and dequantize.
  ScalarType type = ScalarType::unknown;
  std::string example, source;  // a name as profilers write it, and where it was found
};

// The first row that matches decides; one without a pattern where none does. Names of any length
// and content are allowed.
const NameRow& kernel_by_name(std::string_view name);
// The same for ops of the host: aten::mm, _C::cutlass_scaled_mm, bitsandbytes::dequantize_4bit.
const NameRow& op_by_name(std::string_view name);

struct LogRow {
  std::string program;  // "ComfyUI"
  std::string pattern;
  // native_int8, fake_int8, fallback, native_fp8, weight_only, unquantized or info
  std::string verdict;
  std::string meaning;  // one sentence
  std::string example, source;
  // What it tells is of the text encoder or of the model, and a later line tells which; and of such
  // a line: "text_encoder" or "model".
  bool waits = false;
  std::string ends;
};

// The first row that matches; null where the line tells nothing.
const LogRow* log_line_for(std::string_view line);

// All rows, in the order of the files: whether one is right is a question for the tests.
struct NameRows {
  std::vector<NameRow> kernels, ops;
};
const NameRows& name_rows();
const std::vector<LogRow>& log_rows();

}  // namespace octet::audit
