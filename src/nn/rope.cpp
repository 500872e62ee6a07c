#include "nn/rope.h"

#include <cmath>
#include <tuple>
#include <unordered_map>

namespace octet::nn {
namespace {

void upload(Backend& backend, const std::vector<float>& values, const Matrix& into) {
  backend.copy_to_device(into.view().data, reinterpret_cast<const std::byte*>(values.data()),
                         values.size() * sizeof(float));
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

// Tokens of a picture share their rows and columns: of 4096 positions on an axis 64 are distinct,
// and only for these a cosine and a sine are worked out.
Rotary make_rotary(Backend& backend, const std::vector<Position>& positions,
                   const std::vector<float>& frequencies, const std::vector<int>& axes) {
  const size_t half = frequencies.size();
  const auto rows = static_cast<int64_t>(positions.size());
  const auto columns = static_cast<int64_t>(half);
  Rotary rotary{{backend, DType::f32, rows, columns}, {backend, DType::f32, rows, columns}};
  if (!backend.keeps_values()) return rotary;
  std::vector<float> cosines(positions.size() * half), sines(positions.size() * half);
  for (size_t axis = 0; axis < std::tuple_size_v<Position>; ++axis) {
    std::unordered_map<float, size_t> first_row;  // that has this position
    for (size_t row = 0; row < positions.size(); ++row) {
      const float position = positions[row][axis];
      const size_t known = first_row.try_emplace(position, row).first->second;
      for (size_t i = 0; i < half; ++i) {
        if (static_cast<size_t>(axes[i]) != axis) continue;
        const size_t at = row * half + i;
        if (known < row) {
          cosines[at] = cosines[known * half + i];
          sines[at] = sines[known * half + i];
          continue;
        }
        const float angle = frequencies[i] * position;
        cosines[at] = static_cast<float>(std::cos(static_cast<double>(angle)));
        sines[at] = static_cast<float>(std::sin(static_cast<double>(angle)));
      }
    }
  }
  upload(backend, cosines, rotary.cos);
  upload(backend, sines, rotary.sin);
  return rotary;
}

}  // namespace octet::nn
