// What only tuners and benchmarks ask a backend: which kernel its GEMM uses, how long work
// takes on the device, how fast a GEMM could be, and what the device draws.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/gemm.h"
#include "backend/power_gauge.h"

namespace octet {

// Which kernel runs a problem, and what is known about that choice.
struct GemmPlan {
  enum class Source : uint8_t {
    only,       // the backend has one kernel
    forced,     // by the user
    estimate,   // by the backend's own rule of thumb
    predicted,  // comes with the program, by a model of the card
    shipped,    // comes with the program, measured on such a card
    file,       // measured by an earlier process, or by another
    tuned,      // measured by this one
  };

  std::string kernel;  // printable, its identity everywhere
  Source source = Source::only;
  double us = 0;            // measured on this device; 0 when it never was
  bool under_load = false;  // all times are, else of single runs with cold caches
  std::string runner_up;    // empty when there was no other
  double runner_up_us = 0;
  std::map<std::string, double> reference_us;  // other ways to the same result, by name
  std::string date;                            // UTC, of the measurement or prediction
};

// "only", "forced", "estimate", "predicted", "shipped", "file", "tuned"
std::string_view name_of(GemmPlan::Source source);

// Names in GemmPlan::reference_us.
inline constexpr const char* kUnquantized = "unquantized";  // the same product in bf16
inline constexpr const char* kQuantize = "quantize";        // quantizing its activations
// Whole linears as `octet map` measured them, side by side: everything that a product takes, the
// quantization of its activations included.
inline constexpr const char* kInt8Linear = "int8 linear";
inline constexpr const char* kBf16Linear = "bf16 linear";
inline constexpr const char* kFp8Linear = "fp8 linear";
inline constexpr const char* kNf4Linear = "nf4 linear";
inline constexpr const char* kFakeLinear = "fake int8 linear";

// Another implementation of the GEMM without a fusion, only for comparisons. It takes the
// weight in plain rows, I8 [n, k] with its scales, in the backend's memory.
struct GemmPeer {
  std::string name;
  std::function<void(const QTensor& a, const QTensor& w, const TensorView& out)> run;
};

// A linear for which the backend has no op, only for comparisons. It keeps its weight
// in a form of its own.
struct LinearPeer {
  std::string name;  // "fp8", "nf4"
  std::string how;   // in words
  // Of its results, L2 norm over L2 norm: more is something else than this product, and less is a
  // product that was not rounded to this format.
  double least_error = 0, most_error = 0;
  // BF16 [m, k] to BF16 [m, n], with whatever the activations need in each run.
  std::function<void(const ConstTensorView& x, const TensorView& out)> run;
};

// Returned by Backend::tuning(), and used only by the backend's thread, like the backend.
class GemmTuning {
 public:
  virtual ~GemmTuning() = default;

  // The kernel that gemm() would run for a problem (its layout is filled in here), after measuring
  // where the backend was made to do so.
  virtual GemmPlan plan_gemm(const GemmProblem& problem) = 0;
  // The file in which measured plans are kept; empty when they are not.
  virtual std::string plan_file() const { return ""; }
  // What else the device offers for the same GEMM.
  virtual std::vector<GemmPeer> gemm_peers() { return {}; }
  // What it offers for a linear with this weight, BF16 [n, k] in the backend's memory, which is
  // read now and not kept; for up to `rows` activations at a time. Peers that this device or this
  // shape does not support are left out.
  virtual std::vector<LinearPeer> linear_peers(const ConstTensorView& /*weight*/,
                                               int64_t /*rows*/) {
    return {};
  }
  // Adds to GemmPlan::reference_us of a problem whose plan was measured, in the plan file, too.
  // Whether the file has them now.
  virtual bool keep_references(const GemmProblem& /*problem*/,
                               const std::map<std::string, double>& /*reference_us*/) {
    return false;
  }
  // Whether the plan file knows that a linear of n x k is faster in bf16 than in INT8, when it has
  // about m rows. False where nothing was measured.
  virtual bool is_faster_in_bf16(int64_t /*m*/, int64_t /*n*/, int64_t /*k*/) { return false; }

  // Integer operations per second that the multiply instruction of gemm() reaches when it works on
  // registers only, at this moment: the ceiling of any gemm here. Takes a few milliseconds, so it
  // can be asked again and again between measurements while clocks and neighbours change. 0 where
  // it means nothing (ref).
  virtual double int8_ceiling() = 0;
  // The same of products of bf16 with sums in f32: the ceiling of matmul() and attention(). 0 where
  // it is not known.
  virtual double bf16_ceiling() { return 0; }

  // What the device draws; null if it cannot be asked. Throws Error if something should
  // answer, with the reason why not.
  virtual std::unique_ptr<PowerGauge> power_gauge() { return nullptr; }

  // Microseconds that `work` takes on the device, without the time to launch it where the device
  // runs asynchronously.
  virtual double time_us(const std::function<void()>& work) = 0;
};

}  // namespace octet
