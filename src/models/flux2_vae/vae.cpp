// The decoder, in the order of its layers. Images are matrices with one row per pixel.
#include "models/flux2_vae/vae.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.h"
#include "models/flux2_vae/decode_plan.h"
#include "models/flux2_vae/strips.h"
#include "weights/stored_weight.h"

namespace octet::flux2_vae {
namespace {

using nn::Context;
using nn::Matrix;

struct Image {
  Matrix pixels;  // [height * width, channels]
  int64_t height, width;
};

void norm_into(Context& ctx, const VaeConfig& config, const Matrix& x, const Norm& norm, bool silu,
               const Matrix& out) {
  ctx.backend.group_norm(x, group_norm_of(config, norm, silu), out);
}

Matrix normed(Context& ctx, const VaeConfig& config, const Matrix& x, const Norm& norm, bool silu) {
  Matrix out = ctx.matrix(x.row_count(), x.column_count());
  norm_into(ctx, config, x, norm, silu, out);
  return out;
}

// silu(norm(x)) in the memory of x, which nobody needs any more.
Matrix activated(Context& ctx, const VaeConfig& config, Matrix x, const Norm& norm) {
  norm_into(ctx, config, x, norm, /*silu=*/true, x);
  return x;
}

// By value, so that the input is released as soon as the last layer has read it: images are what
// decoding takes memory for.
Image run_resnet(Context& ctx, const VaeConfig& config, const Resnet& w, Image x) {
  ctx.begin_layer();
  const auto conv = [&](const Matrix& pixels, const nn::Conv& kernel) {
    return conv2d(ctx, pixels, x.height, x.width, kernel);
  };
  // Before the rest where it is not x itself: then nothing else reads x after the first norm.
  const Matrix shortcut = w.has_shortcut ? conv(x.pixels, w.shortcut) : std::move(x.pixels);
  Matrix inner = conv(w.has_shortcut ? activated(ctx, config, std::move(x.pixels), w.norm1)
                                     : normed(ctx, config, shortcut, w.norm1, /*silu=*/true),
                      w.conv1);
  Matrix y = conv(activated(ctx, config, std::move(inner), w.norm2), w.conv2);
  ctx.backend.add(y, shortcut);
  return {std::move(y), x.height, x.width};
}

// x + attention over all pixels, one head.
void add_attention(Context& ctx, const VaeConfig& config, const MidAttention& w, const Image& x) {
  const Matrix mixed = [&] {
    std::optional<Matrix> y = normed(ctx, config, x.pixels, w.norm, false);
    const Matrix q = linear(ctx, *y, w.q), k = linear(ctx, *y, w.k), v = linear(ctx, *y, w.v);
    y.reset();
    Matrix made = ctx.matrix(v.row_count(), v.column_count());
    ctx.backend.attention({q, k, v, made, 1, 1});
    return made;
  }();
  ctx.backend.add(x.pixels, linear(ctx, mixed, w.out));
}

Image run_up_block(Context& ctx, const VaeConfig& config, const UpBlock& block, Image x) {
  for (const Resnet& resnet : block.resnets) x = run_resnet(ctx, config, resnet, std::move(x));
  if (!block.doubles) return x;
  return {conv2d_doubled(ctx, x.pixels, x.height, x.width, block.upsample), 2 * x.height,
          2 * x.width};
}

}  // namespace

UnsetVector<float> decode(Context& ctx, const VaeDecoder& vae, const Matrix& latent, int64_t height,
                          int64_t width, const std::function<void(double)>& progress) {
  const VaeConfig& config = vae.config;
  const DecodePlan plan(config, height, width, ctx.dtype);
  const size_t whole = plan.whole_blocks(ctx.image_bytes);
  // A block works on four times as many pixels as the one before it, with fewer channels.
  auto told = [&, done = 0.0,
               all = 1.0 + 2.0 * static_cast<double>(vae.up.size())](double work) mutable {
    done += work;
    if (!progress) return;
    ctx.backend.synchronize();
    progress(done / all);
  };
  const auto first = [&] {
    if (!config.post_quant_conv) return conv2d(ctx, latent, height, width, vae.conv_in);
    return conv2d(ctx, conv2d(ctx, latent, height, width, vae.post_quant), height, width,
                  vae.conv_in);
  };
  std::optional<Image> x(Image{first(), height, width});
  const auto next = [&](auto step) { x = step(*std::move(x)); };
  next([&](Image y) { return run_resnet(ctx, config, vae.mid1, std::move(y)); });
  if (config.mid_attention) add_attention(ctx, config, vae.mid_attention, *x);
  next([&](Image y) { return run_resnet(ctx, config, vae.mid2, std::move(y)); });
  told(1);
  for (size_t i = 0; i < std::min(whole, vae.up.size()); ++i) {
    next([&](Image y) { return run_up_block(ctx, config, vae.up[i], std::move(y)); });
    told(2);
  }
  if (whole > vae.up.size()) {
    const Matrix out = conv2d(ctx, activated(ctx, config, std::move(x->pixels), vae.norm_out),
                              x->height, x->width, vae.conv_out);
    UnsetVector<float> values(static_cast<size_t>(out.view().shape.elements()));
    download_matrix(ctx, out, values.data());
    return values;
  }
  Strips strips(ctx, config, ctx.image_bytes - plan.latent_bytes());
  HostImage waiting = strips.download(x->pixels, x->height, x->width);
  x.reset();
  for (size_t i = whole; i < vae.up.size(); ++i) {
    waiting = strips.run_up_block(vae.up[i], std::move(waiting));
    told(2);
  }
  return strips.run_out(vae.norm_out, vae.conv_out, waiting);
}

LatentStatistics stored_statistics(const Checkpoint& vae, const VaeConfig& config, DType dtype) {
  const int64_t channels = config.latent_channels * kPatch * kPatch;
  LatentStatistics statistics;
  statistics.shift.resize(static_cast<size_t>(channels));
  statistics.scale.resize(static_cast<size_t>(channels));
  weights::read_vector(vae, "bn.running_mean", {channels}, statistics.shift.data());
  weights::read_vector(vae, "bn.running_var", {channels}, statistics.scale.data());
  const auto rounded = [&](float x) {
    return dtype == DType::bf16 ? to_f32(from_f32<bf16_t>(x)) : x;
  };
  for (float& shift : statistics.shift) shift = rounded(shift);
  for (float& scale : statistics.scale) {
    check(scale >= 0, "{}: tensor \"bn.running_var\" holds {}, expected no negative number",
          vae.path(), scale);
    scale = rounded(std::sqrt(rounded(rounded(scale) + config.statistics_eps)));
  }
  return statistics;
}

std::vector<float> unpatchify(std::span<const float> z, const LatentStatistics& statistics,
                              int64_t grid_height, int64_t grid_width) {
  const auto of_token = static_cast<int64_t>(statistics.scale.size());
  const int64_t channels = of_token / (kPatch * kPatch);
  check(static_cast<int64_t>(z.size()) == grid_height * grid_width * of_token,
        "latent: {} numbers, expected {} x {} tokens of {} channels", z.size(), grid_height,
        grid_width, of_token);
  std::vector<float> pixels(z.size());
  for (int64_t token = 0; token < grid_height * grid_width; ++token) {
    const int64_t grid_y = token / grid_width, grid_x = token % grid_width;
    for (int64_t at = 0; at < of_token; ++at) {
      const int64_t patch = at / channels, c = at % channels;
      const int64_t y = kPatch * grid_y + patch / kPatch, x = kPatch * grid_x + patch % kPatch;
      const auto from = static_cast<size_t>(token * of_token + at);
      const auto to = static_cast<size_t>((y * kPatch * grid_width + x) * channels + c);
      const auto entry = static_cast<size_t>(at);
      pixels[to] = z[from] * statistics.scale[entry] + statistics.shift[entry];
    }
  }
  return pixels;
}

}  // namespace octet::flux2_vae
