#include "models/flux2_vae/strips.h"

#include <algorithm>
#include <utility>

#include "base/ranges.h"

namespace octet::flux2_vae {

uint64_t StripPass::bytes(int64_t pixels) const {
  int64_t reached = 0;
  for (int64_t first = 0; first < shape.pixels(); first += pixels) {
    const int64_t count = std::min(pixels, shape.pixels() - first);
    reached = std::max(reached, shape.reach({first, count}).count);
  }
  const int64_t made = std::min(pixels, shape.pixels()) * shape.out_channels;
  return bytes_of(shape.dtype, {reached * shape.channels + (adds ? 2 : 1) * made});
}

int64_t StripPass::pixels_within(uint64_t room) const {
  for (const bool exact : {true, false}) {
    const int64_t least = least_pixels(exact);
    if (bytes(least) > room) continue;
    int64_t pixels = least;
    while (pixels < shape.pixels() && bytes(pixels + least) <= room) pixels += least;
    return pixels;
  }
  return least_pixels(false);
}

HostImage Strips::empty(int64_t height, int64_t width, int64_t channels) {
  const int64_t pixels = height * width;
  return {.pixels = allocate_host(bytes_of(ctx_.dtype, {pixels, channels})),
          .height = height,
          .width = width,
          .channels = channels,
          .sums = ctx_.backend.begin_group_sums(ctx_.dtype, pixels, channels)};
}

HostImage Strips::download(const nn::Matrix& pixels, int64_t height, int64_t width) {
  HostImage made = empty(height, width, pixels.column_count());
  ctx_.backend.add_group_sums(made.sums, pixels);
  ctx_.backend.copy_to_host(made.pixels.data(), pixels.view().data, made.pixels.bytes());
  return made;
}

void Strips::upload(const HostImage& x, int64_t first, const TensorView& to) {
  const size_t pixel = bytes_of(ctx_.dtype, {x.channels});
  ctx_.backend.copy_to_device(to.data, x.pixels.data() + static_cast<size_t>(first) * pixel,
                              bytes_of(ctx_.dtype, to.shape));
}

HostImage Strips::convolved(const HostImage& x, const Norm* norm, const nn::Conv& conv,
                            bool doubled, const HostImage* added) {
  const int64_t scale = doubled ? 2 : 1, channels = conv.matrix.n;
  const StripPass pass{.shape = {.height = scale * x.height,
                                 .width = scale * x.width,
                                 .channels = x.channels,
                                 .out_channels = channels,
                                 .kernel = conv.kernel,
                                 .doubled = doubled,
                                 .dtype = ctx_.dtype},
                       .adds = added != nullptr};
  const ConvShape& shape = pass.shape;
  HostImage made = empty(shape.height, shape.width, channels);
  const int64_t at_once = pass.pixels_within(room_);
  const Buffer memory = ctx_.backend.allocate(pass.bytes(at_once));
  for (int64_t first = 0; first < shape.pixels(); first += at_once) {
    ctx_.begin_layer();
    const int64_t count = std::min(at_once, shape.pixels() - first);
    const PixelRange reach = shape.reach({first, count});
    std::byte* at = memory.data();
    const auto next = [&](int64_t rows, int64_t columns) {
      const TensorView view(at, ctx_.dtype, {rows, columns});
      at += bytes_of(ctx_.dtype, view.shape);
      return view;
    };
    const TensorView in = next(reach.count, x.channels), out = next(count, channels);
    upload(x, reach.first, in);
    if (norm != nullptr) {
      GroupNorm how = group_norm_of(config_, *norm, /*silu=*/true);
      how.image = &x.sums;
      ctx_.backend.group_norm(in, how, in);
    }
    conv2d_strip(ctx_, in, shape, conv, {.first = first, .x_first = reach.first}, out);
    if (added != nullptr) {
      const TensorView addends = next(count, channels);
      upload(*added, first, addends);
      ctx_.backend.add(out, addends);
    }
    ctx_.backend.add_group_sums(made.sums, out);
    const size_t pixel = bytes_of(ctx_.dtype, {channels});
    ctx_.backend.copy_to_host(made.pixels.data() + static_cast<size_t>(first) * pixel, out.data,
                              bytes_of(ctx_.dtype, out.shape));
  }
  return made;
}

// As the whole image's run_resnet().
HostImage Strips::run_resnet(const Resnet& w, HostImage x) {
  HostImage shortcut;
  if (w.has_shortcut) shortcut = convolved(x, nullptr, w.shortcut, false, nullptr);
  HostImage inner = convolved(x, &w.norm1, w.conv1, false, nullptr);
  if (w.has_shortcut) x = std::move(shortcut);
  return convolved(inner, &w.norm2, w.conv2, false, &x);
}

HostImage Strips::run_up_block(const UpBlock& block, HostImage x) {
  for (const Resnet& resnet : block.resnets) x = run_resnet(resnet, std::move(x));
  if (!block.doubles) return x;
  return convolved(x, nullptr, block.upsample, /*doubled=*/true, nullptr);
}

UnsetVector<float> Strips::run_out(const Norm& norm, const nn::Conv& conv, const HostImage& x) {
  const HostImage made = convolved(x, &norm, conv, false, nullptr);
  UnsetVector<float> values(static_cast<size_t>(made.height * made.width * made.channels));
  constexpr size_t kAtOnce = size_t{1} << 16;
  for_ranges(&ctx_.backend.pool(), values.size(), kAtOnce, [&](size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) {
      values[i] = ctx_.dtype == DType::bf16
                      ? to_f32(reinterpret_cast<const bf16_t*>(made.pixels.data())[i])
                      : reinterpret_cast<const float*>(made.pixels.data())[i];
    }
  });
  return values;
}

}  // namespace octet::flux2_vae
