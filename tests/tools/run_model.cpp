// run_model COMPONENT --model FOLDER --in IN --out OUT [--device D] [--dtype f32|bf16]
//           [--linears float|int8] [--convention official|diffusers]
//           [--lora FILE[:STRENGTH[:NETWORKS]]]  (of dit and uncond)
//
// One part of a model, or all of it, on numbers from a safetensors file, for comparisons with other
// implementations. COMPONENT, what IN holds and what OUT gets:
//   text      ids I32 [n]                                -> features F32 [n, T]
//   dit       latent F32 [N, C], features, time [1], grid I32 [2]  -> velocity F32 [N, C]
//   uncond    the same without features
//   vae       latent F32 [N, C], grid                    -> image F32 [H, W, 3]
//   schedule  size I32 [2] (height, width), count I32 [1], mu_std F32 [2] -> times, steps F32 [S]
//   image     caption U8 [bytes], noise F32 [N, C], grid, guidance F32 [S], mu_std
//                                                        -> latent F32 [N, C], image U8 [H, W, 3]
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "devices/select.h"
#include "engine/generate.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"
#include "models/ideogram4/load.h"
#include "models/qwen3/text_encoder.h"

namespace octet {
namespace {

using namespace ideogram4;  // NOLINT: this file is about it

using Numbers = std::vector<float>;

struct Output {
  std::string name;
  FileShape shape;
  Numbers values;
  bool as_bytes = false;  // U8 instead of F32
};

class Job {
 public:
  Job(std::map<std::string, std::string> options)
      : options_(std::move(options)),
        in_(option("in")),
        backend_(select_backend({.device = option("device", "cpu")})),
        ctx_{*backend_, option("dtype", "f32") == "bf16" ? DType::bf16 : DType::f32},
        convention_(ideogram4::convention_named(option("convention", "official"))) {}

  std::vector<Output> run(const std::string& component) {
    if (component == "text") return text();
    if (component == "dit") return velocity(/*conditional=*/true);
    if (component == "uncond") return velocity(/*conditional=*/false);
    if (component == "vae") return image_of(floats("latent"));
    if (component == "schedule") return schedule();
    if (component == "image") return whole();
    fail("COMPONENT {} is unknown", component);
  }

  std::string option(const std::string& name, const std::string& absent = "") const {
    const auto found = options_.find(name);
    check(found != options_.end() || !absent.empty(), "--{} is missing", name);
    return found == options_.end() ? absent : found->second;
  }

 private:
  template <class T>
  std::vector<T> read(const std::string& name) const {
    const auto bytes = in_.bytes(name);
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  Numbers floats(const std::string& name) const { return read<float>(name); }
  std::string folder(const char* part) const { return option("model") + "/" + part; }
  std::vector<weights::LoraRequest> loras() const {
    if (!options_.contains("lora")) return {};
    return {weights::parse_lora_request(option("lora"))};
  }
  bool int8() const { return option("linears", "float") == "int8"; }

  std::vector<Output> text() {
    qwen3::TextEncoder encoder(folder("text_encoder"));
    const auto ids = read<int32_t>("ids");
    return {{"features",
             {static_cast<int64_t>(ids.size()), encoder.features()},
             encoder.encode(ctx_, pool_, ids)}};
  }

  std::vector<Output> velocity(bool conditional) {
    const Dit dit =
        load_dit(ctx_, folder(conditional ? "transformer" : "unconditional_transformer"),
                 conditional, int8(), {.pool = pool_, .loras = loras()});
    const auto grid = read<int32_t>("grid");
    const DitPrompt prompt =
        prepare(ctx_, dit, conditional ? floats("features") : Numbers(), grid[0], grid[1]);
    const Numbers latent = floats("latent");
    const int64_t tokens = prompt.image_tokens(), channels = dit.config.latent_channels;
    const nn::Matrix z = nn::upload_matrix(ctx_, latent.data(), tokens, channels);
    Numbers out(latent.size());
    download_matrix(ctx_, forward(ctx_, dit, prompt, z, floats("time")[0]), out.data());
    return {{"velocity", {tokens, channels}, out}};
  }

  std::vector<Output> image_of(const Numbers& latent) {
    const auto grid = read<int32_t>("grid");
    engine::Decoder decoder(ctx_, folder("vae"), convention_, {pool_});
    const int64_t side = decoder.token_side();
    return {{"image",
             {grid[0] * side, grid[1] * side, 3},
             decoder.decode(ctx_, latent, grid[0], grid[1])}};
  }

  std::vector<Output> schedule() {
    const auto size = read<int32_t>("size");
    const Numbers mu_std = floats("mu_std");
    ideogram4::ScheduleRequest request;
    request.preset.mu = mu_std[0];
    request.preset.std = mu_std[1];
    request.height = size[0];
    request.width = size[1];
    request.steps = read<int32_t>("count")[0];
    request.convention = convention_;
    const ideogram4::Schedule made = ideogram4::make_schedule(request);
    const auto count = static_cast<int64_t>(made.deltas.size());
    return {{"times", {count}, Numbers(made.times.begin(), made.times.end() - 1)},
            {"steps", {count}, made.deltas}};
  }

  std::vector<Output> whole() {
    const auto grid = read<int32_t>("grid");
    const auto caption = read<char>("caption");
    const Numbers mu_std = floats("mu_std");
    engine::GenerateRequest request;
    request.folders = ideogram4::find_folders({.model = option("model")});
    const int side = engine::size_limits(request.folders, convention_).token_side;
    request.size = {grid[1] * side, grid[0] * side};
    request.caption.assign(caption.begin(), caption.end());
    request.schedule.preset.mu = mu_std[0];
    request.schedule.preset.std = mu_std[1];
    request.schedule.guidance = floats("guidance");
    request.schedule.steps = static_cast<int>(request.schedule.guidance.size());
    request.convention = convention_;
    request.int8 = int8();
    request.noise = floats("noise");
    std::vector<Output> outputs;
    engine::generate(
        ctx_, pool_, request, {}, [&](const engine::GeneratedImage& image, const auto&) {
          outputs.push_back({"latent",
                             {static_cast<int64_t>(grid[0]) * grid[1],
                              static_cast<int64_t>(image.latent.size()) / (grid[0] * grid[1])},
                             image.latent});
          outputs.push_back({"image",
                             {image.size.height, image.size.width, 3},
                             Numbers(image.pixels.begin(), image.pixels.end()),
                             true});
        });
    return outputs;
  }

  std::map<std::string, std::string> options_;
  SafetensorsFile in_;
  std::unique_ptr<Backend> backend_;
  nn::Context ctx_;
  ideogram4::Convention convention_;
  ThreadPool pool_;
};

void write(const std::string& path, const std::vector<Output>& outputs) {
  std::vector<TensorDeclaration> tensors;
  for (const Output& output : outputs) {
    tensors.push_back({output.name, output.as_bytes ? DType::u8 : DType::f32, output.shape});
  }
  SafetensorsWriter writer(path, tensors);
  for (const TensorInfo& tensor : writer.layout()) {
    for (const Output& output : outputs) {
      if (output.name != tensor.name) continue;
      if (output.as_bytes) {
        const std::vector<uint8_t> narrow(output.values.begin(), output.values.end());
        writer.write(tensor.name, std::as_bytes(std::span(narrow)));
      } else {
        writer.write(tensor.name, std::as_bytes(std::span(output.values)));
      }
    }
  }
  writer.commit();
}

void run(int argc, char** argv) {
  check(argc >= 2 && argc % 2 == 0, "usage: run_model COMPONENT --NAME VALUE ...");
  std::map<std::string, std::string> options;
  for (int i = 2; i < argc; i += 2) options[std::string(argv[i]).substr(2)] = argv[i + 1];
  Job job(options);
  write(job.option("out"), job.run(argv[1]));
}

}  // namespace
}  // namespace octet

int main(int argc, char** argv) {
  try {
    octet::run(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "run_model: {}\n", error.what());
    return 1;
  }
}
