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

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "devices/select.h"
#include "engine/part_store.h"
#include "engine/session.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"
#include "models/flux2_vae/decoder.h"
#include "models/ideogram4/schedule.h"
#include "models/ideogram4/text_features.h"
#include "models/ideogram4/transformer.h"
#include "models/qwen3/text_encoder.h"
#include "nn/linear_list.h"
#include "octet/model_options.h"
#include "tools/tools.h"
#include "weights/lora/lora.h"

namespace octet::test {
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
        convention_(option("convention", "official") == "official" ? Convention::official
                                                                   : Convention::diffusers) {}

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
  bool int8() const { return option("linears", "float") == "int8"; }

  // All of its weights are in memory for as long as the store is there.
  std::unique_ptr<engine::PartStore> load(models::Part& part, bool in_int8) {
    auto store = std::make_unique<engine::PartStore>(part, ctx_, Residency::device);
    store->rules().int8 = in_int8;
    store->load();
    return store;
  }

  std::vector<Output> text() {
    qwen3::TextEncoder encoder(folder("text_encoder"), kTappedLayers);
    const auto store = load(encoder, false);
    const auto ids = read<int32_t>("ids");
    const auto features = encoder.encode(ctx_, ids);
    return {{"features",
             {static_cast<int64_t>(ids.size()), encoder.feature_count()},
             Numbers(features.begin(), features.end())}};
  }

  void merge_lora(models::Network& network, size_t index) const {
    if (!options_.contains("lora")) return;
    nn::LinearList list;
    Transformer first(models::PartFiles{folder("transformer"), ""}, /*conditional=*/true);
    first.visit_all(list);
    std::vector<weights::NetworkNames> names;
    for (const auto& info : models::family_named("ideogram4").networks) {
      names.push_back({info.name, info.aliases});
    }
    const std::vector<std::vector<nn::LinearSpec>> linears = {list.linears()};
    const auto lora = std::make_shared<weights::Lora>(parse_lora(option("lora")), names, linears);
    if (lora->changes(index)) network.source().set_change(weights::merge_loras({lora}, index));
  }

  std::vector<Output> velocity(bool conditional) {
    Transformer network(
        models::PartFiles{folder(conditional ? "transformer" : "unconditional_transformer"), ""},
        conditional);
    merge_lora(network, conditional ? 0 : 1);
    const auto store = load(network, int8());
    const auto sides = read<int32_t>("grid");
    const models::Grid grid{sides[0], sides[1]};
    const auto prompt = network.prepare(ctx_, conditional ? floats("features") : Numbers(), grid);
    const Numbers latent = floats("latent");
    const int64_t channels = network.latent_channels();
    const nn::Matrix z = nn::upload_matrix(ctx_, latent.data(), grid.tokens(), channels);
    const nn::Matrix velocity = ctx_.matrix(grid.tokens(), channels);
    network.velocity_at(ctx_, *prompt, z, floats("time")[0], velocity);
    Numbers out(latent.size());
    download_matrix(ctx_, velocity, out.data());
    return {{"velocity", {grid.tokens(), channels}, out}};
  }

  std::vector<Output> image_of(const Numbers& latent) {
    const auto grid = read<int32_t>("grid");
    const std::string path = folder("vae");
    const models::Family& family = models::family_named("ideogram4");
    models::Model model = family.open(
        family.find({.model = option("model")}),
        {.convention = convention_,
         .activations = ctx_.dtype == DType::bf16 ? Activations::bf16 : Activations::f32});
    const auto store = load(*model.decoder, false);
    const int64_t side = model.decoder->token_side();
    const auto image = model.decoder->decode(ctx_, latent, {grid[0], grid[1]}, {});
    return {{"image", {grid[0] * side, grid[1] * side, 3}, Numbers(image.begin(), image.end())}};
  }

  std::vector<Output> schedule() {
    const auto size = read<int32_t>("size");
    const Numbers mu_std = floats("mu_std");
    models::ScheduleRequest request;
    request.preset.parameters["mu"] = mu_std[0];
    request.preset.parameters["std"] = mu_std[1];
    request.preset.steps = request.steps = read<int32_t>("count")[0];
    request.size = {size[1], size[0]};
    request.convention = convention_;
    const models::Schedule made = ideogram4::make_schedule(request);
    const auto count = static_cast<int64_t>(made.deltas.size());
    return {{"times", {count}, Numbers(made.times.begin(), made.times.end() - 1)},
            {"steps", {count}, made.deltas}};
  }

  std::vector<Output> whole() {
    const auto grid = read<int32_t>("grid");
    const auto caption = read<char>("caption");
    const Numbers mu_std = floats("mu_std");
    engine::SessionOptions options{.once = true};
    options.model.model = option("model");
    options.model.activations = ctx_.dtype == DType::bf16 ? Activations::bf16 : Activations::f32;
    options.model.linears = int8() ? Linears::int8 : Linears::floating;
    options.model.convention = convention_;
    options.model.device = option("device", "cpu");
    const std::atomic<bool> stop{false};
    engine::Session session(options, stop);
    const int side = session.model().sizes.token_side;
    models::ScheduleRequest schedule;
    schedule.preset = session.family().presets.front();
    schedule.preset.parameters["mu"] = mu_std[0];
    schedule.preset.parameters["std"] = mu_std[1];
    schedule.size = {grid[1] * side, grid[0] * side};
    schedule.guidance = floats("guidance");
    schedule.steps = static_cast<int>(schedule.guidance.size());
    schedule.convention = convention_;
    PictureRequest request;
    request.noise = floats("noise");
    const auto job = engine::make_job(
        session.facts(), request,
        engine::asked_as_is(session.family(), schedule, {caption.begin(), caption.end()}));
    std::vector<Output> outputs;
    engine::SessionCallbacks callbacks;
    callbacks.image = [&](const engine::RenderedImage& image, const RenderReport& report) {
      outputs.push_back({"latent",
                         {static_cast<int64_t>(grid[0]) * grid[1],
                          static_cast<int64_t>(image.latent.size()) / (grid[0] * grid[1])},
                         image.latent});
      outputs.push_back({"image",
                         {report.height, report.width, 3},
                         Numbers(image.rgb.begin(), image.rgb.end()),
                         true});
    };
    session.render(*job, callbacks);
    return outputs;
  }

  std::map<std::string, std::string> options_;
  SafetensorsFile in_;
  std::unique_ptr<Backend> backend_;
  nn::Context ctx_;
  Convention convention_;
};

void write_outputs(const std::string& path, const std::vector<Output>& outputs) {
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

}  // namespace

void run_model(const Words& words) {
  check(words.size() % 2 == 1, "usage: run_model COMPONENT --NAME VALUE ...");
  std::map<std::string, std::string> options;
  for (size_t i = 1; i < words.size(); i += 2) options[words[i].substr(2)] = words[i + 1];
  Job job(options);
  write_outputs(job.option("out"), job.run(words[0]));
}

}  // namespace octet::test
