// Finds out whether an "INT8" run really was one, from what a profiler or a program recorded.
//
//   octet::AuditRequest request;
//   request.traces = {"trace.json.gz"};
//   const octet::AuditReport report = octet::audit_traces(request);
//   std::cout << report.headline << "\n";
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "octet/export.h"
#include "octet/words.h"

namespace octet {

enum class AuditVerdict : uint8_t {
  native_int8,    // all large linears ran on integer units
  fallback,       // some did; others with quantized weights did not
  fake_int8,      // INT8 weights were dequantized and multiplied in floating point
  fake_fp8,       // the same with FP8 weights
  fake_four_bit,  // the same with NF4, FP4 or INT4 weights
  weight_only,    // widened inside the GEMM: less memory, no faster units
  native_fp8,
  native_four_bit,
  unquantized,  // products in floating point, and no sign of quantized weights
  unclear,      // floating point, and the trace does not show whether weights were quantized
  no_linears,   // nothing in the trace multiplies by a weight
};
template <>
struct Words<AuditVerdict> {
  static constexpr Word<AuditVerdict> list[] = {
      {AuditVerdict::native_int8, "native_int8", "native INT8"},
      {AuditVerdict::fallback, "fallback", "silent fallbacks"},
      {AuditVerdict::fake_int8, "fake_int8", "fake INT8"},
      {AuditVerdict::fake_fp8, "fake_fp8", "fake FP8"},
      {AuditVerdict::fake_four_bit, "fake_four_bit", "fake 4-bit"},
      {AuditVerdict::weight_only, "weight_only", "quantized weights alone"},
      {AuditVerdict::native_fp8, "native_fp8", "native FP8"},
      {AuditVerdict::native_four_bit, "native_four_bit", "native 4-bit"},
      {AuditVerdict::unquantized, "unquantized", "not quantized"},
      {AuditVerdict::unclear, "unclear"},
      {AuditVerdict::no_linears, "no_linears", "no linears"}};
};

// One kernel or op by name and class.
struct AuditKernel {
  std::string name, op;  // op: the one that launched it; empty: unknown
  std::string work;      // class as shown to people: "INT8 GEMM"
  std::string key;       // "int8_gemm"
  std::string library;   // "cuBLASLt"; empty: unknown
  std::string evidence;  // "types of the operands", "name: *i16832gemm_s8*", "instructions"
  std::string shapes;    // "bf16[4096,4608] x bf16[4608,13824]"; empty: unknown
  int64_t calls = 0;
  double us = 0, share = 0;
};

struct AuditShare {
  std::string work, key;
  int64_t calls = 0;
  double us = 0, share = 0;
};

// The linears of one layer, or of one shape where layers have no names.
struct AuditLinear {
  std::string layer;            // "transformer.layers.0.attention.qkv"; empty: unknown
  int64_t m = 0, n = 0, k = 0;  // 0: unknown
  // native_int8, fake_int8, weight_only, unquantized, ...; unclear: see AuditVerdict
  AuditVerdict verdict = AuditVerdict::unclear;
  std::string how;       // "int8 weight dequantized, then a bf16 GEMM"
  std::string kernel;    // of the GEMM that took most of the time
  std::string gemm_key;  // its class, "half_gemm"
  int64_t calls = 0;
  double gemm_us = 0, dequantize_us = 0, quantize_us = 0;
};

// What accuses linears: a tensor of codes that was widened, and the product that used it.
struct AuditPair {
  std::string stored;         // "int8"; "codes": a name says so, and no operands were recorded
  std::vector<int64_t> dims;  // of the codes; empty: unknown
  std::string floating, op;   // "bf16", "mm"; op is empty where unknown
  int64_t n = 0, k = 0;       // of the product; 0: unknown
  int64_t calls = 0;
  int64_t layers = 0;    // with names, 0: they have none
  bool certain = false;  // it is the weight; else it may be another tensor of that size
  std::string text;      // "int8[1024,256] -> bf16, then mm with k = 256, in 14 layers"
};

// Models of one trace, told apart by the names of their layers.
struct AuditModel {
  std::string name;  // "text_encoder"
  AuditVerdict verdict = AuditVerdict::unclear;
  std::string headline;
  int64_t linears = 0;
  int64_t native = 0, fake = 0, weight_only = 0, floating = 0, unclear = 0;
};

// What native INT8 could save in this trace.
struct AuditSaving {
  double linear_us = 0;     // GEMMs that are not INT8, with their dequantization and quantization
  double linear_share = 0;  // of the total time
  double at_most = 1;       // speed-up if these took no time (Amdahl); 0: unbounded
  // With the speed of native INT8 over what ran, from `source`; 0: unknown.
  double gemm_ratio = 0, expected = 0;
  std::string source;  // "measured on an NVIDIA H200", "predicted for the ..."
};

// Microseconds by class, in equal slices of the trace's time.
struct AuditTimeline {
  double start_us = 0, piece_us = 0;
  std::vector<std::string> keys;        // classes
  std::vector<std::vector<double>> us;  // [class][piece]
};

struct AuditReport {
  std::vector<std::string> files, formats;
  std::string device;    // empty: unknown
  bool on_host = false;  // CPU ops, timed by the host
  AuditVerdict verdict = AuditVerdict::unclear;
  std::string headline;          // the verdict in one sentence
  std::vector<AuditPair> pairs;  // that decided it, the most frequent first
  // More than one: each is judged apart, and the verdict is that of the one that took most time.
  std::vector<AuditModel> models;
  std::vector<std::string> notes;  // sentences: limits of the verdict, what to do
  int64_t linears = 0;             // calls of large linears
  int64_t native = 0, fake = 0, weight_only = 0, floating = 0, unclear = 0;  // of these
  double total_us = 0;               // of all kernels (or CPU ops)
  double wall_us = 0;                // from the first to the last, summed over files; 0: unknown
  std::vector<AuditShare> classes;   // by time
  std::vector<AuditLinear> layers;   // by time lost, all of them
  std::vector<AuditKernel> kernels;  // by time, all of them
  std::vector<AuditKernel> unknown;  // those whose class is unknown
  AuditSaving saving;
  AuditTimeline timeline;  // empty: the file has no order
  // Lines of logs, with what they mean.
  struct LogLine {
    std::string line, meaning;
    int64_t count = 0;
  };
  std::vector<LogLine> log;
};

struct AuditRequest {
  std::vector<std::string> traces;  // of one run; "-" is standard input
  std::string card;                 // what it ran on, if the trace does not say: "rtx3090"
};

// Throws Error for a file that cannot be read as any of the formats. progress(done, total), in
// bytes.
OCTET_API AuditReport audit_traces(const AuditRequest& request,
                                   const std::function<void(uint64_t, uint64_t)>& progress = {});

// A self-contained page without scripts.
OCTET_API std::string audit_page(const AuditReport& report);

}  // namespace octet
