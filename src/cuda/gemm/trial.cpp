#include "cuda/gemm/trial.h"

#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "base/log.h"
#include "cuda/check.h"
#include "cuda/gemm/pack.h"
#include "cuda/rows/row_kernels.h"

namespace octet::cuda {
namespace {

constexpr int64_t kMostSets = 16;
// Launches follow each other without a gap for about this long, as in a model; a single short one
// would mostly measure its launch.
constexpr double kRunMicroseconds = 100;
constexpr int kMostLaunches = 16;

// What a trial has beside its problem.
struct Surroundings {
  CublasLt* library = nullptr;  // null: no unquantized product
  bool has_seconds = true;      // else moments between other work, which goes on in the same memory
  int64_t most_sets = kMostSets;
};

int64_t activation_bytes(const GemmProblem& problem) { return problem.m * round_up(problem.k, 16); }
int64_t output_bytes(const GemmProblem& problem) {
  return problem.m * output_columns(problem.fusion, problem.n) * bits_of(problem.out) / 8;
}
// Of what the INT8 kernels read and write.
int64_t set_bytes(const GemmProblem& problem) {
  return activation_bytes(problem) + packed_bytes(problem.n, problem.k) + output_bytes(problem);
}

struct Set {
  Buffer a;               // I8 [m, k]
  Buffer w;               // packed
  Buffer out;             // [m, n] or [m, n / 2]
  Buffer bf16_a, bf16_w;  // [m, k], [n, k]
  Buffer bf16_out;        // [m, n]
};

class Operands {
 public:
  Operands(const std::shared_ptr<Device>& device, GemmLauncher& launcher,
           const GemmProblem& problem, const Surroundings& has)
      : device_(device),
        launcher_(launcher),
        library_(has.library),
        problem_(problem),
        has_seconds_(has.has_seconds) {
    const int64_t longest = std::max(problem.m, problem.n);
    const std::vector<float> ones(static_cast<size_t>(longest), 0.01f);
    scales_ = device_->allocate(ones.size() * sizeof(float));
    device_->upload(scales_.data(), reinterpret_cast<const std::byte*>(ones.data()),
                    ones.size() * sizeof(float));
    const double operations = 2.0 * static_cast<double>(problem.m) *
                              static_cast<double>(problem.n) * static_cast<double>(problem.k);
    // Assumes 1000 TOPS, and at least 3 us: only the number of launches depends on it.
    const double expected_us = std::max(3.0, operations * 1e-9);
    launches_ = std::clamp(static_cast<int>(kRunMicroseconds / expected_us), 1, kMostLaunches);
    const int64_t sets = std::clamp<int64_t>(
        2 * device_->traits().l2_bytes / set_bytes(problem) + 1, 1, has.most_sets);
    for (int64_t i = 0; i < sets; ++i) sets_.push_back(make_set(static_cast<uint64_t>(i)));
  }

  ~Operands() {
    sets_.clear();
    if (!has_seconds_) return;  // the pool has uses for what it keeps
    try {
      device_->give_back_unused();
    } catch (const Error& error) {  // the next call will meet it too
      log::debug("tuning: {}", error.sentence());
    }
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  double measure(const std::string& name, int turn) {
    const GemmCandidate* candidate = candidate_named(name);
    const size_t first = static_cast<size_t>(turn) * static_cast<size_t>(launches_);
    const auto set = [&](size_t index) -> const Set& { return sets_[index % sets_.size()]; };
    const auto work = [&] {
      for (size_t i = first; i < first + static_cast<size_t>(launches_); ++i) {
        run(candidate, name, set(i));
      }
    };
    if (!has_seconds_) {
      // As in a model, where one follows another: the run before keeps the device busy while those
      // that count are launched, loads the code, and leaves the L2 to its own operands. Flushing it
      // would take memory for good.
      run(candidate, name, set(first + sets_.size() - 1));
      return device_->time_us(work) / launches_;
    }
    // A long one runs alone and finds nothing of its predecessor in L2.
    return launches_ == 1 ? device_->time_cold_us(work) : device_->time_us(work) / launches_;
  }

  // The sets follow each other as layers do: no run finds its weights in L2.
  double measure_under_load(const std::string& name, int runs) {
    const GemmCandidate* candidate = candidate_named(name);
    const auto work = [&] {
      for (int i = 0; i < runs; ++i) run(candidate, name, sets_[i % sets_.size()]);
    };
    return device_->time_us(work) / runs;
  }

 private:
  // Null for a reference.
  static const GemmCandidate* candidate_named(const std::string& name) {
    return name == kUnquantized || name == kQuantize ? nullptr : &find_candidate(name);
  }
  int64_t out_columns() const { return output_columns(problem_.fusion, problem_.n); }
  TensorView rows(const Buffer& buffer, DType dtype, int64_t count, int64_t columns) const {
    return TensorView(buffer.data(), dtype, {count, columns});
  }
  TensorView a(const Set& set) const {
    return TensorView::rows(set.a.data(), DType::i8, problem_.m, problem_.k,
                            round_up(problem_.k, 16));
  }
  QTensor scaled(const TensorView& values) const {
    return {values, scales_.view(DType::f32, {values.shape[0]})};
  }

  // Random numbers with a deviation of 30, like quantized weights. A GPU's power, and so its clock,
  // depends on them: with zeros it would stay far from its power limit.
  Set make_set(uint64_t seed) {
    const auto [m, n, k] = std::tuple(problem_.m, problem_.n, problem_.k);
    const auto random = [&](int64_t bytes, uint64_t part) {
      Buffer buffer = device_->allocate(static_cast<size_t>(bytes));
      launch_fill_random_int8(reinterpret_cast<int8_t*>(buffer.data()), static_cast<size_t>(bytes),
                              3 * seed + part, device_->stream());
      check_launch("filling operands of a trial");
      return buffer;
    };
    Set set;
    set.a = random(activation_bytes(problem_), 0);
    set.w = random(packed_bytes(n, k), 1);
    set.out = device_->allocate(static_cast<size_t>(output_bytes(problem_)));
    if (!has_seconds_) return set;  // nothing but kernels is measured
    set.bf16_a = device_->allocate(bytes_of(DType::bf16, {m, k}));
    const int multiprocessors = device_->traits().multiprocessors;
    launch_dequantize_rows(scaled(a(set)), rows(set.bf16_a, DType::bf16, m, k), multiprocessors,
                           device_->stream());
    if (library_ != nullptr) {
      set.bf16_w = device_->allocate(bytes_of(DType::bf16, {n, k}));
      set.bf16_out = device_->allocate(bytes_of(DType::bf16, {m, n}));
      launch_dequantize_rows(scaled(rows(set.w, DType::i8, n, k)),
                             rows(set.bf16_w, DType::bf16, n, k), multiprocessors,
                             device_->stream());
    }
    check_launch("making operands of a trial");
    return set;
  }

  void run(const GemmCandidate* candidate, const std::string& name, const Set& set) {
    const auto [m, n, k] = std::tuple(problem_.m, problem_.n, problem_.k);
    if (candidate != nullptr) {
      const auto* scales = reinterpret_cast<const float*>(scales_.data());
      const TensorView out = rows(set.out, problem_.out, m, out_columns());
      launcher_.launch(*candidate, problem_,
                       {.a = a(set),
                        .row_scale = scales,
                        .w = reinterpret_cast<const int8_t*>(set.w.data()),
                        .w_stride = problem_.layout == kPlainLayout ? k : 0,
                        .col_scale = scales,
                        .bias = scales,
                        .out = out});
    } else if (name == kQuantize) {
      launch_quantize_rows(rows(set.bf16_a, DType::bf16, m, k), {}, scaled(a(set)),
                           device_->traits().multiprocessors, device_->stream());
      check_launch("quantize_rows");
    } else {
      const bool done =
          library_->matmul(rows(set.bf16_a, DType::bf16, m, k), rows(set.bf16_w, DType::bf16, n, k),
                           rows(set.bf16_out, DType::bf16, m, n));
      check(done, "cublasLt has no algorithm for m={} n={} k={}", m, n, k);
    }
  }

  std::shared_ptr<Device> device_;
  GemmLauncher& launcher_;
  CublasLt* library_;
  GemmProblem problem_;
  bool has_seconds_;
  Buffer scales_;  // 0.01, until quantizing writes its own
  std::vector<Set> sets_;
  int launches_ = 1;
};

}  // namespace

tune::Trial begin_trial(const std::shared_ptr<Device>& device, GemmLauncher& launcher,
                        CublasLt* library, const GemmProblem& problem) {
  const Active active(device->traits().index);
  auto operands =
      std::make_shared<Operands>(device, launcher, problem, Surroundings{.library = library});
  tune::Trial trial;
  trial.measure = [operands](const std::string& name, int turn) {
    return operands->measure(name, turn);
  };
  trial.under_load = [operands](const std::string& name, int runs) {
    return operands->measure_under_load(name, runs);
  };
  trial.references = {kQuantize};
  if (library != nullptr) trial.references.emplace_back(kUnquantized);
  return trial;
}

tune::Trial begin_short_trial(const std::shared_ptr<Device>& device, const GemmProblem& problem,
                              uint64_t most_bytes) {
  const Active active(device->traits().index);
  // Partial sums of tiles that are shared: at most two of each worker, below 64 MB on all GPUs.
  constexpr uint64_t kWorkspaceBytes = uint64_t{64} << 20;
  const auto bytes = static_cast<uint64_t>(set_bytes(problem));
  const uint64_t sets = most_bytes < kWorkspaceBytes
                            ? 0
                            : (most_bytes - kWorkspaceBytes) / std::max(bytes, uint64_t{1});
  if (sets == 0) {
    throw OutOfMemory(
        sentence("its operands take {} bytes beside {} of workspace, expected at most {}", bytes,
                 kWorkspaceBytes, most_bytes));
  }
  // Of its own, so that no workspace grows that recorded work uses.
  auto launcher = std::make_shared<GemmLauncher>(*device, /*records=*/false);
  auto operands = std::make_shared<Operands>(
      device, *launcher, problem,
      Surroundings{.has_seconds = false,
                   .most_sets = static_cast<int64_t>(std::min<uint64_t>(sets, kMostSets))});
  tune::Trial trial;
  trial.measure = [launcher, operands, index = device->traits().index](const std::string& name,
                                                                       int turn) {
    const Active active_now(index);
    return operands->measure(name, turn);
  };
  return trial;
}

}  // namespace octet::cuda
