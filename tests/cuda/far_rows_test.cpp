// Rows gigabytes apart: offsets that no 32 bits hold, in all ops on rows and images.
#include "backend/model_run.h"
#include "cuda/cuda_support.h"

namespace octet::test::model {
namespace {

using CudaFarRows = OnGpu;

constexpr int64_t kRows = 4, kChannels = 64;
constexpr int64_t kStride = (int64_t{1} << 30) + 8;  // 2 GB of BF16

// A matrix with far rows in the device's memory; a GPU that is too small for it gives none.
class FarMatrix {
 public:
  explicit FarMatrix(Backend& backend) : backend_(backend) {
    try {
      memory_ = backend.allocate(static_cast<size_t>(((kRows - 1) * kStride + kChannels) * 2));
    } catch (const Error&) {
    }
  }
  bool exists() const { return static_cast<bool>(memory_); }
  TensorView view() const {
    return TensorView::rows(memory_.data(), DType::bf16, kRows, kChannels, kStride);
  }
  void upload(GuardedMatrix& host) {
    for (int64_t i = 0; i < kRows; ++i) {
      backend_.copy_to_device(reinterpret_cast<std::byte*>(view().row<bf16_t>(i)),
                              reinterpret_cast<const std::byte*>(host.view().row<bf16_t>(i)),
                              2 * kChannels);
    }
  }
  GuardedMatrix download() {
    GuardedMatrix host(DType::bf16, kRows, kChannels);
    for (int64_t i = 0; i < kRows; ++i) {
      backend_.copy_to_host(reinterpret_cast<std::byte*>(host.view().row<bf16_t>(i)),
                            reinterpret_cast<const std::byte*>(view().row<bf16_t>(i)),
                            2 * kChannels);
    }
    return host;
  }

 private:
  Backend& backend_;
  Buffer memory_;
};

// The same op on rows side by side gives the same results but for the order of sums.
TEST_F(CudaFarRows, EqualRowsSideBySide) {
  const auto backend = make_gpu();
  FarMatrix far(*backend), out(*backend);
  if (!far.exists() || !out.exists()) GTEST_SKIP() << "skipped, because it takes 13 GB";
  std::mt19937 random(51);
  GuardedMatrix x = random_matrix(DType::bf16, kRows, kChannels, random);
  GuardedMatrix weight = random_vector(DType::f32, kChannels, random, 0.3f, 1);
  GuardedMatrix gates = random_vector(DType::bf16, kChannels, random);
  GuardedMatrix cos = random_matrix(DType::f32, kRows, 16, random, 1, 0, 0);
  const Operand near(*backend, x), device_weight(*backend, weight), device_cos(*backend, cos),
      gate(*backend, gates);
  const TensorView vector = device_weight.vector();
  const RowNorm norm{.eps = 1e-6f, .weight = vector};
  const GroupNorm group{.groups = 4, .eps = 1e-6f, .weight = vector, .bias = vector, .silu = true};
  const TensorView head(vector.data, DType::f32, {32});
  const HeadRotation rotation{2, 1e-6f, head, device_cos.view(), device_cos.view()};

  const Buffer codes = backend->allocate(kRows * kChannels);
  const Buffer scales = backend->allocate(kRows * sizeof(float));
  const QTensor quantized{codes.view(DType::i8, {kRows, kChannels}),
                          scales.view(DType::f32, {kRows})};

  // In place ops change the output, which begins as x.
  using Op = std::function<void(const ConstTensorView& from, const TensorView& to)>;
  const std::pair<const char*, Op> ops[] = {
      {"norm", [&](const auto& from, const auto& to) { backend->norm(from, norm, to); }},
      {"add_gated", [&](const auto& from,
                        const auto& to) { backend->add_gated(to, from, norm, gate.vector()); }},
      {"add_gated_norm_quantize",
       [&](const auto& from, const auto& to) {
         backend->add_gated_norm_quantize(to, from, norm, gate.vector(), norm, {}, quantized);
       }},
      {"rotate_heads", [&](const auto&, const auto& to) { backend->rotate_heads(to, rotation); }},
      {"swiglu", [&](const auto& from, const auto& to) { backend->swiglu(from, from, to); }},
      {"add", [&](const auto& from, const auto& to) { backend->add(to, from); }},
      {"group_norm",
       [&](const auto& from, const auto& to) { backend->group_norm(from, group, to); }},
      {"embed",
       [&](const auto& from, const auto& to) {
         const int32_t rows[] = {3, 1, 0, 2};
         backend->embed(from, rows, to);
       }},
  };
  for (const auto& [name, op] : ops) {
    SCOPED_TRACE(name);
    GuardedMatrix got_near = x;
    Operand near_out(*backend, got_near);
    op(near.view(), near_out.view());
    near_out.download();
    far.upload(x);
    out.upload(x);
    op(far.view(), out.view());
    GuardedMatrix got = out.download(), want = widened(got_near);
    expect_close(got.view(), want.view(), [&](int64_t i, int64_t j) {
      return 0x1p-7 * std::fabs(read_element(want.view(), i, j));  // one rounding the other way
    });
  }
}

}  // namespace
}  // namespace octet::test::model
