#include "cuda/attention/flash.h"

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "cuda/check.h"

namespace octet::cuda {
namespace {

int64_t stride_bytes(const ConstTensorView& view) { return view.row_stride() * 2; }

bool is_aligned(const ConstTensorView& view) {
  const bool one_row = view.shape[0] == 1;
  return reinterpret_cast<uintptr_t>(view.data) % 16 == 0 &&
         (one_row || stride_bytes(view) % 16 == 0);
}

}  // namespace

std::string FlashKernel::name() const {
  return fmt::format("flash_{}_{}x{}_s{}", tile.head_dim, tile.rows, tile.keys, tile.stages);
}

const FlashKernel& find_flash(std::string_view name) {
  std::string names;
  for (const FlashKernel& kernel : flash_kernels()) {
    if (kernel.name() == name) return kernel;
    names += kernel.name() + ", ";
  }
  fail("attention: there is no kernel {}; expected one of {}{}", name, names, kUnfused);
}

std::string FlashKernel::refusal(const AttentionArgs& args, int shared_bytes_per_block) const {
  if (args.q.dtype != DType::bf16) return "it multiplies BF16";
  if (args.head_dim() % 8 != 0) return "it takes heads of multiples of 8 channels";
  if (args.head_dim() > tile.head_dim) return "its heads are smaller";
  for (const ConstTensorView& view : {args.q, args.k, args.v, ConstTensorView(args.out)}) {
    if (!is_aligned(view)) return "it wants rows at multiples of 16 bytes";
  }
  constexpr int64_t kMost = int64_t{1} << 30, kMostHeads = 65535;
  if (args.rows() > kMost || args.keys() > kMost || args.heads > kMostHeads) {
    return "it takes no more than 2^30 rows and keys and 65535 heads";
  }
  if (tile.shared_bytes() > shared_bytes_per_block) {
    return fmt::format("it needs {} bytes of shared memory, there are {}", tile.shared_bytes(),
                       shared_bytes_per_block);
  }
  return "";
}

void FlashKernel::launch(const AttentionArgs& args, CUstream_st* stream) const {
  FlashParams params{};
  params.q = args.q.data, params.q_stride = stride_bytes(args.q);
  params.k = args.k.data, params.k_stride = stride_bytes(args.k);
  params.v = args.v.data, params.v_stride = stride_bytes(args.v);
  params.out = args.out.data, params.out_stride = stride_bytes(args.out);
  params.rows = static_cast<int>(args.rows());
  params.keys = static_cast<int>(args.keys());
  params.head_bytes = static_cast<int>(args.head_dim() * 2);
  params.sharing = static_cast<int>(args.heads / args.kv_heads);
  params.scale_log2 =
      static_cast<float>(std::numbers::log2e / std::sqrt(static_cast<double>(args.head_dim())));
  params.causal = args.causal;
  check_cuda(
      cudaFuncSetAttribute(code, cudaFuncAttributeMaxDynamicSharedMemorySize, tile.shared_bytes()),
      "setting up " + name());
  // Blocks of one head run at about the same time: its keys and values stay in the L2.
  const dim3 grid(static_cast<unsigned>((params.rows + tile.rows - 1) / tile.rows),
                  static_cast<unsigned>(args.heads));
  void* arguments[] = {&params};
  check_cuda(cudaLaunchKernel(code, grid, dim3(static_cast<unsigned>(tile.threads())), arguments,
                              static_cast<size_t>(tile.shared_bytes()), stream),
             name());
}

}  // namespace octet::cuda
