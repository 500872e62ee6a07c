// Requests of C programs, in the types of octet/engine.h.
#include "api/c_engine.h"
#include "models/schedule.h"

namespace octet::c_api {
namespace {

// The value that an enumerator of C, 0 and up, stands for.
template <class T, size_t N>
T choice(const T (&choices)[N], int32_t given, const char* field) {
  check_value(given >= 0 && static_cast<size_t>(given) < N, field, "`{}` is {}, expected 0 to {}",
              field, given, N - 1);
  return choices[given];
}

constexpr Linears kLinears[] = {Linears::int8, Linears::floating, Linears::automatic};
constexpr Linears kTextLinears[] = {Linears::floating, Linears::int8};
constexpr AttentionMode kAttentions[] = {AttentionMode::automatic, AttentionMode::floating,
                                         AttentionMode::int8, AttentionMode::int8_full};
constexpr Tuning kTunings[] = {Tuning::missing, Tuning::off, Tuning::all};
constexpr Convention kConventions[] = {Convention::official, Convention::diffusers};
constexpr Residency kResidencies[] = {Residency::device, Residency::host, Residency::streamed};

Activations activations_of(octet_dtype dtype) {
  check_value(dtype == 0 || dtype == OCTET_BF16 || dtype == OCTET_F32, "activations",
              "`activations` is {}, expected OCTET_BF16 or OCTET_F32", dtype);
  return dtype == OCTET_F32 ? Activations::f32 : Activations::bf16;
}

}  // namespace

std::vector<Lora> loras_of(const octet_lora* loras, size_t count) {
  std::vector<Lora> made;
  for (const octet_lora& lora : list_of(loras, count, "loras")) {
    check_value(lora.file != nullptr, "loras", "`file` of one of the `loras` is NULL");
    Lora& one = made.emplace_back();
    one.file = lora.file;
    one.strength = lora.strength;
    for (const char* network : list_of(lora.networks, lora.network_count, "networks")) {
      check_value(network != nullptr, "networks", "one of the `networks` of a LoRA is NULL");
      one.networks.emplace_back(network);
    }
  }
  return made;
}

ModelOptions options_of(const octet_options& given) {
  check_reserved(given.reserved);
  check_given(given.model, "model");
  check_value(given.threads >= 0, "threads", "`threads` is {}, expected 0 or more", given.threads);
  ModelOptions made;
  made.model = given.model;
  made.base = text_or(given.base);
  made.fallback = text_or(given.fallback);
  for (const octet_pair& part : list_of(given.parts, given.part_count, "parts")) {
    check_value(part.key != nullptr && part.value != nullptr, "parts",
                "one of the `parts` has no key or no value");
    made.parts[part.key] = part.value;
  }
  made.loras = loras_of(given.loras, given.lora_count);
  for (const octet_keep& rule : list_of(given.keep, given.keep_count, "keep")) {
    made.keep.push_back({text_or(rule.part), choice(kResidencies, rule.where, "keep")});
  }
  made.guided = !flag_of(given.unguided, "unguided");
  made.device = text_or(given.device, "auto");
  made.threads = given.threads;
  made.activations = activations_of(given.activations);
  made.linears = choice(kLinears, given.linears, "linears");
  made.text_encoder_linears =
      choice(kTextLinears, given.text_encoder_linears, "text_encoder_linears");
  made.attention = choice(kAttentions, given.attention, "attention");
  made.tuning = choice(kTunings, given.tuning, "tuning");
  made.convention = choice(kConventions, given.convention, "convention");
  made.require_int8 = flag_of(given.require_int8, "require_int8");
  made.cache_weights = flag_of(given.cache_weights, "cache_weights");
  made.max_memory = given.max_memory;
  return made;
}

PictureRequest request_of(const octet_request& given) {
  check_reserved(given.reserved);
  check_reserved(given.reserved2);
  check_given(given.caption, "caption");
  PictureRequest made;
  made.caption = given.caption;
  made.any_caption = flag_of(given.any_caption, "any_caption");
  if (given.caption_name != nullptr) made.caption_name = given.caption_name;
  if (given.width != 0 || given.height != 0) made.size = {given.width, given.height};
  made.preset = text_or(given.preset);
  made.steps = given.steps;
  const auto guidance =
      list_of(given.guidance, given.guidance_count, "guidance", models::kMostSteps);
  made.guidance.assign(guidance.begin(), guidance.end());
  made.seed = given.seed;
  const auto noise = list_of(given.noise, given.noise_count, "noise");
  made.noise.assign(noise.begin(), noise.end());
  made.noise_name = text_or(given.noise_name);
  if (given.images != 0) made.images = given.images;
  made.negative = text_or(given.negative);
  const bool no_loras = flag_of(given.no_loras, "no_loras");
  check_value(!no_loras || given.lora_count == 0, "no_loras",
              "`no_loras` is 1, but there are {} `loras`", given.lora_count);
  if (no_loras || given.lora_count > 0) made.loras = loras_of(given.loras, given.lora_count);
  made.stop = token_of(given.stop);
  return made;
}

std::stop_token token_of(const octet_stop* stop) {
  return stop != nullptr ? stop->source.get_token() : std::stop_token();
}

}  // namespace octet::c_api
