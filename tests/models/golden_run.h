// The recorded results of tests/golden (see make_goldens.py there), each against any backend.
//
// The files are those of the source tree; the environment variable OCTET_GOLDEN_DIR names another
// place, for programs that run on a machine without it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "engine/part_store.h"
#include "engine/session.h"
#include "formats/safetensors.h"
#include "models/family.h"
#include "models/flux2_vae/decoder.h"
#include "models/ideogram4/text_features.h"
#include "models/ideogram4/transformer.h"
#include "models/qwen3/text_encoder.h"
#include "models/tokenizer/unicode.h"

namespace octet::test {

// Float32 on both sides, sums in another order: some 1e-7 per operation. What magnifies it: 36
// layers in the text tower, and angles of 65536 rad and of 1e4 * t rad, whose sine and cosine
// differ in the last place; in the sampled latent, guidance of 7 over the steps.
inline constexpr double kPartF32 = 1e-5;
inline constexpr double kSampledF32 = 1e-4;

// In bfloat16 two right implementations round in different places. Ours may be as far from the
// float32 result as torch's is, and this much more: it is one draw of a random error each.
inline constexpr double kBf16Slack = 1.5;

inline std::string golden_path(const std::string& name) {
  const char* elsewhere = std::getenv("OCTET_GOLDEN_DIR");
  return std::string(elsewhere != nullptr ? elsewhere : OCTET_GOLDEN_DIR) + "/" + name;
}

class Expected {
 public:
  template <class T>
  std::vector<T> read(const std::string& name) const {
    const auto bytes = file_.bytes(name);
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  std::vector<float> floats(const std::string& name) const { return read<float>(name); }
  int64_t grid_height() const { return read<int32_t>("grid")[0]; }
  int64_t grid_width() const { return read<int32_t>("grid")[1]; }

  // The relative error that is allowed against the tensor `name`.
  double bound(const std::string& name, DType dtype) const {
    return dtype == DType::f32 ? kPartF32 : kBf16Slack * floats(name + ".bf16_error")[0];
  }

 private:
  SafetensorsFile file_{golden_path("expected.safetensors")};
};

// |got - want| / |want|; infinite when sizes differ or a number is none.
inline double relative_error(std::span<const float> got, std::span<const float> want) {
  if (got.size() != want.size()) return INFINITY;
  double difference = 0, whole = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    difference += (double{got[i]} - want[i]) * (double{got[i]} - want[i]);
    whole += double{want[i]} * want[i];
  }
  const double error = std::sqrt(difference / whole);
  return std::isfinite(error) ? error : INFINITY;
}

// A part with all of its weights in a backend's memory.
template <class P>
struct Loaded {
  std::unique_ptr<P> part;
  std::unique_ptr<engine::PartStore> store;
};

template <class P>
Loaded<P> load_all(nn::Context& ctx, std::unique_ptr<P> part, bool int8) {
  auto store = std::make_unique<engine::PartStore>(*part, ctx, Residency::device);
  store->rules().int8 = int8;
  store->load();
  return {std::move(part), std::move(store)};
}

inline Loaded<ideogram4::Transformer> load_network(nn::Context& ctx, const std::string& path,
                                                   bool conditional, bool int8) {
  return load_all(
      ctx, std::make_unique<ideogram4::Transformer>(models::PartFiles{path, ""}, conditional),
      int8);
}

inline void expect_golden_text(Backend& backend, DType dtype) {
  const Expected expected;
  nn::Context ctx{backend, dtype};
  const auto loaded = load_all(ctx,
                               std::make_unique<qwen3::TextEncoder>(
                                   golden_path("model/text_encoder"), ideogram4::kTappedLayers),
                               /*int8=*/false);
  const auto features = loaded.part->encode(ctx, expected.read<int32_t>("ids"));
  EXPECT_LE(relative_error(features, expected.floats("text.features")),
            expected.bound("text.features", dtype));
}

// One forward of a transformer that was loaded.
inline std::vector<float> velocity_of(nn::Context& ctx, const ideogram4::Transformer& network,
                                      const std::vector<float>& features,
                                      const std::vector<float>& latent, float time,
                                      const Expected& expected) {
  const models::Grid grid{expected.grid_height(), expected.grid_width()};
  const auto prompt = network.prepare(ctx, features, grid);
  const nn::Matrix z =
      nn::upload_matrix(ctx, latent.data(), grid.tokens(), network.latent_channels());
  std::vector<float> velocity(latent.size());
  const nn::Matrix out = ctx.matrix(grid.tokens(), network.latent_channels());
  network.velocity_at(ctx, *prompt, z, time, out);
  download_matrix(ctx, out, velocity.data());
  return velocity;
}

inline void expect_golden_velocities(Backend& backend, DType dtype) {
  const Expected expected;
  nn::Context ctx{backend, dtype};
  const auto latent = expected.floats("latent");
  const float time = expected.floats("time")[0];
  const auto conditional = load_network(ctx, golden_path("model/transformer"),
                                        /*conditional=*/true, /*int8=*/false);
  EXPECT_LE(relative_error(velocity_of(ctx, *conditional.part, expected.floats("features"), latent,
                                       time, expected),
                           expected.floats("dit.velocity")),
            expected.bound("dit.velocity", dtype));
  const auto unconditional = load_network(ctx, golden_path("model/unconditional_transformer"),
                                          /*conditional=*/false, /*int8=*/false);
  EXPECT_LE(relative_error(velocity_of(ctx, *unconditional.part, {}, latent, time, expected),
                           expected.floats("uncond.velocity")),
            expected.bound("uncond.velocity", dtype));
}

// Against the same codes and scales in torch. A value that lies next to a half may get the
// neighbouring code, which moves everything behind it by about a thousandth; most inputs have none,
// so the median is as close as in float32.
inline void expect_golden_int8(Backend& backend) {
  const Expected expected;
  nn::Context ctx{backend, DType::f32};
  const auto loaded = load_network(ctx, golden_path("model/transformer"), /*conditional=*/true,
                                   /*int8=*/true);
  const auto latents = expected.floats("int8.latents");
  const auto velocities = expected.floats("int8.velocities");
  const auto one = static_cast<ptrdiff_t>(expected.floats("latent").size());
  std::vector<double> errors;
  for (ptrdiff_t at = 0; at < std::ssize(latents); at += one) {
    const std::vector<float> latent(latents.begin() + at, latents.begin() + at + one);
    const std::vector<float> want(velocities.begin() + at, velocities.begin() + at + one);
    const auto got = velocity_of(ctx, *loaded.part, expected.floats("int8.features"), latent,
                                 expected.floats("int8.time")[0], expected);
    errors.push_back(relative_error(got, want));
  }
  std::sort(errors.begin(), errors.end());
  ASSERT_EQ(errors.size(), 5u);
  EXPECT_LE(errors[2], 1e-4);
  EXPECT_LE(errors.back(), 1e-2);
}

inline void expect_golden_decoding(Backend& backend, DType dtype) {
  const Expected expected;
  nn::Context ctx{backend, dtype};
  const std::string path = golden_path("model/vae");
  const auto loaded =
      load_all(ctx,
               std::make_unique<flux2_vae::Decoder>(path,
                                                    [&](const flux2_vae::VaeConfig& config) {
                                                      return flux2_vae::stored_statistics(
                                                          Checkpoint(path), config, dtype);
                                                    }),
               /*int8=*/false);
  const auto image = loaded.part->decode(ctx, expected.floats("latent"),
                                         {expected.grid_height(), expected.grid_width()}, {});
  EXPECT_LE(relative_error(image, expected.floats("vae.image")),
            expected.bound("vae.image", dtype));
}

// From the caption to bytes. A value next to a half may become the neighbouring byte.
inline void expect_golden_image(std::unique_ptr<Backend> backend) {
  if (!tokenizer::has_unicode_tables()) {
    GTEST_SKIP() << "this build has no utf8proc, so no tokenizer reads the caption";
  }
  const Expected expected;
  const auto caption = expected.read<char>("image.caption");
  const auto mu_std = expected.floats("image.mu_std");
  engine::SessionOptions options{.once = true};
  options.model.model = golden_path("model");
  options.model.activations = Activations::f32;
  options.model.linears = Linears::floating;
  options.model.convention = Convention::diffusers;
  const std::atomic<bool> stop{false};
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(std::move(backend));
  engine::Session session(options, stop, std::move(backends), models::family_named("ideogram4"));
  const int side = session.model().sizes.token_side;
  models::ScheduleRequest schedule;
  schedule.preset = session.family().presets.front();
  schedule.preset.parameters["mu"] = mu_std[0];
  schedule.preset.parameters["std"] = mu_std[1];
  schedule.size = {static_cast<int>(expected.grid_width()) * side,
                   static_cast<int>(expected.grid_height()) * side};
  schedule.guidance = expected.floats("image.guidance");
  schedule.steps = static_cast<int>(schedule.guidance.size());
  schedule.convention = Convention::diffusers;
  PictureRequest request;
  request.noise = expected.floats("image.noise");
  const auto job = engine::make_job(
      session.facts(), request,
      engine::asked_as_is(session.family(), schedule, {caption.begin(), caption.end()}));
  int images = 0;
  engine::SessionCallbacks callbacks;
  callbacks.image = [&](const engine::RenderedImage& image, const RenderReport&) {
    ++images;
    EXPECT_LE(relative_error(image.latent, expected.floats("image.latent")), kSampledF32);
    const auto pixels = expected.read<uint8_t>("image.pixels");
    ASSERT_EQ(image.rgb.size(), pixels.size());
    size_t apart = 0;
    for (size_t i = 0; i < pixels.size(); ++i) {
      EXPECT_LE(std::abs(int{image.rgb[i]} - int{pixels[i]}), 1) << "byte " << i;
      apart += image.rgb[i] != pixels[i];
    }
    EXPECT_LE(apart, pixels.size() / 50);
  };
  session.render(*job, callbacks);
  EXPECT_EQ(images, 1);
}

}  // namespace octet::test
