#include "cuda/matmul/cublaslt.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/never_destroyed.h"
#include "cuda/check.h"

namespace octet::cuda {
namespace {

constexpr size_t kWorkspaceBytes = size_t{64} << 20;

void check_lt(cublasStatus_t status, const char* what) {
  check(status == CUBLAS_STATUS_SUCCESS, "cublasLt: {} failed with status {}", what,
        static_cast<int>(status));
}

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::bf16: return CUDA_R_16BF;
    case DType::f16: return CUDA_R_16F;
    case DType::i8: return CUDA_R_8I;
    case DType::i32: return CUDA_R_32I;
    case DType::f8_e4m3: return CUDA_R_8F_E4M3;
    default: return CUDA_R_32F;
  }
}

// A row stride that is meaningful even for a single row.
int64_t leading(const ConstTensorView& view) {
  return std::max<int64_t>({view.shape[0] > 1 ? view.row_stride() : view.shape[1], 1});
}

// The largest power of two up to 256 that divides every row's address.
uint32_t alignment_of(const ConstTensorView& view) {
  const auto address = reinterpret_cast<uintptr_t>(view.data) |
                       static_cast<uintptr_t>(leading(view) * bits_of(view.dtype) / 8) | 256;
  return static_cast<uint32_t>(address & -address);
}

}  // namespace

struct CublasLt::Api {
  std::string problem;
#define OCTET_LT(name) decltype(&::name) name = nullptr;
#define OCTET_LT_FUNCTIONS(each)                                                                 \
  each(cublasLtCreate) each(cublasLtDestroy) each(cublasLtMatmul) each(cublasLtMatmulDescCreate) \
      each(cublasLtMatmulDescDestroy) each(cublasLtMatmulDescSetAttribute)                       \
          each(cublasLtMatrixLayoutCreate) each(cublasLtMatrixLayoutDestroy)                     \
              each(cublasLtMatmulPreferenceCreate) each(cublasLtMatmulPreferenceDestroy)         \
                  each(cublasLtMatmulPreferenceSetAttribute) each(cublasLtMatmulAlgoGetHeuristic)
  OCTET_LT_FUNCTIONS(OCTET_LT)
#undef OCTET_LT

  Api() {
    const std::string name = fmt::format("libcublasLt.so.{}", CUDART_VERSION / 1000);
    const std::string beside_toolkit = std::string(OCTET_CUDA_LIBRARY_DIR "/") + name;
    void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) library = ::dlopen(beside_toolkit.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      problem = fmt::format(
          "{} was not found; install cuBLAS, or add its folder to "
          "LD_LIBRARY_PATH",
          name);
      return;
    }
#define OCTET_LT(function)                                                      \
  function = reinterpret_cast<decltype(function)>(::dlsym(library, #function)); \
  if (function == nullptr)                                                      \
    problem = fmt::format("{} has no {}; install a newer cuBLAS", name, #function);
    OCTET_LT_FUNCTIONS(OCTET_LT)
#undef OCTET_LT
  }
};

const CublasLt::Api& CublasLt::api() {
  static const auto& api = never_destroyed<Api>();
  return api;
}

std::string CublasLt::unavailable() { return api().problem; }

struct CublasLt::Plan {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, out = nullptr;
  cublasLtMatmulAlgo_t algorithm = {};
  bool usable = false;

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  Plan(Plan&& other) noexcept
      : operation(std::exchange(other.operation, nullptr)),
        a(std::exchange(other.a, nullptr)),
        b(std::exchange(other.b, nullptr)),
        out(std::exchange(other.out, nullptr)),
        algorithm(other.algorithm),
        usable(other.usable) {}
  ~Plan() {
    if (operation != nullptr) api().cublasLtMatmulDescDestroy(operation);
    for (cublasLtMatrixLayout_t layout : {a, b, out}) {
      if (layout != nullptr) api().cublasLtMatrixLayoutDestroy(layout);
    }
  }
};

CublasLt::CublasLt(Device& device) : device_(device) {
  check(api().problem.empty(), "matmul: {}", api().problem);
  const Active active(device.traits().index);
  workspace_ = device.allocate(kWorkspaceBytes);
  cublasLtHandle_t handle = nullptr;
  check_lt(api().cublasLtCreate(&handle), "opening the library");
  handle_ = handle;  // last: nothing can fail after it
}

CublasLt::~CublasLt() { api().cublasLtDestroy(static_cast<cublasLtHandle_t>(handle_)); }

// False if this version of the library has no such scales. b is the library's first operand.
bool CublasLt::set_scales(const Plan& plan, const Scales& scales) {
  const auto set = [&plan](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    return api().cublasLtMatmulDescSetAttribute(plan.operation, attribute, &value, sizeof(value)) ==
           CUBLAS_STATUS_SUCCESS;
  };
  const int8_t fast = 1;
  const bool known = set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, fast) &&
                     set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scales.b) &&
                     set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scales.a);
  if (!scales.by_rows) return known;
#if CUDART_VERSION >= 12090
  const auto mode = static_cast<int32_t>(CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
  return known && set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode) &&
         set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode);
#else
  return false;
#endif
}

// The library is column-major: our rows are its columns, and out^T = b a^T.
CublasLt::Plan CublasLt::make_plan(const ConstTensorView& a, const ConstTensorView& b,
                                   const TensorView& out, const Scales* scales) {
  const Api& lt = api();
  const bool integer = a.dtype == DType::i8;
  const auto m = static_cast<uint64_t>(a.shape[0]);
  const auto n = static_cast<uint64_t>(b.shape[0]);
  const auto k = static_cast<uint64_t>(a.shape[1]);
  Plan plan;
  // 32F means f32 multiplications for F32: TF32, with 10 bits, has a compute type of its own.
  check_lt(lt.cublasLtMatmulDescCreate(&plan.operation,
                                       integer ? CUBLAS_COMPUTE_32I : CUBLAS_COMPUTE_32F,
                                       integer ? CUDA_R_32I : CUDA_R_32F),
           "describing a product");
  const cublasOperation_t transposed = CUBLAS_OP_T;
  check_lt(lt.cublasLtMatmulDescSetAttribute(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA,
                                             &transposed, sizeof(transposed)),
           "describing a product");
  check_lt(lt.cublasLtMatrixLayoutCreate(&plan.b, data_type(b.dtype), k, n, leading(b)),
           "describing b");
  check_lt(lt.cublasLtMatrixLayoutCreate(&plan.a, data_type(a.dtype), k, m, leading(a)),
           "describing a");
  check_lt(lt.cublasLtMatrixLayoutCreate(&plan.out, data_type(out.dtype), n, m, leading(out)),
           "describing out");
  if (scales != nullptr && !set_scales(plan, *scales)) return plan;
  cublasLtMatmulPreference_t preference = nullptr;
  check_lt(lt.cublasLtMatmulPreferenceCreate(&preference), "asking for an algorithm");
  const size_t workspace = kWorkspaceBytes;
  lt.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                          &workspace, sizeof(workspace));
  if (!integer) {
    // If k is split, partial sums stay in f32: rounding them to out's type would round twice.
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    lt.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                            &schemes, sizeof(schemes));
  }
  const uint32_t of_a = alignment_of(a), of_b = alignment_of(b), of_out = alignment_of(out);
  for (const auto& [attribute, alignment] :
       {std::pair{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, of_b},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, of_a},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, of_out},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, of_out}}) {
    lt.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &alignment, sizeof(alignment));
  }
  cublasLtMatmulHeuristicResult_t result = {};
  int found = 0;
  const cublasStatus_t status = lt.cublasLtMatmulAlgoGetHeuristic(
      static_cast<cublasLtHandle_t>(handle_), plan.operation, plan.b, plan.a, plan.out, plan.out,
      preference, 1, &result, &found);
  lt.cublasLtMatmulPreferenceDestroy(preference);
  plan.usable = status == CUBLAS_STATUS_SUCCESS && found > 0;
  plan.algorithm = result.algo;
  return plan;
}

bool CublasLt::multiply(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
                        const Scales* scales) {
  const Key key = {a.dtype,         out.dtype,       a.shape[0],        b.shape[0],
                   a.shape[1],      leading(a),      leading(b),        leading(out),
                   alignment_of(a), alignment_of(b), alignment_of(out), scales && scales->by_rows};
  auto& plan = plans_[key];
  if (plan == nullptr) plan = std::make_unique<Plan>(make_plan(a, b, out, scales));
  if (!plan->usable) return false;
  if (scales != nullptr) check(set_scales(*plan, *scales), "cublasLt: setting scales failed");
  const float one = 1, zero = 0;
  const int32_t integer_one = 1, integer_zero = 0;
  const bool integer = a.dtype == DType::i8;
  const void* alpha = integer ? static_cast<const void*>(&integer_one) : &one;
  const void* beta = integer ? static_cast<const void*>(&integer_zero) : &zero;
  check_lt(
      api().cublasLtMatmul(static_cast<cublasLtHandle_t>(handle_), plan->operation, alpha, b.data,
                           plan->b, a.data, plan->a, beta, out.data, plan->out, out.data, plan->out,
                           &plan->algorithm, workspace_.data(), kWorkspaceBytes, device_.stream()),
      "multiplying");
  return true;
}

}  // namespace octet::cuda
