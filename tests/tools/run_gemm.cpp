// run_gemm IN.safetensors OUT.safetensors [KERNEL]: multiplies a (I8 [m, k]) by b (I8 [n, k])
// transposed with the CPU backend and writes the accumulator acc (I32 [m, n]). If IN has x (F32 or
// BF16 [m, k]), also its row quantization q (I8 [m, k]) and scale (F32 [m]). For comparisons with
// other libraries from Python.
#include <vector>

#include "base/error.h"
#include "cpu/cpu_backend.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"
#include "formats/tensor_view.h"
#include "tools/tools.h"

namespace octet::test {
namespace {

QTensor with_scales(const SafetensorsFile& file, const std::string& name,
                    std::vector<float>& scales) {
  const ConstTensorView view = view_of(file, name);
  scales.assign(static_cast<size_t>(view.shape[0]), 1.0f);
  // The file is mapped read-only; a QTensor is also used for outputs and hence not const.
  auto* data = const_cast<std::byte*>(view.data);
  return {TensorView(data, view.dtype, view.shape),
          TensorView(reinterpret_cast<std::byte*>(scales.data()), DType::f32, {view.shape[0]})};
}

}  // namespace

void run_gemm(const Words& words) {
  check(words.size() == 2 || words.size() == 3, "usage: run_gemm IN OUT [KERNEL]");
  const std::string kernel = words.size() == 3 ? words[2] : "";
  const SafetensorsFile file(words[0]);
  const auto backend = make_cpu_backend({.threads = 0, .force_kernel = kernel});
  std::vector<float> row_scale, col_scale;
  const QTensor a = with_scales(file, "a", row_scale);
  const QTensor b = with_scales(file, "b", col_scale);
  const QWeight packed = backend->pack(b, {}, {});
  const int64_t m = a.rows(), n = b.rows(), k = a.k();
  const Buffer acc = allocate_host(bytes_of(DType::i32, {m, n}));
  backend->gemm({a, &packed, acc.view(DType::i32, {m, n})}, Fusion::none);
  const Buffer q = allocate_host(bytes_of(DType::i8, {m, k}));
  const Buffer scale = allocate_host(bytes_of(DType::f32, {m}));
  std::vector<TensorDeclaration> tensors = {{"acc", DType::i32, {m, n}}};
  if (file.find("x") != nullptr) {
    backend->quantize_rows(view_of(file, "x"), {},
                           {q.view(DType::i8, {m, k}), scale.view(DType::f32, {m})});
    tensors.push_back({"q", DType::i8, {m, k}});
    tensors.push_back({"scale", DType::f32, {m}});
  }
  SafetensorsWriter writer(words[1], tensors);
  for (const TensorInfo& tensor : writer.layout()) {
    const Buffer& from = tensor.name == "acc" ? acc : tensor.name == "q" ? q : scale;
    writer.write(tensor.name, {from.data(), tensor.bytes()});
  }
  writer.commit();
}

}  // namespace octet::test
