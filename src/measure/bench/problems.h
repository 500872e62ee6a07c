// The GEMM problems behind the shapes of a model, and what their plans say about them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/gemm_tuning.h"
#include "octet/tools/gemm_shape.h"

namespace octet::measure {

inline constexpr const char* kInt8 = "int8";
inline constexpr const char* kBf16 = "bf16";

// The plain GEMM of a shape; the layout of its weight is left to the backend.
GemmProblem plain_problem(const GemmShape& shape, DType out);

// What a model of these linears asks of gemm(): the plain problem of each, and the one with swiglu
// for gate_up shapes; bf16 outputs. Each problem once, in the order of the shapes.
std::vector<GemmProblem> model_problems(const std::vector<GemmShape>& shapes);

double operations_of(int64_t m, int64_t n, int64_t k);

// kInt8 when quantizing and multiplying took less than multiplying in bf16, else kBf16; empty when
// the plan lacks a measurement.
std::string faster_path(const GemmPlan& plan);

}  // namespace octet::measure
