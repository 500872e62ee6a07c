// octet compare
#include "octet/tools/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caption_list.h"
#include "commands.h"
#include "help_page.h"
#include "model_flags.h"
#include "octet/error.h"
#include "octet/tools/text.h"
#include "output.h"
#include "output_files.h"
#include "picture_flags.h"
#include "picture_paths.h"
#include "rendering.h"

namespace octet::cli {
namespace {

using Json = nlohmann::ordered_json;

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

Json side_json(const SideArguments& side, const RenderReport& report) {
  Json json = {{"model", side.model},
               {"linears", word_of(side.linears)},
               {"text_encoder_linears", word_of(side.text_linears)},
               {"dtype", word_of(side.dtype)},
               {"loras", side.loras}};
  json.update(report_json(report));
  return json;
}

// "± 0.02"; with several captions intervals say more.
std::string with_error(const std::string& mean, const Statistic& statistic) {
  const bool has_interval = std::isfinite(statistic.low);
  if (has_interval || !std::isfinite(statistic.standard_error)) return mean;
  return fmt::format("{} ± {:.1g}", mean, statistic.standard_error);
}

std::string decibels(const Statistic& statistic, bool equal) {
  if (statistic.count == 0) return equal ? "equal" : "-";
  return with_error(fmt::format("{:.2f}", statistic.mean), statistic);
}

std::string number(const Statistic& statistic, int decimals) {
  if (statistic.count == 0) return "-";
  return with_error(fmt::format("{:.{}f}", statistic.mean, decimals), statistic);
}

std::string interval(const Statistic& statistic, int decimals) {
  if (!std::isfinite(statistic.low)) return "-";
  return fmt::format("{:.{}f} to {:.{}f}", statistic.low, decimals, statistic.high, decimals);
}

std::string median(const Statistic& statistic, int decimals) {
  return statistic.count == 0 ? "-" : fmt::format("{:.{}f}", statistic.median, decimals);
}

std::string table_of(const CompareReport& report) {
  const bool several = report.captions.size() > 1;
  std::vector<std::string> header = {"", "cosine", "relative RMSE", "SNR dB", "max difference"};
  if (several) header.insert(header.begin() + 4, {"95 % interval", "median"});
  Table table(header, 1);
  const auto add = [&](const std::string& name, const DifferenceStatistics& row) {
    std::vector<std::string> cells = {name, number(row.cosine, 6), number(row.relative_rmse, 5),
                                      decibels(row.snr_db, row.max_abs.mean == 0),
                                      number(row.max_abs, 4)};
    if (several) cells.insert(cells.begin() + 4, {interval(row.snr_db, 2), median(row.snr_db, 2)});
    table.add(std::move(cells));
  };
  add("velocity of step 1", report.first_velocity);
  for (size_t i = 0; i < report.steps.size(); ++i) {
    add(fmt::format("latent after step {}", i + 1), report.steps[i]);
  }
  return table.text();
}

std::string side_text(const char* name, const SideArguments& side, const RenderReport& report) {
  const std::string of_text =
      side.text_linears == Linears::floating
          ? ""
          : fmt::format(", of the text encoder {}", word_of(side.text_linears));
  return fmt::format("{}  {}: linears {}{}, activations {}, on {}; checkpoint {}\n", name,
                     printable(side.model), word_of(side.linears), of_text, word_of(side.dtype),
                     report.device, report.checkpoint);
}

// Over the tokens of all captions; nothing for text encoders that cannot be compared.
std::string features_text(const CompareReport& report) {
  double sum = 0, worst = 1, max_abs = 0;
  int64_t tokens = 0;
  for (const TextDifference& text : report.texts) {
    if (text.tokens == 0) return "";
    tokens += text.tokens;
    sum += text.mean_cosine * static_cast<double>(text.tokens);
    worst = std::min(worst, text.worst_cosine);
    max_abs = std::max(max_abs, text.max_abs);
  }
  if (max_abs == 0) return "Text features: equal\n";
  return fmt::format("Text features: cosine {:.6f}, of the worst of {} tokens {:.6f}\n",
                     sum / static_cast<double>(tokens), tokens, worst);
}

std::string picture_text(const CompareReport& report) {
  const bool several = report.captions.size() > 1;
  const auto more = [&](const Statistic& statistic, int decimals) {
    if (!several || statistic.count == 0) return std::string();
    return fmt::format(" ({}, median {})", interval(statistic, decimals),
                       median(statistic, decimals));
  };
  return fmt::format("PSNR {}{}{}, SSIM {}{}\n", decibels(report.psnr_db, /*equal=*/true),
                     report.psnr_db.count > 0 ? " dB" : "", more(report.psnr_db, 2),
                     number(report.ssim, 5), more(report.ssim, 5));
}

// Pictures that say little about a model, by their number.
std::string look_text(const CompareReport& report) {
  const auto count = [&](PictureLook ComparedImage::*look) {
    return std::count_if(
        report.images.begin(), report.images.end(),
        [&](const ComparedImage& image) { return image.*look != PictureLook::ordinary; });
  };
  const auto a = count(&ComparedImage::look_a), b = count(&ComparedImage::look_b);
  if (a + b == 0) return "";
  return fmt::format("Nearly one colour, or a card with text: {} pictures of A, {} of B, of {}\n",
                     a, b, report.images.size());
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
  PicturePaths::Pictures pictures{
      .is_list = captions.is_list, .images = picture.images, .flag = "--pictures"};
  for (const NamedCaption& caption : captions.all) pictures.captions.push_back(caption.name);
  const bool seeded = picture.noise.empty();
  if (seeded) pictures.seed = picture.seed;
  const char* const names = !captions.is_list ? "" : seeded ? "-{name}-{seed}" : "-{name}";
  return {fmt::format("{}{}-{}.png", arguments.pictures, names, kind), pictures};
}

void compare_pictures(const CommonFlags& flags, const CompareArguments& arguments) {
  const Captions captions = read_captions(arguments.picture.captions);
  const GenerateRequest shared = request_from(arguments.picture, flags);
  CompareRequest request{.a = model_of(arguments.a, shared.model),
                         .b = model_of(arguments.b, shared.model),
                         .picture = shared.picture,
                         .captions = texts_of(captions)};
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
  std::vector<std::string> written;
  const CompareReport report = [&] {
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
  Json json = request_json(shared, report.a);
  json.erase("model");  // each has its own
  if (captions.all.size() > 1) json["caption"] = nullptr;
  json.update(
      Json{{"a", side_json(arguments.a, report.a)}, {"b", side_json(arguments.b, report.b)}});
  json.update(Json::parse(compare_json(report)));
  json["pictures"] = written;
  std::string text = picture_text(report);
  if (!flags.quiet) {
    text = fmt::format("{}{}\n{}\n{}Pictures: {}{}", side_text("A", arguments.a, report.a),
                       side_text("B", arguments.b, report.b), table_of(report),
                       features_text(report), text, look_text(report));
  }
  if (flags.verbose) text += "\n" + report_text(report.a) + "\n" + report_text(report.b);
  for (const std::string& path : written) text += printable(path) + "\n";
  show(flags, text, json);
  check_reached(arguments, report);
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
  CLI::App* command = program.add_subcommand(
      "compare", "Measure how far apart two models, or two paths of one model, are");
  add_device_flags(*command, flags);
  add_output_flags(*command, flags);
  const auto arguments = std::make_shared<CompareArguments>();
  add_side(*command, "A", arguments->a, "The reference");
  add_side(*command, "B", arguments->b, "The candidate");
  add_picture_flags(*command, arguments->picture);
  add_require_int8(*command, arguments->picture.request.model.require_int8);
  command
      ->add_option("--pictures", arguments->pictures,
                   fmt::format("Write PREFIX-a.png, PREFIX-b.png and PREFIX-difference.png ({} "
                               "times as bright); for a list, PREFIX-<caption>-<seed>-a.png",
                               kDifferenceAmplification))
      ->type_name("PREFIX")
      ->check([](const std::string& prefix) {
        return std::string(prefix.empty() ? "the prefix is empty, expected part of a name" : "");
      });
  add_number(*command, "--min-cosine", arguments->min_cosine, -1, 1,
             "Exit with 1 if the final latents' mean cosine is lower");
  add_number(*command, "--min-psnr", arguments->min_psnr, 0, 1000,
             "Exit with 1 if the pictures' mean PSNR in dB is lower");
  set_group(*command, kPictureOptions, {"--pictures"});
  set_examples(*command,
               {"octet compare ideogram-ai/ideogram-4-fp8 ideogram-4-int8 --caption caption.json",
                "octet compare ideogram-4-int8 ideogram-4-int8 --a-linears float --base "
                "ideogram-ai/ideogram-4-fp8 --caption captions/ -n 2"});
  command->callback([&flags, arguments] { compare_pictures(flags, *arguments); });
}

}  // namespace octet::cli
