// record_latents MODEL CAPTION LINEARS SIZE STEPS IMAGES SEED OUT
//
// What compare() sees of a run on the CPU, in bf16 by the convention of diffusers, for other code
// to measure. OUT gets velocity.<image>.<step> and latent.<image>.<step>, F32 [elements].
#include <fmt/format.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/safetensors_writer.h"
#include "octet/caption.h"
#include "octet/generate.h"
#include "tools/tools.h"

namespace octet::test {

void record_latents(const Words& words) {
  check(words.size() == 8,
        "usage: record_latents MODEL CAPTION LINEARS SIZE STEPS IMAGES SEED OUT");
  GenerateRequest request;
  request.model.model = words[0];
  request.model.linears = words[2] == "int8" ? Linears::int8 : Linears::floating;
  request.model.device = "cpu";
  request.model.threads = 1;
  request.model.convention = Convention::diffusers;
  request.picture.caption = read_caption(words[1]);
  request.picture.size = parse_size(words[3]);
  request.picture.steps = std::stoi(words[4]);
  request.picture.images = std::stoi(words[5]);
  request.picture.seed = std::stoull(words[6]);
  std::map<std::string, std::vector<float>> seen;
  RenderCallbacks callbacks{.picture = [](const Picture&) {}};
  callbacks.latent = [&](const LatentStep& step) {
    const std::string at = fmt::format("{}.{}", step.image, step.step);
    seen["velocity." + at].assign(step.velocity.begin(), step.velocity.end());
    seen["latent." + at].assign(step.latent.begin(), step.latent.end());
  };
  generate(request, callbacks);
  std::vector<TensorDeclaration> tensors;
  for (const auto& [name, values] : seen) {
    tensors.push_back({name, DType::f32, {static_cast<int64_t>(values.size())}});
  }
  SafetensorsWriter writer(words[7], tensors);
  for (const TensorInfo& tensor : writer.layout()) {
    writer.write(tensor.name, std::as_bytes(std::span(seen.at(tensor.name))));
  }
  writer.commit();
}

}  // namespace octet::test
