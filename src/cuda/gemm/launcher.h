// Runs a candidate of the tile table on a problem, and tells beforehand whether it can and how long
// it should take.
#pragma once

#include <map>
#include <string>

#include "backend/gemm.h"
#include "cuda/device.h"
#include "cuda/gemm/params.h"
#include "cuda/gemm/shares.h"
#include "cuda/gemm/table.h"
#include "cuda/gemm/tensor_maps.h"

namespace octet::cuda {

// Where the operands of a GEMM are.
struct GemmOperands {
  ConstTensorView a;  // I8 [m, k]
  const float* row_scale = nullptr;
  const int8_t* w = nullptr;  // see pack.h
  int64_t w_stride = 0;       // of plain rows
  const float* col_scale = nullptr;
  const float* bias = nullptr;
  TensorView out;

  static GemmOperands from(const GemmArgs& args);
};

class GemmLauncher {
 public:
  // `records`: its launches may be recorded, and its workspaces are known to recordings.
  explicit GemmLauncher(Device& device, bool records = true);

  // Why this GPU cannot run the candidate on the problem; empty if it can.
  std::string refusal(const GemmCandidate& candidate, const GemmProblem& problem);

  // Expected microseconds. Only the order of candidates matters.
  double estimate_us(const GemmCandidate& candidate, const GemmProblem& problem);

  void launch(const GemmCandidate& candidate, const GemmProblem& problem,
              const GemmOperands& operands);

  // Takes the workspace now that launches of aligned operands will need, with any number of rows:
  // while work is captured, nothing can be taken.
  void reserve(const GemmCandidate& candidate, const GemmProblem& problem);

 private:
  Shares share(const GemmCandidate& candidate, const GemmProblem& problem);
  // Workers that fit on the device at once; 0 if the kernel cannot run here. Sets the kernel up on
  // the first call.
  int room_for(const GemmRow& row, const GemmProblem& problem);
  void use_aligned_a(GemmParams& params, const GemmOperands& operands, const GemmProblem& problem);
  uint32_t* counters(size_t count);
  std::byte* workspace(Buffer& buffer, size_t bytes);
  void start(const GemmRow& row, const GemmProblem& problem, GemmParams& params, int workers);

  Device& device_;
  bool records_;
  std::map<const void*, int> room_;  // by kernel
  TensorMaps maps_;
  Buffer partials_, arrivals_, aligned_a_, aligned_out_;
};

}  // namespace octet::cuda
