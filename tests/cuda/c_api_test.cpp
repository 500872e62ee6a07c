// The operations of octet/octet.h on pointers into a GPU's memory: the bits of `ref`.
#include <algorithm>

#include "cuda/cuda_support.h"
#include "octet/octet.h"

namespace octet::test {
namespace {

using CApiOnGpu = OnGpu;

constexpr int64_t kM = 70, kN = 96, kK = 128;

// A vector in the memory of a backend, which is another than the one that the interface opens.
template <class T>
class There {
 public:
  There(Backend& backend, const std::vector<T>& values)
      : backend_(backend), memory_(backend.allocate(values.size() * sizeof(T))), values_(values) {
    backend.copy_to_device(memory_.data(), reinterpret_cast<const std::byte*>(values.data()),
                           values.size() * sizeof(T));
    backend.synchronize();
  }
  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  octet_matrix matrix(octet_dtype dtype, int64_t rows, int64_t columns) const {
    return {.data = data(), .rows = rows, .columns = columns, .dtype = dtype};
  }
  const std::vector<T>& back() {
    backend_.copy_to_host(reinterpret_cast<std::byte*>(values_.data()), memory_.data(),
                          values_.size() * sizeof(T));
    return values_;
  }

 private:
  Backend& backend_;
  Buffer memory_;
  std::vector<T> values_;
};

// Codes, scales and outputs, from floating point and from the codes, of a weight with a bias.
struct Results {
  std::vector<int8_t> codes;
  std::vector<float> scales, y, y_of_codes;
  bool operator==(const Results&) const = default;
};

Results run_on(const char* name, Backend& memory, bool weight_on_host) {
  std::mt19937 random(5);
  std::vector<float> x(kM * kK), scales(kN), bias(kN), smooth(kK);
  std::vector<int8_t> rows(kN * kK);
  for (float& value : x) value = static_cast<float>(random() % 2001) * 0.01f - 10.0f;
  for (int8_t& value : rows) value = static_cast<int8_t>(random());
  for (float& value : scales) value = static_cast<float>(random() % 100 + 1) * 0.001f;
  for (float& value : bias) value = static_cast<float>(random() % 100) * 0.1f;
  for (float& value : smooth) value = static_cast<float>(random() % 30 + 1) * 0.1f;

  octet_device* device = nullptr;
  EXPECT_EQ(octet_device_open(name, nullptr, 0, OCTET_TUNE_OFF, &device), OCTET_OK)
      << octet_last_error();
  const There<int8_t> rows_there(memory, rows);
  const There<float> scales_there(memory, scales), bias_there(memory, bias);
  const There<float> smooth_there(memory, smooth), x_there(memory, x);
  octet_weight_rows given = octet_weight_rows_init();
  given.codes = weight_on_host ? rows.data() : rows_there.data();
  given.scales = weight_on_host ? scales.data() : scales_there.data();
  given.bias = weight_on_host ? bias.data() : bias_there.data();
  given.smooth = weight_on_host ? smooth.data() : smooth_there.data();
  given.n = kN;
  given.k = kK;
  given.on_host = weight_on_host ? 1 : 0;
  octet_weight* weight = nullptr;
  EXPECT_EQ(octet_weight_create(device, &given, &weight), OCTET_OK) << octet_last_error();

  There<int8_t> codes(memory, std::vector<int8_t>(kM * kK));
  There<float> code_scales(memory, std::vector<float>(kM));
  There<float> y(memory, std::vector<float>(kM * kN)), y_of_codes(memory, y.back());
  const octet_matrix from = x_there.matrix(OCTET_F32, kM, kK);
  const octet_matrix quantized = codes.matrix(OCTET_I8, kM, kK);
  const octet_matrix to = y.matrix(OCTET_F32, kM, kN);
  const octet_matrix to_of_codes = y_of_codes.matrix(OCTET_F32, kM, kN);
  EXPECT_EQ(
      octet_quantize_rows(device, &from, smooth_there.data(), 0, &quantized, code_scales.data()),
      OCTET_OK);
  EXPECT_EQ(octet_linear(device, weight, &from, OCTET_FUSION_BIAS, &to), OCTET_OK);
  EXPECT_EQ(octet_linear_int8(device, weight, &quantized, code_scales.data(), OCTET_FUSION_BIAS,
                              &to_of_codes),
            OCTET_OK);
  EXPECT_EQ(octet_device_synchronize(device), OCTET_OK) << octet_last_error();
  // The weight's memory is of the device's stream, which it keeps.
  octet_device_free(device);
  octet_weight_free(weight);
  return {codes.back(), code_scales.back(), y.back(), y_of_codes.back()};
}

TEST_F(CApiOnGpu, GivesTheBitsOfRef) {
  const auto ref = make_ref_backend();
  const Results expected = run_on("ref", *ref, true);
  EXPECT_EQ(expected.y, expected.y_of_codes);
  const auto gpu = make_gpu();
  EXPECT_EQ(run_on("cuda:0", *gpu, false), expected);
  EXPECT_EQ(run_on("cuda:0", *gpu, true), expected);
}

}  // namespace
}  // namespace octet::test
