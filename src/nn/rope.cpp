#include "nn/rope.h"

#include <cmath>

namespace octet::nn {
namespace {

Matrix upload(Backend& backend, const std::vector<float>& values, int64_t rows, int64_t columns) {
  Matrix matrix(backend, DType::f32, rows, columns);
  backend.copy_to_device(matrix.view().data, reinterpret_cast<const std::byte*>(values.data()),
                         values.size() * sizeof(float));
  return matrix;
}

}  // namespace

std::vector<float> rotary_frequencies(double theta, int64_t head_dim) {
  std::vector<float> frequencies;
  for (int64_t i = 0; i < head_dim; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(head_dim);
    frequencies.push_back(1.0f / static_cast<float>(std::pow(theta, exponent)));
  }
  return frequencies;
}

Rotary make_rotary(Backend& backend, const std::vector<Position>& positions,
                   const std::vector<float>& frequencies, const std::vector<int>& axes) {
  const size_t half = frequencies.size();
  std::vector<float> cosines(positions.size() * half), sines(positions.size() * half);
  for (size_t row = 0; row < positions.size(); ++row) {
    for (size_t i = 0; i < half; ++i) {
      const float angle = frequencies[i] * positions[row][static_cast<size_t>(axes[i])];
      cosines[row * half + i] = static_cast<float>(std::cos(static_cast<double>(angle)));
      sines[row * half + i] = static_cast<float>(std::sin(static_cast<double>(angle)));
    }
  }
  const auto rows = static_cast<int64_t>(positions.size());
  const auto columns = static_cast<int64_t>(half);
  return {upload(backend, cosines, rows, columns), upload(backend, sines, rows, columns)};
}

}  // namespace octet::nn
