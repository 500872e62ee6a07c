// octet generate
#include "octet/generate.h"

#include <fmt/format.h>

#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "commands.h"
#include "octet/caption.h"
#include "octet/files.h"
#include "octet/text.h"
#include "output.h"
#include "rendering.h"

namespace octet::cli {
namespace {

struct GenerateArguments {
  GenerateRequest request;
  int64_t steps = 0, seed = 0, images = 1;
  std::string caption;  // a file or -
  bool wrap_text = false;
  std::string out = "out.png";
};

void generate_pictures(const CommonFlags& flags, GenerateArguments& arguments) {
  GenerateRequest& request = arguments.request;
  request.steps = static_cast<int>(arguments.steps);
  request.seed = static_cast<uint64_t>(arguments.seed);
  request.images = static_cast<int>(arguments.images);
  request.device = flags.device;
  request.threads = flags.threads;
  check_json_target(flags);
  request.caption = read_caption(arguments.caption);
  request.caption_name = arguments.caption == "-" ? "standard input" : arguments.caption;
  if (arguments.wrap_text) request.caption = wrap_plain_text(request.caption);
  const auto path_of = [&](int index) {
    return picture_path(arguments.out, index, request.images);
  };
  for (int i = 0; i < request.images; ++i) check_writable(path_of(i));
  std::vector<std::string> written;
  const GenerateReport report = [&] {
    RenderingProgress progress(flags);
    return generate(request, std::ref(progress), [&](const Picture& picture) {
      write_picture(path_of(picture.index), picture);
      written.push_back(path_of(picture.index));
    });
  }();
  nlohmann::ordered_json json = report_json(report);
  json["pictures"] = written;
  json["seed"] = request.seed;
  std::string names;
  for (const std::string& path : written) names += printable(path) + "\n";
  show(flags, flags.quiet ? names : report_text(report) + "\n" + names, json);
}

}  // namespace

void add_generate(CLI::App& program, CommonFlags& flags) {
  CLI::App* command = program.add_subcommand("generate", "Make images from a JSON caption");
  add_device_flags(*command, flags);
  add_output_flags(*command, flags);
  const auto arguments = std::make_shared<GenerateArguments>();
  GenerateRequest& request = arguments->request;
  command
      ->add_option("--model", request.model,
                   "The model: a folder as Hugging Face lays it out, or the file or folder of its "
                   "transformer in any dialect")
      ->required();
  command->add_option("--base", request.base,
                      "Folder of a whole model, for the parts and weights that --model lacks");
  command->add_option("--uncond", request.unconditional,
                      "File or folder of the unconditional transformer");
  command->add_option("--text-encoder", request.text_encoder, "Folder of the text encoder");
  command->add_option("--vae", request.vae, "Folder of the VAE");
  command->add_option("--caption", arguments->caption, "JSON caption: a file, or - for stdin")
      ->required();
  command->add_flag("--wrap-text", arguments->wrap_text, "The caption is plain text: wrap it");
  command->add_option("--size", request.size, "<width>x<height>, or the side of a square")
      ->capture_default_str();
  command->add_option("--preset", request.preset, "quality (48 steps), default (20), turbo (12)")
      ->capture_default_str();
  add_whole_number(*command, "--steps", arguments->steps, 1, 1000, "Steps (default: the preset's)");
  command->get_option("--steps")->default_str("");
  command
      ->add_option("--guidance", request.guidance,
                   "Guidance of all steps, or one number per step (default: the preset's)")
      ->delimiter(',')
      ->check([](const std::string& number) {
        return number.empty() ? std::string("expected a number") : std::string();
      });
  add_whole_number(*command, "--seed", arguments->seed, 0, std::numeric_limits<int64_t>::max(),
                   "Seed of the noise");
  command->add_option(
      "--noise", request.noise_file,
      "Safetensors file with the noise in place of the seed's, to compare with others");
  add_whole_number(*command, "-n,--images", arguments->images, 1, 1000, "Number of images");
  add_picture_path(*command, arguments->out, "PNG file; several get -1, -2, ... in their name");
  add_choice(*command, "--linears", request.linears, {"int8", "float"},
             "The transformers' large linears");
  command->add_flag("--require-int8", request.require_int8,
                    "Fail when they would not run in native INT8");
  add_choice(*command, "--dtype", request.dtype, {"bf16", "f32"}, "Activations");
  add_choice(*command, "--convention", request.convention, {"official", "diffusers"},
             "End of the schedule and statistics of latents");
  add_choice(*command, "--tune", request.tune, {"off", "missing", "all"},
             "Kernels chosen by measuring");
  command->callback([&flags, arguments] { generate_pictures(flags, *arguments); });
}

}  // namespace octet::cli
