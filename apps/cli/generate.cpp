// octet generate
#include "octet/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "caption_list.h"
#include "commands.h"
#include "help_page.h"
#include "model_flags.h"
#include "octet/tools/report.h"
#include "output.h"
#include "output_files.h"
#include "picture_flags.h"
#include "picture_paths.h"
#include "rendering.h"

namespace octet::cli {
namespace {

struct GenerateArguments {
  PictureArguments picture;
  std::vector<std::string> loras;
  std::string out = "out.png";
  std::string preview;  // a file; empty: none
};

// Each step's rough picture takes the place of the one before it.
std::function<void(const Preview&)> preview_to(const std::string& path) {
  if (path.empty()) return {};
  return [path](const Preview& preview) {
    Picture picture;
    picture.width = preview.width;
    picture.height = preview.height;
    picture.rgb = preview.rgb;
    write_picture(path, picture);
  };
}

// The one caption of a command: the model is released as it is used.
RenderedCaption render_one(const CommonFlags& flags, const GenerateRequest& request,
                           const std::string& name, const PicturePaths& paths,
                           const RenderCallbacks& others) {
  RenderedCaption result{.name = name};
  RenderingProgress progress(flags);
  RenderCallbacks callbacks = others;
  callbacks.progress = std::ref(progress);
  callbacks.picture = [&](const Picture& picture) {
    write_picture(paths.of(0, picture.index), picture);
    add_picture(result, paths.of(0, picture.index), picture);
  };
  result.report = generate(request, callbacks);
  return result;
}

void generate_pictures(const CommonFlags& flags, const GenerateArguments& arguments) {
  const Captions captions = read_captions(arguments.picture.captions);
  GenerateRequest request = request_from(arguments.picture, flags);
  request.model.loras = loras_from(arguments.loras);
  const bool seeded = request.picture.noise.empty();
  PicturePaths::Pictures pictures{.is_list = captions.is_list, .images = request.picture.images};
  for (const NamedCaption& caption : captions.all) pictures.captions.push_back(caption.name);
  if (seeded) pictures.seed = request.picture.seed;
  const PicturePaths paths(arguments.out, pictures);
  std::vector<std::string> outputs = paths.all();
  if (!arguments.preview.empty()) outputs.push_back(arguments.preview);
  check_outputs(flags, std::move(outputs), inputs_of(arguments.picture, request));

  RenderCallbacks callbacks;
  callbacks.preview = preview_to(arguments.preview);
  callbacks.warning = [&](const Sentence& sentence) { say(flags, sentence); };
  std::vector<RenderedCaption> results;
  if (captions.is_list) {
    results = render_list(flags, request, captions.all, paths, callbacks);
  } else {
    request.picture = with_caption(request.picture, captions.all.front());
    results.push_back(render_one(flags, request, captions.all.front().name, paths, callbacks));
  }
  const RenderedPictures rendered{request, arguments.loras, results};
  std::string text;
  const bool any = std::any_of(results.begin(), results.end(),
                               [](const RenderedCaption& each) { return each.report.has_value(); });
  if (any && !flags.quiet) text = (captions.is_list ? "\n" : "") + to_text(rendered);
  if (!captions.is_list) text += lines_of(flags, results.front(), seeded);
  for (const RenderedCaption& result : results) warn_of_looks(flags, result);
  show(flags, text, to_json(rendered));
  check_none_failed(results);
}

}  // namespace

void add_generate(CLI::App& program, CommonFlags& flags) {
  CLI::App* command =
      program.add_subcommand("generate", "Make images from JSON captions or plain text");
  add_device_flags(*command, flags);
  add_output_flags(*command, flags);
  const auto arguments = std::make_shared<GenerateArguments>();
  ModelOptions& model = arguments->picture.request.model;
  command
      ->add_option("--model", model.model,
                   "The model: a folder in Hugging Face's layout, owner/name of a pulled one, or "
                   "the file or folder of its network in any dialect")
      ->type_name("MODEL")
      ->required();
  command
      ->add_option("--lora", arguments->loras,
                   "FILE[:strength[:cond|uncond|both]], merged into the weights; several stack")
      ->type_name("FILE");
  command->add_flag("--cache-weights", model.cache_weights,
                    "Cache the INT8 weights of a model stored in another format, for later runs");
  add_picture_flags(*command, arguments->picture);
  add_picture_path(
      *command, arguments->out,
      "PNG file; may contain {name} (of the caption), {index} (of the picture), {image} (within "
      "its caption) and {seed}; otherwise names and numbers are appended for several");
  command
      ->add_option("--preview", arguments->preview,
                   "PNG file with a rough preview, rewritten after each step")
      ->type_name("FILE");
  add_linears_flags(*command, model.linears, "Precision of the networks' large linears");
  add_choice(*command, "--text-encoder-linears", model.text_encoder_linears,
             "Precision of the text encoder's linears",
             {Linears::int8, Linears::floating, Linears::fake});
  add_choice(*command, "--attention", model.attention,
             "Precision of the networks' attention: int8 for its scores, int8-full for all of it");
  add_require_int8(*command, model.require_int8);
  add_choice(*command, "--dtype", model.activations, "Type of the activations");
  set_group(*command, kModelOptions, {"--model", "--lora", "--cache-weights"});
  set_group(*command, kPictureOptions, {"--out", "--preview"});
  set_examples(
      *command,
      {"octet generate --model ideogram-ai/ideogram-4-fp8 --caption poster.json -o poster.png",
       "octet generate --model ideogram-ai/ideogram-4-fp8 -p 'a red fox in snow' --seed random -n "
       "4",
       "octet generate --model ideogram-4-int8 --base ideogram-ai/ideogram-4-fp8 --preset turbo "
       "--caption poster.json",
       "octet generate --model ideogram-ai/ideogram-4-fp8 --caption posters/ --caption more.jsonl "
       "-o 'out/{name}-{seed}.png'"});
  command->callback([&flags, arguments] { generate_pictures(flags, *arguments); });
}

}  // namespace octet::cli
