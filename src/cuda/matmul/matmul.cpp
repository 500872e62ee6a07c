#include "cuda/matmul/matmul.h"

#include "base/log.h"
#include "cuda/check.h"
#include "cuda/matmul/plain_matmul.h"

namespace octet::cuda {

CublasLt* Matmul::library() {
  if (!library_ && CublasLt::unavailable().empty()) library_.emplace(device_);
  return library_ ? &*library_ : nullptr;
}

void Matmul::run(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
                 const ConstTensorView& bias) {
  // What the library knows nothing of: products without a k.
  CublasLt* lt = a.shape[1] > 0 ? library() : nullptr;
  // The library's own bias (its epilogue) is added after the sum was rounded to bf16. A product
  // that is added to what out holds is rounded once; that out is written and read once more costs
  // little.
  std::function<void()> fill;
  if (bias.data != nullptr) {
    fill = [&] {
      launch_fill_rows(bias, out, device_.stream());
      check_launch("filling rows with a bias");
    };
  }
  if (lt != nullptr && lt->matmul(a, b, out, fill)) return;
  if (lt != nullptr) {
    log::debug("matmul: cuBLASLt takes no {} x {} -> {}; a plain kernel runs, which is slow",
               a.to_string(), b.to_string(), out.to_string());
  }
  if (lt == nullptr && a.shape[1] > 0 && !told_of_missing_library_) {
    told_of_missing_library_ = true;
    log::warning("matmul: {}; a plain kernel is used, which is slow", CublasLt::unavailable());
  }
  launch_plain_matmul(a, b, out, bias, device_.stream());
  check_launch("matmul");
}

}  // namespace octet::cuda
