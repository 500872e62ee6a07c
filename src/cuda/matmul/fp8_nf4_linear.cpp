#include "cuda/matmul/fp8_nf4_linear.h"

#include <string>

#include "base/error.h"
#include "base/log.h"
#include "cuda/check.h"
#include "cuda/rows/peer_kernels.h"

namespace octet::cuda {
namespace {

// Errors of the product of random operands with a few large channels: with both factors rounded to
// 3 bits of mantissa about 4 percent, with 16 codes for a weight about 10. In bf16 it is 0.2.
constexpr double kFp8LeastError = 0.01, kFp8MostError = 0.08;
constexpr double kNf4LeastError = 0.02, kNf4MostError = 0.2;

uint8_t* code_bytes(const Buffer& buffer) { return reinterpret_cast<uint8_t*>(buffer.data()); }
float* factors_of(const Buffer& buffer) { return reinterpret_cast<float*>(buffer.data()); }

// Activations are quantized in each run; the library multiplies codes and applies scales.
class Fp8Linear {
 public:
  Fp8Linear(Device& device, CublasLt& library, const ConstTensorView& weight, int64_t rows,
            bool by_rows)
      : device_(device),
        library_(library),
        n_(weight.shape[0]),
        k_(weight.shape[1]),
        by_rows_(by_rows),
        weight_(device.allocate(static_cast<size_t>(n_ * k_))),
        weight_scales_(device.allocate(static_cast<size_t>(n_) * sizeof(float))),
        codes_(device.allocate(static_cast<size_t>(rows * k_))),
        scales_(device.allocate(static_cast<size_t>(rows) * sizeof(float))),
        amax_(device.allocate(sizeof(float))) {
    quantize(weight, weight_, weight_scales_);
  }

  // False if the library has no such product.
  bool run(const ConstTensorView& x, const TensorView& out) {
    quantize(x, codes_, scales_);
    const int64_t m = x.shape[0];
    return library_.matmul_fp8(
        TensorView(codes_.data(), DType::f8_e4m3, {m, k_}),
        TensorView(weight_.data(), DType::f8_e4m3, {n_, k_}),
        {.a = factors_of(scales_), .b = factors_of(weight_scales_), .by_rows = by_rows_}, out);
  }

 private:
  void quantize(const ConstTensorView& x, const Buffer& codes, const Buffer& scales) {
    if (by_rows_) {
      launch_quantize_fp8_rows(x, code_bytes(codes), factors_of(scales), device_.stream());
    } else {
      launch_quantize_fp8_tensor(x, code_bytes(codes), factors_of(scales), factors_of(amax_),
                                 device_.stream());
    }
    check_launch("quantizing to FP8");
  }

  Device& device_;
  CublasLt& library_;
  int64_t n_, k_;
  bool by_rows_;
  Buffer weight_, weight_scales_;  // [n, k], [n]
  Buffer codes_, scales_;          // of activations
  Buffer amax_;
};

// The whole weight is dequantized in each run, then multiplied in bf16.
class Nf4Linear {
 public:
  Nf4Linear(Device& device, Matmul& matmul, const ConstTensorView& weight)
      : device_(device),
        matmul_(matmul),
        n_(weight.shape[0]),
        k_(weight.shape[1]),
        codes_(device.allocate(static_cast<size_t>(n_ * k_ / 2))),
        absmax_(device.allocate(static_cast<size_t>(n_ * k_ / kNf4Block) * sizeof(float))),
        dequantized_(device.allocate(bytes_of(DType::bf16, {n_, k_}))) {
    launch_quantize_nf4(weight.as<bf16_t>(), code_bytes(codes_), factors_of(absmax_), n_ * k_,
                        device.stream());
    check_launch("quantizing to NF4");
  }

  void run(const ConstTensorView& x, const TensorView& out) {
    auto* values = reinterpret_cast<bf16_t*>(dequantized_.data());
    launch_dequantize_nf4(code_bytes(codes_), factors_of(absmax_), values, n_ * k_,
                          device_.stream());
    check_launch("dequantizing NF4");
    matmul_.run(x, dequantized_.view(DType::bf16, {n_, k_}), out, {});
  }

 private:
  Device& device_;
  Matmul& matmul_;
  int64_t n_, k_;
  Buffer codes_, absmax_, dequantized_;
};

// With a scale for each row if GPU and library have such a product, otherwise with one for all.
std::shared_ptr<Fp8Linear> fp8_linear(Device& device, CublasLt& library,
                                      const ConstTensorView& weight, int64_t rows, bool by_rows) {
  auto linear = std::make_shared<Fp8Linear>(device, library, weight, rows, by_rows);
  // The result is discarded: only a try shows whether there is an algorithm.
  const Buffer x = device.allocate(bytes_of(DType::bf16, {rows, weight.shape[1]}));
  check_cuda(cudaMemsetAsync(x.data(), 0, x.bytes(), device.stream()), "clearing");
  const Buffer out = device.allocate(bytes_of(DType::bf16, {rows, weight.shape[0]}));
  const bool runs = linear->run(x.view(DType::bf16, {rows, weight.shape[1]}),
                                out.view(DType::bf16, {rows, weight.shape[0]}));
  return runs ? linear : nullptr;
}

}  // namespace

std::vector<LinearPeer> make_linear_peers(Device& device, Matmul& matmul,
                                          const ConstTensorView& weight, int64_t rows) {
  constexpr int kFirstWithFp8 = 89;
  const Active active(device.traits().index);
  std::vector<LinearPeer> peers;
  const int64_t n = weight.shape[0], k = weight.shape[1];
  CublasLt* library = matmul.library();
  if (device.traits().architecture() < kFirstWithFp8) {
    log::debug("no FP8 on {}: its tensor cores have none", device.traits().name);
  } else if (library != nullptr && k % 16 == 0 && n % 16 == 0 && k <= kMostFp8Columns) {
    bool by_rows = true;
    auto linear = fp8_linear(device, *library, weight, rows, by_rows);
    if (!linear) {
      by_rows = false;
      linear = fp8_linear(device, *library, weight, rows, by_rows);
    }
    if (linear) {
      peers.push_back({.name = "fp8",
                       .how = fmt::format(
                           "quantize to E4M3 with {}, multiply with cuBLASLt and fast accumulation",
                           by_rows ? "a scale for each row" : "one scale"),
                       .least_error = kFp8LeastError,
                       .most_error = kFp8MostError,
                       .run = [linear, n, k](const ConstTensorView& x, const TensorView& out) {
                         check(linear->run(x, out),
                               "cublasLt has no FP8 algorithm for m={} n={} k={}", x.shape[0], n,
                               k);
                       }});
    } else {
      log::debug("cublasLt has no FP8 algorithm for m={} n={} k={}", rows, n, k);
    }
  }
  if (k % kNf4Block == 0 && library != nullptr) {
    auto linear = std::make_shared<Nf4Linear>(device, matmul, weight);
    peers.push_back({.name = "nf4",
                     .how = "dequantize the weight from NF4, multiply in bf16 with cuBLASLt",
                     .least_error = kNf4LeastError,
                     .most_error = kNf4MostError,
                     .run = [linear](const ConstTensorView& x, const TensorView& out) {
                       linear->run(x, out);
                     }});
  }
  for (LinearPeer& peer : peers) {
    peer.run = [&device, run = std::move(peer.run)](const ConstTensorView& x,
                                                    const TensorView& out) {
      const Active active_now(device.traits().index);
      run(x, out);
    };
  }
  return peers;
}

}  // namespace octet::cuda
