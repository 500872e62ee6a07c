#include "models/ideogram4/load.h"

#include "nn/linear_list.h"
#include "quant/loader.h"
#include "quant/lora.h"

namespace octet::ideogram4 {
namespace {

// Visits the weights of a model twice: first whether all are there, then loading them.
template <class Visit>
void load(nn::Context& ctx, const quant::WeightSource& source, bool int8, const Loading& loading,
          Visit visit) {
  quant::CheckpointCheck present(source);
  visit(present);
  uint64_t done = 0;
  quant::LoadOptions options = {.dtype = ctx.dtype, .int8 = int8};
  options.progress = [&](uint64_t bytes) {
    done += bytes;
    if (loading.progress) loading.progress(done, present.bytes());
  };
  quant::Loader loader(source, ctx.backend, loading.pool, options);
  visit(loader);
  if (loading.fingerprint != nullptr) loading.fingerprint->add(loader.fingerprint());
}

// Merges LoRAs into the weights of one transformer. They may change linears that only the
// conditional one uses.
void merge_loras(const std::vector<quant::LoraRequest>& requests, Dit& dit, bool conditional,
                 quant::WeightSource& source) {
  if (requests.empty()) return;
  nn::LinearList list;
  visit_weights(dit, /*conditional=*/true, list);
  std::vector<std::shared_ptr<const quant::Lora>> loras;
  for (const auto& request : requests) {
    loras.push_back(std::make_shared<quant::Lora>(request, list.linears()));
  }
  source.set_change(quant::merge_loras(std::move(loras), conditional));
}

}  // namespace

Dit load_dit(nn::Context& ctx, const DitSource& source, bool conditional, bool int8,
             const Loading& loading) {
  Dit dit;
  dit.config = source.config;
  quant::WeightSource weights = source.weights;
  merge_loras(loading.loras, dit, conditional, weights);
  load(ctx, weights, int8, loading,
       [&](nn::WeightVisitor& visitor) { visit_weights(dit, conditional, visitor); });
  return dit;
}

Dit load_dit(nn::Context& ctx, const DitFiles& files, bool conditional, bool int8,
             const Loading& loading) {
  return load_dit(ctx, open_dit(files, conditional), conditional, int8, loading);
}

VaeDecoder load_vae(nn::Context& ctx, const std::string& folder, const Loading& loading) {
  VaeDecoder vae;
  vae.config = read_vae_config(folder + "/config.json");
  const quant::WeightSource source(std::make_shared<Checkpoint>(folder), "");
  load(ctx, source, /*int8=*/false, loading,
       [&](nn::WeightVisitor& visitor) { visit_weights(vae, visitor); });
  return vae;
}

DitConfig check_dit(const DitFiles& files, bool conditional) {
  const DitSource source = open_dit(files, conditional);
  Dit dit;
  dit.config = source.config;
  quant::CheckpointCheck present(source.weights);
  visit_weights(dit, conditional, present);
  present.check_nothing_is_left(
      [&](std::string_view name) { return is_ignored(name, conditional); });
  return dit.config;
}

VaeConfig check_vae(const std::string& folder) {
  VaeDecoder vae;
  vae.config = read_vae_config(folder + "/config.json");
  const quant::WeightSource source(std::make_shared<Checkpoint>(folder), "");
  quant::CheckpointCheck present(source);
  visit_weights(vae, present);
  // The encoder's half, and statistics that are read on their own.
  present.check_nothing_is_left([](std::string_view name) {
    return name.starts_with("encoder.") || name.starts_with("quant_conv.") ||
           name.starts_with("bn.");
  });
  return vae.config;
}

}  // namespace octet::ideogram4
