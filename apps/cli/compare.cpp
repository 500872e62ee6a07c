// octet compare

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "octet/error.h"
#include "octet/tools/report.h"
#include "output.h"
#include "picture_flags.h"
#include "picture_paths.h"
#include "rendering.h"

namespace octet::cli {
namespace {

// What the two differ in.
struct SideArguments {
  std::string model, device;
  Linears linears = Linears::int8, text_linears = Linears::floating;
  Activations dtype = Activations::bf16;
  std::vector<std::string> loras;
};

struct CompareArguments {
  PictureArguments picture;
  SideArguments a, b;
  std::string pictures;  // prefix of names; empty: none
  std::optional<double> min_cosine, min_psnr;
};

ModelOptions model_of(const SideArguments& side, ModelOptions shared) {
  shared.model = side.model;
  shared.linears = side.linears;
  shared.text_encoder_linears = side.text_linears;
  shared.activations = side.dtype;
  shared.loras = loras_from(side.loras);
  if (!side.device.empty()) shared.device = side.device;
  shared.require_int8 = shared.require_int8 && side.linears == Linears::int8;
  return shared;
}

void check_reached(const CompareArguments& arguments, const CompareReport& report) {
  const double cosine = report.steps.back().cosine.mean;
  if (arguments.min_cosine && cosine < *arguments.min_cosine) {
    throw Error(fmt::format(
        "compare: the cosine of the final latents is {:.6f}, expected at least {} (--min-cosine)",
        cosine, *arguments.min_cosine));
  }
  if (arguments.min_psnr && report.psnr_db.count > 0 && report.psnr_db.mean < *arguments.min_psnr) {
    throw Error(fmt::format(
        "compare: the PSNR of the pictures is {:.2f} dB, expected at least {} (--min-psnr)",
        report.psnr_db.mean, *arguments.min_psnr));
  }
}

// The names of the pictures of one kind: with the caption's name and the seed where they are many.
PicturePaths paths_for(const CompareArguments& arguments, const Captions& captions,
                       const PictureRequest& picture, const std::string& kind) {
  const char* const names = !captions.is_list       ? ""
                            : picture.noise.empty() ? "-{name}-{seed}"
                                                    : "-{name}";
  return {fmt::format("{}{}-{}.png", arguments.pictures, names, kind),
          pictures_of(captions, picture, "--pictures")};
}

void compare_pictures(const CommonFlags& flags, const CompareArguments& arguments) {
  const Captions captions = read_captions(arguments.picture.captions);
  say_warnings(flags, captions);
  const GenerateRequest shared = request_from(arguments.picture, flags);
  Comparison comparison{.request = {.a = model_of(arguments.a, shared.model),
                                    .b = model_of(arguments.b, shared.model),
                                    .picture = shared.picture,
                                    .captions = texts_of(captions)},
                        .loras_a = arguments.a.loras,
                        .loras_b = arguments.b.loras};
  const CompareRequest& request = comparison.request;
  std::map<std::string, PicturePaths> paths;
  std::vector<std::string> outputs;
  for (const char* kind : {"a", "b", "difference"}) {
    if (arguments.pictures.empty()) break;
    const PicturePaths& of_kind =
        paths.emplace(kind, paths_for(arguments, captions, shared.picture, kind)).first->second;
    outputs.insert(outputs.end(), of_kind.all().begin(), of_kind.all().end());
  }
  std::vector<std::string> inputs = inputs_of(arguments.picture, {request.a, shared.picture});
  for (std::string& file : files_of(request.b)) inputs.push_back(std::move(file));
  check_outputs(flags, std::move(outputs), inputs);
  std::vector<std::string>& written = comparison.pictures;
  comparison.report = [&] {
    RenderingProgress progress(flags);
    CompareCallbacks callbacks;
    callbacks.progress = [&](ComparedSide side, size_t caption, const RenderProgress& step) {
      progress.begin((side == ComparedSide::a ? "A: " : "B: ") + title_of(captions, caption));
      return progress(step);
    };
    if (!arguments.pictures.empty()) {
      callbacks.picture = [&](const std::string& kind, size_t caption, const Picture& picture) {
        written.push_back(paths.at(kind).of(caption, picture.index));
        write_picture(written.back(), picture);
      };
    }
    return compare(request, callbacks);
  }();
  show(flags, to_text(comparison, detail_of(flags)), json_of(flags, comparison));
  check_reached(arguments, comparison.report);
}

void add_side(CLI::App& command, const std::string& name, SideArguments& side,
              const std::string& role) {
  const std::string flag = name == "A" ? "--a-" : "--b-";
  command.add_option(name, side.model, role + ": a model, as for --model of generate")
      ->type_name("MODEL")
      ->required();
  add_choice(command, flag + "linears", side.linears, fmt::format("{}'s large linears", name));
  add_choice(command, flag + "text-encoder-linears", side.text_linears,
             fmt::format("The linears of {}'s text encoder", name),
             {Linears::int8, Linears::floating, Linears::fake});
  add_choice(command, flag + "dtype", side.dtype, fmt::format("{}'s activations", name));
  // One file at a time: A and B may follow.
  command
      .add_option(flag + "lora", side.loras,
                  fmt::format("LoRA for {}, as for --lora of generate", name))
      ->type_name("FILE")
      ->allow_extra_args(false);
  add_device(command, flag + "device", side.device,
             fmt::format("Where {} runs (default: --device)", name));
}

}  // namespace

void add_compare(CLI::App& program, CommonFlags& flags) {
  CLI::App& command =
      add_computing_command(program, flags, "compare",
                            "Measure how far apart two models, or two paths of one model, are");
  const auto arguments = std::make_shared<CompareArguments>();
  add_side(command, "A", arguments->a, "The reference");
  add_side(command, "B", arguments->b, "The candidate");
  add_picture_flags(command, arguments->picture);
  add_require_int8(command, arguments->picture.request.model.require_int8);
  add_value(command, "--pictures", "PREFIX", arguments->pictures,
            fmt::format("Write PREFIX-a.png, PREFIX-b.png and PREFIX-difference.png ({} "
                        "times as bright); for a list, PREFIX-<caption>-<seed>-a.png",
                        kDifferenceAmplification))
      ->check([](const std::string& prefix) {
        return std::string(prefix.empty() ? "the prefix is empty, expected part of a name" : "");
      });
  add_number(command, "--min-cosine", arguments->min_cosine, -1, 1,
             "Exit with 1 if the final latents' mean cosine is lower");
  add_number(command, "--min-psnr", arguments->min_psnr, 0, 1000,
             "Exit with 1 if the pictures' mean PSNR in dB is lower");
  set_group(command, kPictureOptions, {"--pictures"});
  set_examples(command,
               {"octet compare ideogram-ai/ideogram-4-fp8 ideogram-4-int8 --caption caption.json",
                "octet compare ideogram-4-int8 ideogram-4-int8 --a-linears float --base "
                "ideogram-ai/ideogram-4-fp8 --caption captions/ -n 2"});
  command.callback([&flags, arguments] { compare_pictures(flags, *arguments); });
}

}  // namespace octet::cli
