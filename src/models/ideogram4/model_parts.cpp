#include "models/ideogram4/model_parts.h"

#include "base/error.h"
#include "models/ideogram4/load.h"

namespace octet::ideogram4 {
namespace {

using ideogram4::DitConfig;

DitConfig check_transformers(const ModelFolders& folders, bool unconditional) {
  const DitConfig config = ideogram4::check_dit(folders.transformer, /*conditional=*/true);
  if (!unconditional) return config;
  DitConfig other = ideogram4::check_dit(folders.unconditional, /*conditional=*/false);
  other.text_features = config.text_features;  // it has no use for them
  check(other == config,
        "{} and {}: the two transformers differ in their config.json, expected one architecture",
        folders.transformer.path, folders.unconditional.path);
  return config;
}

}  // namespace

ModelParts open_parts(const ModelFolders& folders, bool unconditional) {
  ModelParts parts{tokenizer::Tokenizer(folders.tokenizer),
                   qwen3::TextEncoder(folders.text_encoder),
                   check_transformers(folders, unconditional), ideogram4::check_vae(folders.vae)};
  check(parts.tokenizer.largest_id() < parts.text_encoder.config().vocabulary,
        "{}: has ids up to {}, but {} a vocabulary of {}; they belong to different models",
        folders.tokenizer, parts.tokenizer.largest_id(), folders.text_encoder,
        parts.text_encoder.config().vocabulary);
  check(parts.text_encoder.features() == parts.dit.text_features,
        "{}: gives {} features, but {} takes {}; they belong to different models",
        folders.text_encoder, parts.text_encoder.features(), folders.transformer.path,
        parts.dit.text_features);
  check(parts.vae.latent_channels * flux2_vae::kPatch * flux2_vae::kPatch ==
            parts.dit.latent_channels,
        "{}: has {} latent channels, four times which are not the {} of {}", folders.vae,
        parts.vae.latent_channels, parts.dit.latent_channels, folders.transformer.path);
  return parts;
}

}  // namespace octet::ideogram4
