// octet compare
#include "octet/compare.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "help_page.h"
#include "model_flags.h"
#include "octet/error.h"
#include "octet/text.h"
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
  Linears linears = Linears::int8;
  Activations dtype = Activations::bf16;
  std::vector<std::string> loras;
};

struct CompareArguments {
  PictureArguments picture;
  SideArguments a, b;
  std::string pictures;  // prefix of names; empty: none
  std::optional<double> min_cosine, min_psnr;
};

GenerateRequest request_of(const SideArguments& side, GenerateRequest shared) {
  ModelOptions& model = shared.model;
  model.model = side.model;
  model.linears = side.linears;
  model.activations = side.dtype;
  model.loras = loras_from(side.loras);
  if (!side.device.empty()) model.device = side.device;
  model.require_int8 = model.require_int8 && side.linears == Linears::int8;
  return shared;
}

// JSON has no infinity and no NaN.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_json(const Statistic& statistic) {
  return {{"mean", finite(statistic.mean)},
          {"standard_error", finite(statistic.standard_error)},
          {"count", statistic.count}};
}

Json to_json(const Difference& difference) {
  return {{"cosine", difference.cosine},
          {"relative_rmse", finite(difference.relative_rmse)},
          {"snr_db", finite(difference.snr_db)},
          {"max_abs", difference.max_abs}};
}

Json to_json(const DifferenceStatistics& statistics) {
  return {{"cosine", to_json(statistics.cosine)},
          {"relative_rmse", to_json(statistics.relative_rmse)},
          {"snr_db", to_json(statistics.snr_db)},
          {"max_abs", to_json(statistics.max_abs)}};
}

Json to_json(const ComparedImage& image);

template <class Each>
Json json_list(const std::vector<Each>& all) {
  auto list = Json::array();
  for (const Each& each : all) list.push_back(to_json(each));
  return list;
}

Json to_json(const ComparedImage& image) {
  return {{"first_velocity", to_json(image.first_velocity)},
          {"steps", json_list(image.steps)},
          {"psnr_db", finite(image.psnr_db)},
          {"ssim", finite(image.ssim)}};
}

Json side_json(const SideArguments& side, const RenderReport& report) {
  Json json = {{"model", side.model},
               {"linears", word_of(linears_words(), side.linears)},
               {"dtype", word_of(dtype_words(), side.dtype)},
               {"loras", side.loras}};
  json.update(report_json(report));
  return json;
}

// Equal in every bit: latents, and so pixels.
bool is_equal(const CompareReport& report) {
  for (const DifferenceStatistics& step : report.steps) {
    if (step.max_abs.mean > 0) return false;
  }
  return report.first_velocity.max_abs.mean == 0 && report.psnr_db.count == 0;
}

std::string with_error(const std::string& mean, const Statistic& statistic) {
  if (!std::isfinite(statistic.standard_error)) return mean;
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

std::string table_of(const CompareReport& report) {
  Table table({"", "cosine", "relative RMSE", "SNR dB", "max difference"}, 1);
  const auto add = [&](const std::string& name, const DifferenceStatistics& row) {
    table.add({name, number(row.cosine, 6), number(row.relative_rmse, 5),
               decibels(row.snr_db, row.max_abs.mean == 0), number(row.max_abs, 4)});
  };
  add("velocity of step 1", report.first_velocity);
  for (size_t i = 0; i < report.steps.size(); ++i) {
    add(fmt::format("latent after step {}", i + 1), report.steps[i]);
  }
  return table.text();
}

std::string side_text(const char* name, const SideArguments& side, const RenderReport& report) {
  return fmt::format("{}  {}: linears {}, activations {}, on {}; checkpoint {}\n", name,
                     printable(side.model), word_of(linears_words(), side.linears),
                     word_of(dtype_words(), side.dtype), report.device, report.checkpoint);
}

std::string picture_text(const CompareReport& report) {
  return fmt::format("PSNR {}{}, SSIM {}\n", decibels(report.psnr_db, /*equal=*/true),
                     report.psnr_db.count > 0 ? " dB" : "", number(report.ssim, 5));
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

void compare_pictures(const CommonFlags& flags, const CompareArguments& arguments) {
  const Captions captions = read_captions(arguments.picture.captions);
  GenerateRequest shared = request_from(arguments.picture, flags);
  shared.picture = with_caption(shared.picture, captions.all.front());
  const GenerateRequest a = request_of(arguments.a, shared), b = request_of(arguments.b, shared);
  const auto path_of = [&](const std::string& name, int index) {
    return picture_path(arguments.pictures + "-" + name + ".png", index, shared.picture.images);
  };
  const bool with_pictures = !arguments.pictures.empty();
  std::vector<std::string> outputs;
  for (int i = 0; with_pictures && i < shared.picture.images; ++i) {
    for (const char* name : {"a", "b", "difference"}) outputs.push_back(path_of(name, i));
  }
  std::vector<std::string> inputs = inputs_of(arguments.picture, a);
  for (std::string& file : inputs_of(arguments.picture, b)) inputs.push_back(std::move(file));
  check_outputs(flags, std::move(outputs), inputs);
  std::vector<std::string> written;
  const CompareReport report = [&] {
    RenderingProgress progress(flags);
    const auto on_step = [&](ComparedSide side, const RenderProgress& step) {
      progress.begin(side == ComparedSide::a ? "A: " : "B: ");
      return progress(step);
    };
    return compare(a, b, on_step, [&](const std::string& name, const Picture& picture) {
      if (!with_pictures) return;
      written.push_back(path_of(name, picture.index));
      write_picture(written.back(), picture);
    });
  }();
  Json json = request_json(shared, report.a);
  json.erase("model");  // each has its own
  json.update(Json{{"a", side_json(arguments.a, report.a)},
                   {"b", side_json(arguments.b, report.b)},
                   {"tokens", report.tokens},
                   {"channels", report.channels},
                   {"equal", is_equal(report)},
                   {"first_velocity", to_json(report.first_velocity)},
                   {"steps", json_list(report.steps)},
                   {"psnr_db", to_json(report.psnr_db)},
                   {"ssim", to_json(report.ssim)},
                   {"images", json_list(report.images)},
                   {"pictures", written}});
  std::string text = picture_text(report);
  if (!flags.quiet) {
    text = fmt::format("{}{}\n{}\nPictures: {}", side_text("A", arguments.a, report.a),
                       side_text("B", arguments.b, report.b), table_of(report), text);
  }
  if (flags.verbose) text += "\n" + report_text(report.a) + "\n" + report_text(report.b);
  for (const std::string& path : written) text += printable(path) + "\n";
  show(flags, text, json);
  check_reached(arguments, report);
}

void add_side(CLI::App& command, const std::string& name, SideArguments& side,
              const std::string& role) {
  const std::string flag = name == "A" ? "--a-" : "--b-";
  command.add_option(name, side.model, role + ": a model as --model of generate takes it")
      ->type_name("MODEL")
      ->required();
  add_choice(command, flag + "linears", side.linears, linears_words(),
             fmt::format("{}'s large linears", name));
  add_choice(command, flag + "dtype", side.dtype, dtype_words(),
             fmt::format("{}'s activations", name));
  // One file at a time: A and B may follow.
  command
      .add_option(flag + "lora", side.loras, fmt::format("LoRA of {}, as --lora of generate", name))
      ->type_name("FILE")
      ->allow_extra_args(false);
  add_device(command, flag + "device", side.device,
             fmt::format("Where {} runs (default: --device)", name));
}

}  // namespace

void add_compare(CLI::App& program, CommonFlags& flags) {
  CLI::App* command = program.add_subcommand(
      "compare", "Measure how far two models, or two paths of one, are apart");
  add_device_flags(*command, flags);
  add_output_flags(*command, flags);
  const auto arguments = std::make_shared<CompareArguments>();
  add_side(*command, "A", arguments->a, "The reference");
  add_side(*command, "B", arguments->b, "The candidate");
  add_picture_flags(*command, arguments->picture, /*several_captions=*/false);
  add_require_int8(*command, arguments->picture.request.model.require_int8);
  command
      ->add_option("--pictures", arguments->pictures,
                   fmt::format("Write PREFIX-a.png, PREFIX-b.png and PREFIX-difference.png ({} "
                               "times as bright)",
                               kDifferenceAmplification))
      ->type_name("PREFIX")
      ->check([](const std::string& prefix) {
        return std::string(prefix.empty() ? "the prefix is empty, expected part of a name" : "");
      });
  add_number(*command, "--min-cosine", arguments->min_cosine, -1, 1,
             "Exit 1 when the final latents' mean cosine is below");
  add_number(*command, "--min-psnr", arguments->min_psnr, 0, 1000,
             "Exit 1 when the pictures' mean PSNR in dB is below");
  set_group(*command, kPictureOptions, {"--pictures"});
  set_examples(*command,
               {"octet compare ideogram-ai/ideogram-4-fp8 ideogram-4-int8 --caption caption.json",
                "octet compare ideogram-4-int8 ideogram-4-int8 --a-linears float --base "
                "ideogram-ai/ideogram-4-fp8 --caption caption.json"});
  command->callback([&flags, arguments] { compare_pictures(flags, *arguments); });
}

}  // namespace octet::cli
