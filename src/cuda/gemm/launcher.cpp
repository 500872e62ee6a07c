#include "cuda/gemm/launcher.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "cuda/check.h"
#include "cuda/gemm/pack.h"
#include "cuda/rows/row_kernels.h"
#include "cuda/tensor_map.h"

namespace octet::cuda {
namespace {

constexpr int64_t kAlignment = 16;   // of rows of a and out
constexpr int64_t kColumnGroup = 8;  // of w, stored together
constexpr int kMostArrivals = 8192;  // counters: teams of all workers, see share.cuh

bool is_aligned(const void* pointer, int64_t stride_bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % kAlignment == 0 && stride_bytes % kAlignment == 0;
}

WeightRows rows_of(const GemmProblem& problem) {
  return problem.layout == kPlainLayout ? WeightRows::plain : WeightRows::packed;
}

OutType out_type(DType dtype) {
  switch (dtype) {
    case DType::i32: return OutType::i32;
    case DType::f32: return OutType::f32;
    case DType::bf16: return OutType::bf16;
    case DType::f16: return OutType::f16;
    default: fail("gemm: an output of {} has no kernel", octet::name_of(dtype));
  }
}

size_t partial_bytes(const GemmRow& row, int workers) {
  return size_t{2} * static_cast<size_t>(workers * row.worker_m() * row.worker_n()) *
         sizeof(int32_t);
}

// A launch of `workers` workers; `cluster` must live as long as the result.
cudaLaunchConfig_t launch_config(const GemmRow& row, int workers, cudaLaunchAttribute& cluster,
                                 cudaStream_t stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(workers * row.cluster()));
  config.blockDim = dim3(static_cast<unsigned>(row.threads));
  config.dynamicSmemBytes = static_cast<size_t>(row.shared_bytes);
  config.stream = stream;
  if (row.cluster() > 1) {
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {static_cast<unsigned>(row.cluster()), 1, 1};
    config.attrs = &cluster;
    config.numAttrs = 1;
  }
  return config;
}

}  // namespace

GemmOperands GemmOperands::from(const GemmArgs& args) {
  const auto floats = [](const Buffer& buffer) {
    return reinterpret_cast<const float*>(buffer.data());
  };
  return {.a = args.a.values,
          .row_scale = args.a.scales.as<float>(),
          .w = reinterpret_cast<const int8_t*>(args.w->values.data()),
          .w_stride = args.w->row_stride,
          .col_scale = floats(args.w->col_scale),
          .bias = floats(args.w->bias),
          .out = args.out};
}

GemmLauncher::GemmLauncher(Device& device, bool records) : device_(device), records_(records) {
  const Active active(device_.traits().index);
  const size_t bytes = kMostArrivals * sizeof(uint32_t);
  arrivals_ = device_.allocate(bytes);
  check_cuda(cudaMemsetAsync(arrivals_.data(), 0, bytes, device_.stream()), "clearing counters");
}

int GemmLauncher::room_for(const GemmRow& row, const GemmProblem& problem) {
  const void* kernel = row.kernel(problem.fusion, rows_of(problem));
  if (const auto known = room_.find(kernel); known != room_.end()) return known->second;
  int room = 0;
  if (row.shared_bytes <= device_.traits().shared_bytes_per_block) {
    const cudaError_t status =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, row.shared_bytes);
    const bool has_no_code =
        status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction;
    if (has_no_code) {
      cudaGetLastError();  // built for other GPUs
    } else if (row.cluster() > 1) {
      check_cuda(status, "setting up " + row.name);
      cudaLaunchAttribute cluster = {};
      const cudaLaunchConfig_t config =
          launch_config(row, device_.traits().multiprocessors, cluster, device_.stream());
      check_cuda(cudaOccupancyMaxActiveClusters(&room, kernel, &config),
                 "asking for the occupancy of " + row.name);
    } else {
      check_cuda(status, "setting up " + row.name);
      check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                     &room, kernel, row.threads, static_cast<size_t>(row.shared_bytes)),
                 "asking for the occupancy of " + row.name);
      room *= device_.traits().multiprocessors;
    }
  }
  return room_[kernel] = std::min(room, kMostArrivals / row.teams);
}

std::byte* GemmLauncher::workspace(Buffer& buffer, size_t bytes) {
  return records_ ? device_.at_least(buffer, bytes) : device_.at_least_unrecorded(buffer, bytes);
}

void GemmLauncher::reserve(const GemmCandidate& candidate, const GemmProblem& problem) {
  if (!candidate.streams) return;
  const GemmRow& row = *candidate.row;
  workspace(partials_, partial_bytes(row, room_for(row, problem)));
}

Shares GemmLauncher::share(const GemmCandidate& candidate, const GemmProblem& problem) {
  return share_tiles(candidate, problem, room_for(*candidate.row, problem));
}

std::string GemmLauncher::refusal(const GemmCandidate& candidate, const GemmProblem& problem) {
  const GemmRow& row = *candidate.row;
  const DeviceTraits& traits = device_.traits();
  if (row.hopper && traits.architecture() != 90) {
    return fmt::format("runs only on sm_90, this GPU is sm_{}", traits.architecture());
  }
  if (row.shared_bytes > traits.shared_bytes_per_block) {
    return fmt::format("needs {} KB of shared memory per block, this GPU has {}",
                       row.shared_bytes / 1024, traits.shared_bytes_per_block / 1024);
  }
  if (room_for(row, problem) == 0) {
    return fmt::format("this build has no code for it on sm_{}{}", traits.architecture(),
                       row.cluster() > 1 ? ", or the GPU no room for its clusters" : "");
  }
  if (row.hopper && !why_no_tensor_maps().empty()) return why_no_tensor_maps();
  const int64_t tiles = ceil_div(problem.m, row.m) * ceil_div(problem.n, row.n);
  if (tiles > INT32_MAX / 2 || problem.m > INT32_MAX / 2 || problem.n > INT32_MAX / 2) {
    return "would have too many tiles";
  }
  // Offsets of operands have 32 bits in family sm80, and one limit for both families is simpler.
  if (packed_bytes(problem.n, problem.k) > UINT32_MAX) return "takes weights up to 4 GB";
  if (problem.m * round_up(problem.k, kAlignment) > UINT32_MAX) {
    return "takes activations up to 4 GB";
  }
  if (candidate.streams && share(candidate, problem).shared_tiles() == 0) {
    return "no tiles are left to share";
  }
  return "";
}

double GemmLauncher::estimate_us(const GemmCandidate& candidate, const GemmProblem& problem) {
  return expected_us(candidate, problem, share(candidate, problem), device_.traits());
}

// The kernels read whole 16-byte chunks. A view that does not allow that is copied first; no shape
// in a model needs this.
void GemmLauncher::use_aligned_a(GemmParams& params, const GemmOperands& operands,
                                 const GemmProblem& problem) {
  const int64_t stride = operands.a.row_stride();
  params.a = operands.a.as<int8_t>();
  params.a_stride = stride;
  const bool one_row = problem.m == 1;
  if (problem.k > 0 && problem.k % kAlignment == 0 &&
      is_aligned(params.a, one_row ? kAlignment : stride) &&
      (one_row || problem.m * stride <= UINT32_MAX)) {
    return;
  }
  params.a_stride = round_up(std::max<int64_t>(problem.k, 1), kAlignment);
  auto* copy = reinterpret_cast<int8_t*>(
      workspace(aligned_a_, static_cast<size_t>(problem.m * params.a_stride)));
  launch_copy_padded(params.a, stride, copy, params.a_stride, problem.m, problem.k,
                     device_.stream());
  check_launch("copying unaligned activations");
  params.a = copy;
}

// Zeros, and the kernels leave zeros behind. A caller's streams may run several kernels at once,
// also in graphs, so there each launch has its own.
uint32_t* GemmLauncher::counters(size_t count) {
  if (device_.caller() == nullptr) return reinterpret_cast<uint32_t*>(arrivals_.data());
  const size_t bytes = count * sizeof(uint32_t);
  std::byte* own = device_.caller()->take(bytes);
  check_cuda(cudaMemsetAsync(own, 0, bytes, device_.stream()), "clearing counters");
  return reinterpret_cast<uint32_t*>(own);
}

void GemmLauncher::start(const GemmRow& row, const GemmProblem& problem, GemmParams& params,
                         int workers) {
  OperandMaps maps;
  if (row.hopper) {
    // The stride of a single row says nothing.
    const int64_t stride =
        problem.m == 1 ? round_up(std::max<int64_t>(problem.k, 1), kAlignment) : params.a_stride;
    maps.a = TensorMaps::activations(params.a, problem.m, problem.k, stride, row.m / row.cluster_n);
    const int box_rows = row.n / row.cluster_m;
    maps.w = params.w_stride == 0
                 ? maps_.weight(params.w, problem.n, problem.k, box_rows)
                 : maps_.plain_weight(params.w, problem.n, problem.k, params.w_stride,
                                      traits_of(problem.fusion).gated, box_rows);
  }
  void* arguments[] = {&params, &maps};  // family sm80 takes the first alone
  cudaLaunchAttribute cluster = {};
  const cudaLaunchConfig_t config = launch_config(row, workers, cluster, device_.stream());
  const cudaError_t status =
      cudaLaunchKernelExC(&config, row.kernel(problem.fusion, rows_of(problem)), arguments);
  if (status != cudaSuccess) {
    check_cuda(status, fmt::format("launching {} for {}", row.name, problem.to_string()));
  }
}

void GemmLauncher::launch(const GemmCandidate& candidate, const GemmProblem& problem,
                          const GemmOperands& operands) {
  const GemmRow& row = *candidate.row;
  const Shares shares = share(candidate, problem);
  // Formatted only when needed: this runs at every launch.
  if (shares.workers == 0) {
    fail("gemm: {} cannot run: {}", candidate.name, refusal(candidate, problem));
  }
  // schedule.cuh multiplies these in 32 bits.
  if (int64_t{shares.shared_tiles()} * shares.k_steps * (shares.workers + 1) > UINT32_MAX) {
    fail("gemm: {} would share too many steps of {}", candidate.name, problem.to_string());
  }
  GemmParams params = {};
  use_aligned_a(params, operands, problem);
  params.w = operands.w;
  params.w_stride = operands.w_stride;
  params.row_scale = operands.row_scale;
  params.col_scale = operands.col_scale;
  params.bias = traits_of(problem.fusion).biased ? operands.bias : nullptr;
  params.m = static_cast<int>(problem.m);
  params.n = static_cast<int>(problem.n);
  params.k = static_cast<int>(problem.k);
  params.packed_n = static_cast<int>(packed_rows(problem.n));
  params.out_type = out_type(problem.out);
  params.tiles_m = shares.tiles_m;
  params.tiles_n = shares.tiles_n;
  params.raster_rows = raster_rows(row, shares, problem.k, device_.traits().l2_bytes);
  params.k_steps = shares.k_steps;
  params.whole_tiles = shares.whole_tiles;
  if (shares.shared_tiles() > 0) {
    params.partials =
        reinterpret_cast<int32_t*>(workspace(partials_, partial_bytes(row, shares.workers)));
    params.arrivals = counters(static_cast<size_t>(shares.shared_tiles() * row.teams));
  }

  // Groups of eight columns are stored whole, 16 bytes at a time. If rows do not allow that, the
  // outputs go through a buffer.
  const int64_t element = bits_of(problem.out) / 8;
  const int64_t columns = operands.out.shape[1];
  const int64_t group = output_columns(problem.fusion, kColumnGroup);
  // The stride of a single row says nothing.
  const int64_t out_stride = problem.m == 1 ? columns : operands.out.row_stride();
  const bool direct =
      columns % group == 0 &&
      is_aligned(operands.out.data, problem.m == 1 ? kAlignment : out_stride * element);
  params.out_streams = problem.m * columns * element > device_.traits().l2_bytes;
  params.out = operands.out.data;
  params.out_stride = out_stride;
  if (!direct) {
    params.out_stride = round_up(round_up(columns, group) * element, kAlignment) / element;
    params.out =
        workspace(aligned_out_, static_cast<size_t>(problem.m * params.out_stride * element));
  }

  start(row, problem, params, shares.workers);
  if (!direct) {
    check_cuda(
        cudaMemcpy2DAsync(operands.out.data, static_cast<size_t>(out_stride * element), params.out,
                          static_cast<size_t>(params.out_stride * element),
                          static_cast<size_t>(columns * element), static_cast<size_t>(problem.m),
                          cudaMemcpyDeviceToDevice, device_.stream()),
        "copying unaligned outputs");
  }
}

}  // namespace octet::cuda
