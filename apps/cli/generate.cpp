// octet generate
#include "octet/generate.h"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <vector>

#include "commands.h"
#include "help_page.h"
#include "octet/text.h"
#include "output.h"
#include "output_files.h"
#include "picture_flags.h"
#include "rendering.h"

namespace octet::cli {
namespace {

struct GenerateArguments {
  PictureArguments picture;
  std::string out = "out.png";
};

void generate_pictures(const CommonFlags& flags, const GenerateArguments& arguments) {
  const GenerateRequest request = request_from(arguments.picture, flags);
  const auto path_of = [&](int index) {
    return picture_path(arguments.out, index, request.images);
  };
  std::vector<std::string> outputs;
  for (int i = 0; i < request.images; ++i) outputs.push_back(path_of(i));
  check_outputs(flags, std::move(outputs), inputs_of(arguments.picture, request));
  std::vector<std::string> written;
  std::vector<uint64_t> seeds;
  const GenerateReport report = [&] {
    RenderingProgress progress(flags);
    return generate(request, std::ref(progress), [&](const Picture& picture) {
      write_picture(path_of(picture.index), picture);
      written.push_back(path_of(picture.index));
      seeds.push_back(picture.seed);
    });
  }();
  const bool seeded = request.noise_file.empty();
  nlohmann::ordered_json json = request_json(request, report);
  json.update(report_json(report));
  json["loras"] = request.loras;
  json["pictures"] = written;
  json["seeds"] = seeded ? nlohmann::ordered_json(seeds) : nlohmann::ordered_json(nullptr);
  std::string names;
  for (const std::string& lora : request.loras) {
    if (!flags.quiet) names += "LoRA " + printable(lora) + "\n";
  }
  for (size_t i = 0; i < written.size(); ++i) {
    names += printable(written[i]);
    if (!flags.quiet && seeded) names += fmt::format(" (seed {})", seeds[i]);
    names += "\n";
  }
  show(flags, flags.quiet ? names : report_text(report) + "\n" + names, json);
}

}  // namespace

void add_generate(CLI::App& program, CommonFlags& flags) {
  CLI::App* command =
      program.add_subcommand("generate", "Make images from a JSON caption or plain text");
  add_device_flags(*command, flags);
  add_output_flags(*command, flags);
  const auto arguments = std::make_shared<GenerateArguments>();
  GenerateRequest& request = arguments->picture.request;
  command
      ->add_option("--model", request.model,
                   "The model: a folder as Hugging Face lays it out, owner/name of one that was "
                   "pulled, or the file or folder of its transformer in any dialect")
      ->type_name("MODEL")
      ->required();
  command
      ->add_option("--lora", request.loras,
                   "FILE[:strength[:cond|uncond|both]], merged into the weights; several stack")
      ->type_name("FILE");
  command->add_flag("--cache-weights", request.cache_weights,
                    "Keep the INT8 weights of a model that is stored otherwise, for the next time");
  add_picture_flags(*command, arguments->picture);
  add_picture_path(*command, arguments->out, "PNG file; several get -1, -2, ... in their name");
  add_choice(*command, "--linears", request.linears, {"int8", "float"},
             "The transformers' large linears");
  command->add_flag("--require-int8", request.require_int8,
                    "Fail when they would not run in native INT8");
  add_choice(*command, "--dtype", request.dtype, {"bf16", "f32"}, "Activations");
  set_group(*command, kModelOptions, {"--model", "--lora", "--cache-weights"});
  set_group(*command, kPictureOptions, {"--out"});
  set_examples(
      *command,
      {"octet generate --model ideogram-ai/ideogram-4-fp8 --caption poster.json -o poster.png",
       "octet generate --model ideogram-ai/ideogram-4-fp8 -p 'a red fox in snow' --seed random -n "
       "4",
       "octet generate --model ideogram-4-int8 --base ideogram-ai/ideogram-4-fp8 --preset turbo "
       "--caption poster.json"});
  command->callback([&flags, arguments] { generate_pictures(flags, *arguments); });
}

}  // namespace octet::cli
