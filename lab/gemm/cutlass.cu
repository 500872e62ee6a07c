// INT8 GEMMs of CUTLASS for Hopper with Octet's epilogue, behind C functions for compare.py:
//   out[m, n] = bf16((float(a[m, :] . b[n, :]) * row_scale[m]) * col_scale[n])
// rounded after each step as in backend/gemm.h, so that the results are the same bits.
//
// CUTLASS is not part of Octet. CUTLASS_INCLUDE is the folder that contains its cutlass/ and cute/;
// the package nvidia-cutlass has it as cutlass_library/source/include. In this folder:
//   nvcc -std=c++17 -O3 -DNDEBUG --expt-relaxed-constexpr -w
//     -gencode=arch=compute_90a,code=sm_90a -cudart static -Xcompiler -fPIC,-fvisibility=hidden
//     -shared -I$CUTLASS_INCLUDE cutlass.cu -o libcutlass_int8.so
// Some minutes. Without NDEBUG its assertions are calls, around which ptxas serializes wgmma.
#include <cuda_runtime.h>

#include <iterator>
#include <memory>
#include <string>
#include <type_traits>

#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/epilogue/fusion/sm90_visitor_tma_warpspecialized.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/version.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

using namespace cute;
namespace fusion = cutlass::epilogue::fusion;
namespace collective = cutlass::gemm::collective;
using cutlass::bfloat16_t;

struct Problem {
  const int8_t* a;         // [m, k], dense
  const int8_t* b;         // [n, k], dense
  const float* row_scale;  // [m]
  const float* col_scale;  // [n]
  void* out;               // bf16 [m, n], dense
  int m, n, k;
  int raster;   // 0: CUTLASS decides, 1: along m, 2: along n
  int swizzle;  // at most this many clusters side by side
  cudaStream_t stream;
};

// One kernel prepared for one problem: launch() costs the host little.
struct Plan {
  virtual ~Plan() = default;
  virtual cutlass::Status launch() = 0;
};

template <class TileShape, class ClusterShape, bool kPingpong, class Scheduler>
struct Gemm {
  static constexpr bool kStreams = std::is_same_v<Scheduler, cutlass::gemm::StreamKScheduler>;
  using Mainloop = std::conditional_t<kPingpong, cutlass::gemm::KernelTmaWarpSpecializedPingpong,
                                      cutlass::gemm::KernelTmaWarpSpecializedCooperative>;
  using Epilogue = std::conditional_t<kPingpong, cutlass::epilogue::TmaWarpSpecialized,
                                      cutlass::epilogue::TmaWarpSpecializedCooperative>;
  static constexpr auto kRound = cutlass::FloatRoundStyle::round_to_nearest;

  // CUTLASS names a broadcast by the vector that it takes: one value per row is a column.
  using RowScale = fusion::Sm90ColBroadcast<0, TileShape, float>;
  using ColScale = fusion::Sm90RowBroadcast<0, TileShape, float>;
  using OfRow = fusion::Sm90EVT<fusion::Sm90Compute<cutlass::multiplies, float, float, kRound>,
                                RowScale, fusion::Sm90AccFetch>;
  using Scaled =
      fusion::Sm90EVT<fusion::Sm90Compute<cutlass::multiplies, bfloat16_t, float, kRound>, ColScale,
                      OfRow>;

  using Row = cutlass::layout::RowMajor;
  using Column = cutlass::layout::ColumnMajor;
  using CollectiveEpilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, TileShape, ClusterShape,
      cutlass::epilogue::collective::EpilogueTileAuto, int32_t, float, void, Row, 8, bfloat16_t,
      Row, 8, Epilogue, Scaled>::CollectiveOp;
  using Stages = collective::StageCountAutoCarveout<static_cast<int>(
      sizeof(typename CollectiveEpilogue::SharedStorage))>;
  using CollectiveMainloop = typename collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, int8_t, Row, 16, int8_t, Column, 16,
      int32_t, TileShape, ClusterShape, Stages, Mainloop>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, CollectiveMainloop,
                                                      CollectiveEpilogue, Scheduler>;
  using Adapter = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
  using Arguments = typename Adapter::Arguments;

  struct Prepared final : Plan {
    Arguments arguments;
    cudaStream_t stream;
    Adapter adapter;
    void* workspace = nullptr;
    size_t workspace_bytes = 0;

    ~Prepared() override { cudaFree(workspace); }
    // The flags by which stream-k's blocks wait for each other start at zero, in each launch.
    cutlass::Status launch() override {
      if (workspace_bytes > 0) {
        const auto status = Kernel::initialize_workspace(arguments, workspace, stream);
        if (status != cutlass::Status::kSuccess) return status;
      }
      return adapter.run(stream);
    }
  };

  static Arguments arguments_of(const Problem& p) {
    const auto strides = [](auto stride, int columns) {
      get<0>(stride) = columns;
      return stride;
    };
    Arguments arguments{};
    arguments.mode = cutlass::gemm::GemmUniversalMode::kGemm;
    arguments.problem_shape = {p.m, p.n, p.k, 1};
    arguments.mainloop.ptr_A = p.a;
    arguments.mainloop.dA = strides(typename Kernel::StrideA{}, p.k);
    arguments.mainloop.ptr_B = p.b;
    arguments.mainloop.dB = strides(typename Kernel::StrideB{}, p.k);
    // Of a tree: its children's arguments, then its operation's.
    arguments.epilogue.thread = {{p.col_scale}, {{p.row_scale}, {}, {}}, {}};
    arguments.epilogue.ptr_D = static_cast<bfloat16_t*>(p.out);
    arguments.epilogue.dD = strides(typename Kernel::StrideD{}, p.n);
    arguments.hw_info = cutlass::KernelHardwareInfo::make_kernel_hardware_info<Kernel>();
    auto& scheduler = arguments.scheduler;
    using Raster = decltype(scheduler.raster_order);
    scheduler.max_swizzle_size = p.swizzle;
    scheduler.raster_order = p.raster == 1   ? Raster::AlongM
                             : p.raster == 2 ? Raster::AlongN
                                             : Raster::Heuristic;
    if constexpr (kStreams) {  // else it may decide not to
      scheduler.decomposition_mode = decltype(scheduler.decomposition_mode)::StreamK;
    }
    return arguments;
  }

  // Null, with the reason in `error`, if it is not possible.
  static std::unique_ptr<Plan> prepare(const Problem& problem, std::string& error) {
    auto plan = std::make_unique<Prepared>();
    plan->arguments = arguments_of(problem);
    plan->stream = problem.stream;
    auto status = Adapter::can_implement(plan->arguments);
    if (status != cutlass::Status::kSuccess) {
      error = std::string("can_implement: ") + cutlassGetStatusString(status);
      return nullptr;
    }
    plan->workspace_bytes = Adapter::get_workspace_size(plan->arguments);
    if (plan->workspace_bytes > 0) {
      const cudaError_t allocated = cudaMalloc(&plan->workspace, plan->workspace_bytes);
      if (allocated != cudaSuccess) {
        plan->workspace = nullptr;
        cudaGetLastError();
        error = std::string("workspace: ") + cudaGetErrorString(allocated);
        return nullptr;
      }
    }
    status = plan->adapter.initialize(plan->arguments, plan->workspace, plan->stream);
    if (status != cutlass::Status::kSuccess) {
      error = std::string("initialize: ") + cutlassGetStatusString(status);
      return nullptr;
    }
    return plan;
  }
};

constexpr bool kPingpong = true, kCooperative = false;
using Whole = cutlass::gemm::PersistentScheduler;
using StreamK = cutlass::gemm::StreamKScheduler;

template <int kM, int kN, int kClusterM, int kClusterN, bool kTurns, class Scheduler = Whole>
constexpr auto prepare_gemm =
    &Gemm<Shape<Int<kM>, Int<kN>, _128>, Shape<Int<kClusterM>, Int<kClusterN>, _1>, kTurns,
          Scheduler>::prepare;

struct Entry {
  const char* name;
  std::unique_ptr<Plan> (*prepare)(const Problem&, std::string&);
};

const Entry kEntries[] = {
    {"128x256 cooperative 2x1", prepare_gemm<128, 256, 2, 1, kCooperative>},
    {"128x256 cooperative 1x2", prepare_gemm<128, 256, 1, 2, kCooperative>},
    {"256x192 cooperative 2x1", prepare_gemm<256, 192, 2, 1, kCooperative>},
    {"256x192 cooperative 1x2", prepare_gemm<256, 192, 1, 2, kCooperative>},
    {"256x128 cooperative 2x1", prepare_gemm<256, 128, 2, 1, kCooperative>},
    {"256x128 cooperative 1x2", prepare_gemm<256, 128, 1, 2, kCooperative>},
    {"128x192 pingpong 2x1", prepare_gemm<128, 192, 2, 1, kPingpong>},
    {"128x192 pingpong 1x2", prepare_gemm<128, 192, 1, 2, kPingpong>},
    {"128x128 pingpong 2x1", prepare_gemm<128, 128, 2, 1, kPingpong>},
    {"128x256 cooperative 2x1 stream-k", prepare_gemm<128, 256, 2, 1, kCooperative, StreamK>},
    {"256x192 cooperative 1x2 stream-k", prepare_gemm<256, 192, 1, 2, kCooperative, StreamK>},
};

thread_local std::string last_error;

}  // namespace

EXPORTED int cutlass_kernel_count() { return static_cast<int>(std::size(kEntries)); }
EXPORTED const char* cutlass_kernel_name(int kernel) { return kEntries[kernel].name; }
EXPORTED int cutlass_version() { return CUTLASS_VERSION; }
EXPORTED const char* cutlass_last_error() { return last_error.c_str(); }

// Null if this kernel cannot do it. Addresses are the device's, and must stay valid until release.
EXPORTED void* cutlass_prepare(int kernel, const int8_t* a, const int8_t* b, const float* row_scale,
                               const float* col_scale, void* out, int m, int n, int k, int raster,
                               int swizzle, cudaStream_t stream) {
  const Problem problem{a, b, row_scale, col_scale, out, m, n, k, raster, swizzle, stream};
  Plan* plan = kEntries[kernel].prepare(problem, last_error).release();
  cudaGetLastError();  // a query that was refused on the way is not a failed launch
  return plan;
}

// Whether it was launched.
EXPORTED int cutlass_launch(void* plan) {
  const auto status = static_cast<Plan*>(plan)->launch();
  if (status == cutlass::Status::kSuccess) return 1;
  last_error = std::string("launch: ") + cutlassGetStatusString(status);
  return 0;
}

// Call it when all launches are done.
EXPORTED void cutlass_release(void* plan) { delete static_cast<Plan*>(plan); }
