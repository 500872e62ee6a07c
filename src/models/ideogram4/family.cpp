// Ideogram 4 as a row of the table of families.
#include "models/family.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "models/flux2_vae/decoder.h"
#include "models/ideogram4/caption.h"
#include "models/ideogram4/files.h"
#include "models/ideogram4/latent_statistics.h"
#include "models/ideogram4/schedule.h"
#include "models/ideogram4/text_features.h"
#include "models/ideogram4/transformer.h"
#include "models/qwen3/chat_prompt.h"
#include "models/qwen3/text_encoder.h"

namespace octet::ideogram4 {
namespace {

constexpr std::string_view kConditionalAliases[] = {"cond", "conditional_transformer",
                                                    "cond_transformer"};
constexpr std::string_view kUnconditionalAliases[] = {"uncond", "unconditional_transformer",
                                                      "uncond_transformer"};
constexpr models::NetworkInfo kNetworks[] = {
    {"conditional", kTransformer, kConditionalAliases},
    {"unconditional", kUnconditionalTransformer, kUnconditionalAliases},
};

constexpr models::Branch kBranches[] = {
    {"conditional", 0, models::BranchText::prompt, 0, 1},
    {"unconditional", 1, models::BranchText::none, 1, -1},
};

constexpr std::string_view kOtherPartsOfModel[] = {kTextEncoder, kVae};
constexpr models::SizeLimits kSizes = {
    .token_side = 16, .smallest = 256, .largest = 2048, .aspect = 6, .title = "Ideogram 4"};

flux2_vae::LatentStatistics statistics_of(const std::string& path,
                                          const flux2_vae::VaeConfig& config,
                                          const models::OpenOptions& options) {
  if (options.convention == Convention::diffusers) {
    const DType dtype = options.activations == Activations::bf16 ? DType::bf16 : DType::f32;
    return flux2_vae::stored_statistics(Checkpoint(path), config, dtype);
  }
  const int64_t channels = config.latent_channels * flux2_vae::kPatch * flux2_vae::kPatch;
  flux2_vae::LatentStatistics published = published_statistics();
  check(std::ssize(published.scale) == channels,
        "{}: tokens have {} channels, and the published statistics of latents are for {}; take "
        "those of the file with the `convention` of diffusers",
        path, channels, published.scale.size());
  return published;
}

// Models with other VAEs are small ones for tests, which may make small images. Diffusers asks for
// only multiples of a token's side.
models::SizeLimits size_limits(const models::Decoder& decoder, Convention convention) {
  models::SizeLimits limits = kSizes;
  const auto side = static_cast<int>(decoder.token_side());
  if (side != limits.token_side || convention == Convention::diffusers) {
    limits.smallest = side;
    limits.aspect = limits.largest;
  }
  limits.token_side = side;
  return limits;
}

std::vector<std::unique_ptr<models::Network>> open_networks(const models::ModelFiles& files) {
  std::vector<std::unique_ptr<models::Network>> networks;
  const PartFiles& first = files.find(kTransformer)->second;
  networks.push_back(std::make_unique<Transformer>(first, /*conditional=*/true));
  const auto second = files.find(kUnconditionalTransformer);
  if (second == files.end()) return networks;
  auto unconditional = std::make_unique<Transformer>(second->second, /*conditional=*/false);
  // Each runs by itself on the same latent, and only velocities are combined. So a guide may be
  // smaller than the network that it guides: in layers, in width, in text that it never reads.
  const int64_t channels = networks.front()->latent_channels();
  check(unconditional->latent_channels() == channels,
        "{} and {}: the two networks take latents of {} and {} channels, expected the same",
        first.path, second->second.path, channels, unconditional->latent_channels());
  networks.push_back(std::move(unconditional));
  return networks;
}

models::Model open(const models::ModelFiles& files, const models::OpenOptions& options) {
  const auto path_of = [&](std::string_view part) -> const std::string& {
    return files.find(part)->second.path;
  };
  const auto tokenizer = std::make_shared<const tokenizer::Tokenizer>(path_of(kTokenizer));
  auto text_encoder =
      std::make_unique<qwen3::TextEncoder>(path_of(kTextEncoder), std::span(kTappedLayers));
  models::Model model;
  model.networks = open_networks(files);
  flux2_vae::Decoder::StatisticsOf statistics;
  if (options.decodes) {
    statistics = [&](const flux2_vae::VaeConfig& config) {
      return statistics_of(path_of(kVae), config, options);
    };
  }
  auto decoder = std::make_unique<flux2_vae::Decoder>(path_of(kVae), statistics);
  const models::Network& first = *model.networks.front();
  check(tokenizer->largest_id() < text_encoder->config().vocabulary,
        "{}: has ids up to {}, but {} a vocabulary of {}; they belong to different models",
        path_of(kTokenizer), tokenizer->largest_id(), path_of(kTextEncoder),
        text_encoder->config().vocabulary);
  check(text_encoder->feature_count() == first.text_features(),
        "{}: gives {} features, but {} takes {}; they belong to different models",
        path_of(kTextEncoder), text_encoder->feature_count(), path_of(kTransformer),
        first.text_features());
  check(decoder->latent_channels() == first.latent_channels(),
        "{}: has {} latent channels, and four times that is not the {} of {}", path_of(kVae),
        decoder->config().latent_channels, first.latent_channels(), path_of(kTransformer));
  model.sizes = size_limits(*decoder, options.convention);
  model.tokenize = [tokenizer](const std::string& prompt) {
    return qwen3::encode_caption(*tokenizer, prompt);
  };
  model.text_encoder = std::move(text_encoder);
  model.decoder = std::move(decoder);
  return model;
}

std::unique_ptr<models::Network> open_network(size_t network, const PartFiles& files) {
  return std::make_unique<Transformer>(files, /*conditional=*/network == 0);
}

std::unique_ptr<models::Part> open_part(std::string_view part, const PartFiles& files) {
  if (part == kTextEncoder) {
    return std::make_unique<qwen3::TextEncoder>(files.path, std::span(kTappedLayers));
  }
  if (part == kVae) {
    return std::make_unique<flux2_vae::Decoder>(files.path, flux2_vae::Decoder::StatisticsOf());
  }
  for (size_t i = 0; i < std::size(kNetworks); ++i) {
    if (part == kNetworks[i].part) return open_network(i, files);
  }
  fail("{}: is not a part of Ideogram 4 with weights", part);
}

std::unique_ptr<models::Network> synthetic_network(size_t network, int64_t layers) {
  DitConfig config;
  check(layers >= 0 && layers <= config.layers, "{} layers, expected 1 to {}", layers,
        config.layers);
  if (layers > 0) config.layers = layers;
  return std::make_unique<Transformer>(config, /*conditional=*/network == 0);
}

models::Model synthetic_model(int64_t layers, int64_t text_tokens) {
  const qwen3::TextConfig text;
  models::Model model;
  model.text_encoder = std::make_unique<qwen3::TextEncoder>(text, std::span(kTappedLayers));
  for (size_t i = 0; i < std::size(kNetworks); ++i) {
    model.networks.push_back(synthetic_network(i, layers));
  }
  model.decoder =
      std::make_unique<flux2_vae::Decoder>(flux2_vae::VaeConfig(), published_statistics());
  model.tokenize = [text_tokens, vocabulary = text.vocabulary](const std::string&) {
    constexpr int64_t kStride = 7919;  // a prime, so that the rows of the table lie apart
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < text_tokens; ++i) {
      tokens.push_back(static_cast<int32_t>(i * kStride % vocabulary));
    }
    return tokens;
  };
  model.sizes = kSizes;
  return model;
}

models::PromptText read_prompt(const std::string& text, const std::string& what, bool any) {
  return {caption_for_model(text, what, any), caption_warnings(text, what, any)};
}

}  // namespace

const models::Family& family() {
  static const models::Family made = {.name = "ideogram4",
                                      .title = "Ideogram 4",
                                      .networks = kNetworks,
                                      .branches = kBranches,
                                      .other_parts = kOtherPartsOfModel,
                                      .presets = presets(),
                                      .preset_keys = preset_keys(),
                                      .sizes = kSizes,
                                      .usual_size = {1024, 1024},
                                      .prompt_suffix = ".json",
                                      .recognise = recognise,
                                      .find = find_files,
                                      .find_networks = find_networks,
                                      .open = open,
                                      .open_part = open_part,
                                      .open_network = open_network,
                                      .synthetic_network = synthetic_network,
                                      .synthetic_model = synthetic_model,
                                      .read_prompt = read_prompt,
                                      .check_prompt = check_caption,
                                      .wrap_text = wrap_plain_text,
                                      .leaves_training = leaves_training,
                                      .most_prompt_bytes = kMaxCaptionBytes,
                                      .make_schedule = make_schedule};
  return made;
}

}  // namespace octet::ideogram4
