// What any of the readable files says about a run, in one form.
//
// Sizes matter: a trace of 500 MB has millions of events, and all of this has to fit in 200 MB with
// its reader. Names and signatures are kept once each.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octet::audit {

inline constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

// What a kernel or an op does, as far as its speed is concerned.
enum class WorkClass : uint8_t {
  int8_gemm,            // int8 x int8 -> int32 on integer units
  fp8_gemm,             // FP8 operands (e4m3, e5m2, mxfp8)
  four_bit_gemm,        // INT4 x INT4 or FP4 x FP4 (NVFP4, MXFP4), on units of their own
  half_gemm,            // bf16 or fp16
  single_gemm,          // tf32, fp32 or fp64
  weight_only_gemm,     // reads 8- or 4-bit weights, widens them inside, multiplies in bf16 or fp16
  gemm,                 // a product, in a type that nothing tells
  dequantize_weight,    // a weight-sized tensor of codes becomes bf16, fp16 or fp32
  quantize_activation,  // activations become codes, with or without a norm before
  attention,
  convolution,
  norm,
  elementwise,  // also reductions, softmax, rotary embeddings, activation functions
  copy,         // also casts between floating types, transposes, fills
  other,        // known, and none of these: sorts, random numbers, collectives
  unknown,      // nothing tells; listed by name in every report
};
inline constexpr int kWorkClasses = static_cast<int>(WorkClass::unknown) + 1;

// "INT8 GEMM", "weight dequantization": for people.
std::string_view name_of(WorkClass work);
// "int8_gemm", "dequantize_weight": for data files and JSON.
std::string_view key_of(WorkClass work);
std::optional<WorkClass> work_class_of(std::string_view key);

constexpr bool is_gemm(WorkClass work) { return work <= WorkClass::gemm; }

enum class ScalarType : uint8_t {
  unknown,
  int8,
  uint8,
  fp8,
  fp4,
  bf16,
  f16,
  f32,
  f64,
  int16,
  int32,
  int64,
  other
};

// "signed char", "c10::BFloat16", "c10::Float8_e4m3fn", "torch.int8", "INT8", "__nv_bfloat16", ...
ScalarType scalar_type_of(std::string_view text);
std::string_view name_of(ScalarType type);  // "int8"

struct Operand {
  ScalarType type = ScalarType::unknown;
  std::vector<int64_t> dims;
  bool operator==(const Operand&) const = default;
};

// The operands of an op as the profiler wrote them. An argument that is not a tensor has no dims.
using Signature = std::vector<Operand>;

// What the host called: an op of PyTorch, or a range that somebody named (a layer).
struct Op {
  double start_us = 0;
  float us = 0;
  float self_us = 0;           // without the ops that it called
  uint32_t name = 0;           // of Trace::names
  uint32_t signature = kNone;  // of Trace::signatures
  uint32_t thread = 0;
  uint32_t parent = kNone;  // of Trace::ops: who called it
  bool is_range = false;    // an annotation: user_annotation, record_function, NVTX
};

// What the device ran: one launch, or many of one name where the file only has sums.
struct Kernel {
  double start_us = 0;  // means nothing unless Trace::has_order
  double us = 0;        // of all calls
  int64_t calls = 1;
  uint32_t name = 0;    // of Trace::names
  uint32_t op = kNone;  // of Trace::ops: the innermost that launched it
  // Threads of the launch, 0: not told. Tells elementwise kernels over weights from those over
  // activations where no shapes were recorded.
  uint64_t threads = 0;
  bool is_transfer = false;  // memcpy or memset
  // Of Nsight Compute: tensor instructions by kind, negative: not told.
  double int8_instructions = -1, half_instructions = -1, fp8_instructions = -1;
};

// A line of a log that tells what ran (or will), by a row of the pattern file.
struct LogFinding {
  std::string line;     // as it stands, shortened
  std::string meaning;  // a sentence of the pattern file
  std::string
      verdict;  // native_int8, fake_int8, fallback, native_fp8, weight_only, unquantized, info
  int64_t count = 1;
};

// A class of layers as Octet's own reports name it.
struct ReportedLinear {
  std::string layer, kernel;
  std::string path;  // int8, bf16, f32, fake int8
  int64_t calls = 0;
  double us = 0;
};

struct Trace {
  std::string path;
  std::string format;  // "PyTorch profiler trace", "Nsight Compute CSV", ...: for people
  std::string device;  // "NVIDIA H200"; empty: not told
  std::vector<std::string> names;
  std::vector<Signature> signatures;
  std::vector<Op> ops;          // by thread, then by start, callers before what they call
  std::vector<Kernel> kernels;  // by start where has_order
  std::vector<LogFinding> log;
  std::vector<ReportedLinear> reported;
  std::map<std::string, double> reported_us;  // of other classes of work, by key_of(WorkClass)
  bool has_order = false;                     // kernels have times
  bool has_shapes = false;                    // some ops have signatures with dims
  // Ops without kernels are the work itself: a run on the CPU.
  bool is_host_only() const { return kernels.empty() && !ops.empty(); }
};

}  // namespace octet::audit
