#include "engine/preview.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/noise.h"
#include "engine/pixels.h"

namespace octet::engine {
namespace {

constexpr int64_t kPatches = 20;  // along a side: 400 samples for some 130 unknowns
constexpr int64_t kPatch = 2;     // tokens of one value, along a side: pictures are mostly smooth
constexpr uint64_t kSeed = 14;
// Relative to the samples: separates channels that the decoder cannot tell apart.
constexpr double kRidge = 0.05;

// Solves a x = b for a symmetric positive definite a [n, n] and b [n, 3], in place.
void solve(std::vector<double>& a, std::vector<double>& b, size_t n) {
  for (size_t i = 0; i < n; ++i) {  // Cholesky
    for (size_t j = 0; j <= i; ++j) {
      double sum = a[i * n + j];
      for (size_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = i == j ? std::sqrt(sum) : sum / a[j * n + j];
    }
  }
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t k = 0; k < i; ++k) b[i * 3 + c] -= a[i * n + k] * b[k * 3 + c];
      b[i * 3 + c] /= a[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
      for (size_t k = i + 1; k < n; ++k) b[i * 3 + c] -= a[k * n + i] * b[k * 3 + c];
      b[i * 3 + c] /= a[i * n + i];
    }
  }
}

}  // namespace

PreviewMap::PreviewMap(nn::Context& ctx, const models::Decoder& decoder) {
  const int64_t channels = decoder.latent_channels(), side = decoder.token_side();
  const models::Grid grid{kPatches * kPatch, kPatches * kPatch};
  const std::vector<float> values =
      make_noise(kSeed, /*image=*/0, static_cast<size_t>(kPatches * kPatches * channels));
  const auto patch_of = [&](int64_t token) {
    return token / grid.width / kPatch * kPatches + token % grid.width / kPatch;
  };
  std::vector<float> latent(static_cast<size_t>(grid.tokens() * channels));
  for (int64_t token = 0; token < grid.tokens(); ++token) {
    std::copy_n(values.begin() + patch_of(token) * channels, channels,
                latent.begin() + token * channels);
  }
  const UnsetVector<float> pixels = decoder.decode(ctx, latent, grid, {});

  // The mean colour of each patch.
  const int64_t width = grid.width * side, patch_side = kPatch * side;
  std::vector<double> colours(static_cast<size_t>(kPatches * kPatches * 3));
  for (int64_t at = 0; at < std::ssize(pixels); ++at) {
    const int64_t pixel = at / 3, y = pixel / width, x = pixel % width;
    const int64_t patch = y / patch_side * kPatches + x / patch_side;
    colours[static_cast<size_t>(patch * 3 + at % 3)] +=
        pixels[static_cast<size_t>(at)] / static_cast<double>(patch_side * patch_side);
  }

  const auto n = static_cast<size_t>(channels) + 1;
  std::vector<double> a(n * n), b(n * 3);
  for (int64_t patch = 0; patch < kPatches * kPatches; ++patch) {
    std::vector<double> row(values.begin() + patch * channels,
                            values.begin() + (patch + 1) * channels);
    row.push_back(1);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) a[i * n + j] += row[i] * row[j];
      for (size_t c = 0; c < 3; ++c) {
        b[i * 3 + c] += row[i] * colours[static_cast<size_t>(patch) * 3 + c];
      }
    }
  }
  for (size_t i = 0; i < n; ++i) a[i * n + i] += kRidge * kPatches * kPatches;
  solve(a, b, n);
  weights_.assign(b.begin(), b.end());
}

std::vector<uint8_t> PreviewMap::rgb(std::span<const float> latent, ThreadPool* pool) const {
  constexpr size_t kAtOnce = 256;
  const size_t channels = weights_.size() / 3 - 1;
  check(latent.size() % channels == 0, "preview: a latent of {} numbers, expected rows of {}",
        latent.size(), channels);
  const size_t tokens = latent.size() / channels;
  std::vector<float> colours(3 * tokens);
  for_ranges(pool, tokens, kAtOnce, [&](size_t first, size_t count) {
    for (size_t token = first; token < first + count; ++token) {
      for (size_t c = 0; c < 3; ++c) {
        float sum = weights_[channels * 3 + c];
        for (size_t i = 0; i < channels; ++i) {
          sum += latent[token * channels + i] * weights_[i * 3 + c];
        }
        colours[3 * token + c] = sum;
      }
    }
  });
  return to_bytes(colours);
}

}  // namespace octet::engine
