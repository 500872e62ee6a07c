#include "picture_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

#include "help_page.h"
#include "octet/caption.h"
#include "octet/error.h"

namespace octet::cli {
namespace {

constexpr const char* kRandom = "random";

std::string preset_help() {
  std::string list;
  for (const PresetInfo& preset : list_presets()) {
    list += fmt::format("{}{} or {} ({} steps)", list.empty() ? "" : ", ", preset.name,
                        preset.official_name, preset.steps);
  }
  return list;
}

// For the shells' completions.
std::string preset_names() {
  std::string names;
  for (const PresetInfo& preset : list_presets()) names += (names.empty() ? "" : "|") + preset.name;
  return names;
}

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

void add_caption_flags(CLI::App& command, PictureArguments& arguments) {
  command
      .add_option("--caption", arguments.caption,
                  "JSON caption: a file, - for stdin, or the JSON itself")
      ->type_name("FILE");
  command
      .add_option("-p,--prompt", arguments.prompt,
                  "Plain text in place of a caption, wrapped into one")
      ->type_name("TEXT");
  command.add_flag("--wrap-text", arguments.wrap_text, "The caption is plain text: wrap it");
  command.add_flag("--any-caption", arguments.request.any_caption,
                   "Warn of a caption's errors, and run it all the same");
}

bool is_json(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && text[first] == '{';
}

// The words of the user, and what a sentence about them begins with.
struct CaptionText {
  std::string text, name;
};

CaptionText caption_from(const PictureArguments& arguments) {
  if (arguments.caption.has_value() == arguments.prompt.has_value()) {
    throw CLI::ValidationError(arguments.prompt ? "--caption and --prompt cannot be used together"
                                                : "--caption FILE or --prompt TEXT is missing");
  }
  if (arguments.prompt) {
    // A caption in the place of words, as other programs take it.
    const std::string& prompt = *arguments.prompt;
    if (prompt.empty()) throw CLI::ValidationError("--prompt is empty, expected a description");
    return {is_json(prompt) ? prompt : wrap_plain_text(prompt), "the prompt"};
  }
  const std::string& path = *arguments.caption;
  if (path.empty()) throw CLI::ValidationError("--caption is empty, expected a file or -");
  std::error_code error;
  const bool is_there =
      path == "-" || std::filesystem::exists(path, error) || error == std::errc::permission_denied;
  if (!is_there && is_json(path)) return {path, "the caption"};
  if (!is_there) {
    throw Error(fmt::format(
        "'{}': there is no such file; --caption takes a file with JSON, and --prompt the "
        "description itself",
        path));
  }
  CaptionText caption{read_caption(path), path == "-" ? "standard input" : path};
  if (arguments.wrap_text) caption.text = wrap_plain_text(caption.text);
  return caption;
}

}  // namespace

void add_seed(CLI::App& command, SeedArgument& argument, const std::string& help) {
  command
      .add_option_function<std::string>(
          "--seed",
          [&argument](const std::string& text) {
            argument.is_random = text == kRandom;
            const char* const end = text.data() + text.size();
            const auto [stopped, status] = std::from_chars(text.data(), end, argument.seed);
            if (!argument.is_random && (status != std::errc() || stopped != end)) {
              throw CLI::ValidationError(
                  fmt::format("--seed is '{}', expected {} or a whole number from 0 to {}", text,
                              kRandom, std::numeric_limits<uint64_t>::max()));
            }
          },
          help)
      ->type_name("INT|random")
      ->default_str(fmt::format("{}", argument.seed));
}

uint64_t seed_from(const SeedArgument& argument, const CommonFlags& flags) {
  if (!argument.is_random) return argument.seed;
  const uint32_t seed = std::random_device()();  // short enough to be typed again
  if (!flags.quiet) std::fputs(fmt::format("octet: seed {}\n", seed).c_str(), stderr);
  return seed;
}

void add_picture_flags(CLI::App& command, PictureArguments& arguments) {
  GenerateRequest& request = arguments.request;
  command
      .add_option("--base", request.base,
                  "A whole model, for the parts and weights that the model lacks")
      ->type_name("MODEL");
  const auto add_part = [&](const char* flag, std::string& path, const char* help) {
    command.add_option(flag, path, help)->type_name("FILE|FOLDER");
  };
  add_part("--uncond", request.unconditional,
           "The unconditional transformer; not needed with --guidance 1");
  add_part("--text-encoder", request.text_encoder, "The text encoder");
  add_part("--vae", request.vae, "The VAE");
  add_part("--tokenizer", request.tokenizer,
           "tokenizer.json, or a folder with it (default: in the model's folder, or beside the "
           "text encoder)");
  add_caption_flags(command, arguments);
  command.add_option("--size", request.size, "Pixels: <width>x<height>, or the side of a square")
      ->type_name("SIZE")
      ->capture_default_str();
  command.add_option("--preset", request.preset, preset_help())
      ->type_name(preset_names())
      ->capture_default_str();
  add_whole_number(command, "--steps", arguments.steps, 1, 1000, "Steps (default: the preset's)");
  command.get_option("--steps")->default_str("");
  command
      .add_option("--guidance", request.guidance,
                  "Guidance of all steps, or one number per step (default: the preset's)")
      ->type_name("FLOAT,...")
      ->delimiter(',')
      ->allow_extra_args(false)  // what follows may be a model
      ->check([](const std::string& number) {
        if (is_number(number)) return std::string();
        return fmt::format("'{}' is not a number, expected such as 7 or 7,7,3", number);
      });
  add_seed(command, arguments.seed,
           "Seed of the noise, or random; picture i of several has the seed + i - 1");
  command
      .add_option("--noise", request.noise_file,
                  "Safetensors file with the noise in place of the seed's, to compare with others")
      ->type_name("FILE");
  add_whole_number(command, "-n,--images", arguments.images, 1, 1000, "Number of images");
  add_choice(command, "--convention", request.convention, {"official", "diffusers"},
             "End of the schedule and statistics of latents");
  add_choice(command, "--tune", request.tune, {"off", "missing", "all"},
             "Kernels chosen by measuring");
  set_group(command, kModelOptions,
            {"--base", "--uncond", "--text-encoder", "--vae", "--tokenizer"});
  set_group(command, kPictureOptions,
            {"--caption", "--prompt", "--wrap-text", "--any-caption", "--size", "--preset",
             "--steps", "--guidance", "--seed", "--noise", "--images", "--convention"});
}

GenerateRequest request_from(const PictureArguments& arguments, const CommonFlags& flags) {
  GenerateRequest request = arguments.request;
  request.steps = static_cast<int>(arguments.steps);
  request.images = static_cast<int>(arguments.images);
  request.device = flags.device;
  request.threads = flags.threads;
  CaptionText caption = caption_from(arguments);
  request.caption = std::move(caption.text);
  request.caption_name = std::move(caption.name);
  request.seed = seed_from(arguments.seed, flags);
  return request;
}

std::vector<std::string> inputs_of(const PictureArguments& arguments,
                                   const GenerateRequest& request) {
  std::vector<std::string> inputs = {request.model,        request.base, request.unconditional,
                                     request.text_encoder, request.vae,  request.tokenizer,
                                     request.noise_file};
  if (arguments.caption) inputs.push_back(*arguments.caption);
  for (const std::string& lora : request.loras) {
    // FILE[:strength[:branch]], and the file's own name may have colons.
    for (size_t end = lora.find(':'); end != std::string::npos; end = lora.find(':', end + 1)) {
      inputs.push_back(lora.substr(0, end));
    }
    inputs.push_back(lora);
  }
  return inputs;
}

}  // namespace octet::cli
