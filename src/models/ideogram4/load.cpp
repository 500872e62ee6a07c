#include "models/ideogram4/load.h"

#include "nn/linear_list.h"
#include "weights/converted_cache.h"
#include "weights/loader.h"
#include "weights/lora/lora.h"

namespace octet::ideogram4 {
namespace {

using Visit = std::function<void(nn::WeightVisitor&)>;

// Visits the weights of a model twice: first whether all are there, then loading them.
void load(nn::Context& ctx, const weights::WeightSource& source, weights::LoadOptions options,
          const Loading& loading, const Visit& visit) {
  weights::CheckpointCheck present(source);
  visit(present);
  uint64_t done = 0;
  options.dtype = ctx.dtype;
  options.progress = [&](uint64_t bytes) {
    done += bytes;
    if (loading.progress) loading.progress(done, present.bytes());
  };
  weights::Loader loader(source, ctx.backend, loading.pool, options);
  visit(loader);
  if (loading.fingerprint != nullptr) loading.fingerprint->add(loader.fingerprint());
}

using Loras = std::vector<std::shared_ptr<const weights::Lora>>;

// They may change linears that only the conditional transformer uses.
Loras open_loras(const std::vector<weights::LoraRequest>& requests, const DitConfig& config) {
  Dit dit;
  dit.config = config;
  nn::LinearList list;
  visit_weights(dit, /*conditional=*/true, list);
  Loras loras;
  for (const auto& request : requests) {
    loras.push_back(std::make_shared<weights::Lora>(request, list.linears()));
  }
  return loras;
}

// Codes that this run makes are kept for the next one, which then reads them in place of the
// weights that they were made from.
void load_with_cache(nn::Context& ctx, weights::WeightSource weights, const Loras& loras,
                     const Loading& loading, const Visit& visit) {
  std::vector<std::string> changes;
  for (const auto& lora : loras) changes.push_back(lora->identity(loading.pool));
  weights::ConvertedCache cache(weights::default_converted_cache(), weights, visit, changes);
  weights::LoadOptions options;
  if (const auto found = cache.find()) {
    weights.add_converted(found, "");
    load(ctx, weights, options, loading, visit);
    if (loading.fingerprint != nullptr) {
      loading.fingerprint->add(weights::ConvertedCache::made_from(*found));
    }
    return;
  }
  options.converted = [&](const auto& weight, const auto& codes, const auto& made_from) {
    cache.keep(weight, codes, made_from);
  };
  load(ctx, weights, options, loading, visit);
  cache.commit();
}

}  // namespace

void check_loras(const std::vector<weights::LoraRequest>& requests, const DitConfig& config) {
  open_loras(requests, config);
}

Dit load_dit(nn::Context& ctx, const DitSource& source, bool conditional, bool int8,
             const Loading& loading) {
  Dit dit;
  dit.config = source.config;
  weights::WeightSource weights = source.weights;
  Loras loras = open_loras(loading.loras, dit.config);
  std::erase_if(loras, [&](const auto& lora) { return !lora->changes(conditional); });
  if (!loras.empty()) weights.set_change(weights::merge_loras(loras, conditional));
  const Visit visit = [&](nn::WeightVisitor& visitor) { visit_weights(dit, conditional, visitor); };
  if (int8 && (loading.keep_converted || !loras.empty())) {
    load_with_cache(ctx, weights, loras, loading, visit);
  } else {
    load(ctx, weights, {.int8 = int8}, loading, visit);
  }
  return dit;
}

Dit load_dit(nn::Context& ctx, const DitFiles& files, bool conditional, bool int8,
             const Loading& loading) {
  return load_dit(ctx, open_dit(files, conditional), conditional, int8, loading);
}

flux2_vae::VaeDecoder load_vae(nn::Context& ctx, const std::string& path, const Loading& loading) {
  const flux2_vae::VaeSource source = flux2_vae::open_vae(path);
  flux2_vae::VaeDecoder vae;
  vae.config = source.config;
  load(ctx, source.weights, {.int8 = false}, loading,
       [&](nn::WeightVisitor& visitor) { visit_weights(vae, visitor); });
  return vae;
}

DitConfig check_dit(const DitFiles& files, bool conditional) {
  const DitSource source = open_dit(files, conditional);
  Dit dit;
  dit.config = source.config;
  weights::CheckpointCheck present(source.weights);
  visit_weights(dit, conditional, present);
  present.check_nothing_is_left(
      [&](std::string_view name) { return is_ignored(name, conditional); });
  return dit.config;
}

flux2_vae::VaeConfig check_vae(const std::string& path) {
  const flux2_vae::VaeSource source = flux2_vae::open_vae(path);
  flux2_vae::VaeDecoder vae;
  vae.config = source.config;
  weights::CheckpointCheck present(source.weights);
  visit_weights(vae, present);
  // The encoder's half, and statistics that are read on their own.
  present.check_nothing_is_left([](std::string_view name) {
    return name.starts_with("encoder.") || name.starts_with("quant_conv.") ||
           name.starts_with("bn.");
  });
  return vae.config;
}

}  // namespace octet::ideogram4
