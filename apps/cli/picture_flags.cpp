#include "picture_flags.h"

#include <limits>

#include "octet/caption.h"

namespace octet::cli {

void add_picture_flags(CLI::App& command, PictureArguments& arguments) {
  GenerateRequest& request = arguments.request;
  command.add_option("--base", request.base,
                     "Folder of a whole model, for the parts and weights that the model lacks");
  command.add_option("--uncond", request.unconditional,
                     "File or folder of the unconditional transformer");
  command.add_option("--text-encoder", request.text_encoder, "File or folder of the text encoder");
  command.add_option("--vae", request.vae, "File or folder of the VAE");
  command.add_option("--tokenizer", request.tokenizer,
                     "tokenizer.json, or a folder with it (default: in the model's folder, or "
                     "beside the text encoder)");
  command.add_option("--caption", arguments.caption, "JSON caption: a file, or - for stdin")
      ->required();
  command.add_flag("--wrap-text", arguments.wrap_text, "The caption is plain text: wrap it");
  command.add_option("--size", request.size, "<width>x<height>, or the side of a square")
      ->capture_default_str();
  command.add_option("--preset", request.preset, "quality (48 steps), default (20), turbo (12)")
      ->capture_default_str();
  add_whole_number(command, "--steps", arguments.steps, 1, 1000, "Steps (default: the preset's)");
  command.get_option("--steps")->default_str("");
  command
      .add_option("--guidance", request.guidance,
                  "Guidance of all steps, or one number per step (default: the preset's)")
      ->delimiter(',')
      ->allow_extra_args(false)  // what follows may be a model
      ->check([](const std::string& number) {
        return number.empty() ? std::string("expected a number") : std::string();
      });
  add_whole_number(command, "--seed", arguments.seed, 0, std::numeric_limits<int64_t>::max(),
                   "Seed of the noise");
  command.add_option(
      "--noise", request.noise_file,
      "Safetensors file with the noise in place of the seed's, to compare with others");
  add_whole_number(command, "-n,--images", arguments.images, 1, 1000, "Number of images");
  add_choice(command, "--convention", request.convention, {"official", "diffusers"},
             "End of the schedule and statistics of latents");
  add_choice(command, "--tune", request.tune, {"off", "missing", "all"},
             "Kernels chosen by measuring");
}

GenerateRequest request_from(const PictureArguments& arguments, const CommonFlags& flags) {
  GenerateRequest request = arguments.request;
  request.steps = static_cast<int>(arguments.steps);
  request.seed = static_cast<uint64_t>(arguments.seed);
  request.images = static_cast<int>(arguments.images);
  request.device = flags.device;
  request.threads = flags.threads;
  request.caption = read_caption(arguments.caption);
  request.caption_name = arguments.caption == "-" ? "standard input" : arguments.caption;
  if (arguments.wrap_text) request.caption = wrap_plain_text(request.caption);
  return request;
}

}  // namespace octet::cli
