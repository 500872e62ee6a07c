#include "ref/ref_backend.h"

#include "backend/host_backend.h"
#include "base/error.h"
#include "ref/ops.h"

namespace octet {
namespace {

constexpr const char* kLayout = "ref_rows";  // int8 [n, k] as it came

class RefBackend final : public HostBackend {
 public:
  std::string name() const override { return "ref"; }
  int threads() const override { return 1; }
  std::string description() const override { return "plain loops on one CPU thread"; }

  GemmPlan plan_gemm(const GemmProblem&) override { return {.kernel = "ref"}; }
  double int8_ceiling() override { return 0; }

 protected:
  void do_quantize_rows(const ConstTensorView& x, const ActivationTransform& transform,
                        const QTensor& out) override {
    ref::quantize_rows(x, transform, out);
  }

  void do_dequantize_rows(const QTensor& q, const TensorView& out) override {
    ref::dequantize_rows(q, out);
  }

  void do_pack(const QTensor& weight, QWeight& packed) override {
    packed.layout = kLayout;
    packed.values = allocate(static_cast<size_t>(packed.n * packed.k));
    auto* to = reinterpret_cast<int8_t*>(packed.values.data());
    for (int64_t row = 0; row < packed.n; ++row) {
      const int8_t* from = weight.values.row<int8_t>(row);
      for (int64_t j = 0; j < packed.k; ++j) to[row * packed.k + j] = from[j];
    }
  }

  std::string_view do_gemm(const GemmProblem& problem, const GemmArgs& args) override {
    check(problem.layout == kLayout,
          "gemm: ref cannot read a weight packed as {}; pack it with ref", problem.layout);
    ref::gemm(problem, args);
    return "ref";
  }

  void do_matmul(const ConstTensorView& a, const ConstTensorView& b,
                 const TensorView& out) override {
    ref::matmul(a, b, out);
  }
};

}  // namespace

std::unique_ptr<Backend> make_ref_backend() { return std::make_unique<RefBackend>(); }

}  // namespace octet
