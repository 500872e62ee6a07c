#include "picture_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <system_error>

#include "octet/model_options.h"
#include "usage_errors.h"

namespace octet::cli {
namespace {

constexpr const char* kRandom = "random";

std::string preset_help() {
  std::vector<std::string> list;
  for (const PresetInfo& preset : list_presets()) {
    list.push_back(
        fmt::format("{} or {} ({} steps)", preset.name, preset.official_name, preset.steps));
  }
  return fmt::format("{}; a model's folder may define others (default: the first)",
                     fmt::join(list, ", "));
}

// For the shells' completions.
std::string preset_names() {
  std::vector<std::string> names;
  for (const PresetInfo& preset : list_presets()) names.push_back(preset.name);
  return fmt::format("{}", fmt::join(names, "|"));
}

// "device", "text_encoder=host"
KeepRule keep_rule_from(const std::string& text) {
  const size_t equals = text.find('=');
  KeepRule rule;
  if (equals != std::string::npos) rule.part = text.substr(0, equals);
  std::replace(rule.part.begin(), rule.part.end(), '-', '_');  // as flags spell it
  const std::string where = equals == std::string::npos ? text : text.substr(equals + 1);
  if (const auto residency = from_word<Residency>(where); residency && equals != 0) {
    rule.where = *residency;
    return rule;
  }
  throw CLI::ValidationError(
      fmt::format("--keep is '{}', expected {}, optionally after PART=, such as text_encoder=host",
                  text, list_of(word_list<Residency>())));
}

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

}  // namespace

void add_part_flags(CLI::App& command, ModelOptions& options) {
  add_value(command, "--base", "MODEL", options.base,
            "A complete model that supplies parts and weights the model lacks");
  const auto add = [&](const char* flag, const char* part, const char* help) {
    add_text(command, flag, "FILE|FOLDER", help,
             [&options, part](const std::string& path) { options.parts[part] = path; });
  };
  add("--uncond", "unconditional_transformer",
      "The unconditional network; not needed with --guidance 1");
  add("--text-encoder", "text_encoder", "The text encoder");
  add("--vae", "vae", "The VAE");
  add("--tokenizer", "tokenizer",
      "tokenizer.json, or a folder with it (default: in the model's folder, or next to the text "
      "encoder)");
  set_group(command, kModelOptions,
            {"--base", "--uncond", "--text-encoder", "--vae", "--tokenizer"});
}

void add_memory_flags(CLI::App& command, ModelOptions& options) {
  constexpr const char* kMemory = "Memory";
  command
      .add_option_function<std::vector<std::string>>(
          "--keep",
          [&options](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) options.keep.push_back(keep_rule_from(text));
          },
          "Where weights are kept between uses: in device memory, in host memory, or in their "
          "files; PART=... for one part, such as text_encoder=host (default: by what is free)")
      ->type_name(fmt::format("{}", fmt::join(word_list<Residency>(), "|")))
      ->delimiter(',')
      ->allow_extra_args(false);
  add_max_memory(command, options.max_memory,
                 "Device memory to use at most, such as 16GB (default: what is free)");
  set_group(command, kMemory, {"--keep", "--max-memory"});
}

std::vector<Lora> loras_from(const std::vector<std::string>& texts) {
  std::vector<Lora> loras;
  for (const std::string& text : texts) loras.push_back(parse_lora(text));
  return loras;
}

std::vector<std::string> files_of(const ModelOptions& options) {
  std::vector<std::string> files = {options.model, options.base, options.fallback};
  for (const auto& [part, path] : options.parts) files.push_back(path);
  for (const Lora& lora : options.loras) files.push_back(lora.file);
  return files;
}

void add_seed(CLI::App& command, SeedArgument& argument, const std::string& help) {
  const auto read = [&argument](const std::string& text) {
    argument.is_random = text == kRandom;
    const char* const end = text.data() + text.size();
    const auto [stopped, status] = std::from_chars(text.data(), end, argument.seed);
    if (!argument.is_random && (status != std::errc() || stopped != end)) {
      throw CLI::ValidationError(
          fmt::format("--seed is '{}', expected {} or a whole number from 0 to {}", text, kRandom,
                      std::numeric_limits<uint64_t>::max()));
    }
  };
  add_text(command, "--seed", "INT|random", help, read)->default_str(std::to_string(argument.seed));
}

uint64_t seed_from(const SeedArgument& argument, const CommonFlags& flags) {
  if (!argument.is_random) return argument.seed;
  const uint32_t seed = std::random_device()();  // short enough to be typed again
  if (!flags.quiet) std::fputs(fmt::format("octet: seed {}\n", seed).c_str(), stderr);
  return seed;
}

void add_steps(CLI::App& command, int& steps) {
  add_whole_number(command, "--steps", steps, 1, 1000, "Steps (default: the preset's)")
      ->default_str("");
}

void add_picture_flags(CLI::App& command, PictureArguments& arguments) {
  ModelOptions& model = arguments.request.model;
  PictureRequest& picture = arguments.request.picture;
  add_part_flags(command, model);
  add_caption_flags(command, arguments.captions);
  command.add_flag("--any-caption", picture.any_caption,
                   "Run captions despite errors, with warnings");
  add_value(command, "--negative", "TEXT", picture.negative,
            "What the pictures are led away from, for models that take a negative prompt");
  add_value(command, "--size", "SIZE", arguments.size,
            "Pixels: <width>x<height>, or the side of a square (default: the model's, "
            "1024x1024 as published)");
  command.add_option("--preset", picture.preset, preset_help())->type_name(preset_names());
  add_steps(command, picture.steps);
  add_value(command, "--guidance", "FLOAT,...", picture.guidance,
            "Guidance for all steps, or one number per step (default: the preset's)")
      ->delimiter(',')
      ->allow_extra_args(false)  // what follows may be a model
      ->check([](const std::string& number) {
        if (is_number(number)) return std::string();
        return fmt::format("'{}' is not a number, expected something like 7 or 7,7,3", number);
      });
  add_seed(command, arguments.seed,
           "Seed of the noise, or random; picture i of a caption has this seed + i - 1");
  add_value(command, "--noise", "FILE", arguments.noise,
            "Safetensors file with noise to use instead of the seed's, for comparisons");
  add_whole_number(command, "-n,--images", picture.images, 1, 1000, "Number of images per caption");
  add_choice(command, "--convention", model.convention,
             "Whose end of the schedule and latent statistics to use");
  add_choice(command, "--tune", model.tuning, "Which kernels are chosen by measurement");
  add_memory_flags(command, model);
  set_group(command, kPictureOptions,
            {"--caption", "--prompt", "--wrap-text", "--any-caption", "--negative", "--size",
             "--preset", "--steps", "--guidance", "--seed", "--noise", "--images", "--convention"});
}

GenerateRequest request_from(const PictureArguments& arguments, const CommonFlags& flags) {
  GenerateRequest request = arguments.request;
  request.model.device = flags.device;
  request.model.threads = flags.threads;
  PictureRequest& picture = request.picture;
  const std::vector<float>& guidance = picture.guidance;
  request.model.guided = guidance.empty() || std::any_of(guidance.begin(), guidance.end(),
                                                         [](float by) { return by != 1; });
  if (arguments.size) picture.size = parse_size(*arguments.size);
  if (!arguments.noise.empty()) {
    picture.noise = read_noise(arguments.noise);
    picture.noise_name = arguments.noise;
  }
  picture.seed = seed_from(arguments.seed, flags);
  return request;
}

PictureRequest with_caption(PictureRequest request, const NamedCaption& caption) {
  request.caption = caption.text;
  request.caption_name = short_path(caption.where);
  if (caption.seed) request.seed = *caption.seed;
  if (caption.size) request.size = *caption.size;
  return request;
}

std::vector<std::string> inputs_of(const PictureArguments& arguments,
                                   const GenerateRequest& request) {
  std::vector<std::string> inputs = files_of(request.model);
  inputs.push_back(arguments.noise);
  const std::vector<std::string>& captions = arguments.captions.captions;
  inputs.insert(inputs.end(), captions.begin(), captions.end());
  return inputs;
}

}  // namespace octet::cli
