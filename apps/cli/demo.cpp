// octet demo
#include "demo/demo.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caption_flags.h"
#include "commands.h"
#include "formats/json_value.h"
#include "octet/tools/report.h"
#include "octet/tools/text.h"
#include "output.h"
#include "picture_flags.h"
#include "picture_paths.h"
#include "rendering.h"
#include "terminal_preview.h"

namespace octet::cli {
namespace {

struct DemoArguments {
  CaptionWords captions;
  std::string preset;
  int steps = 0;
  std::string out = "demo.png";
  std::optional<int> quality;
  std::string show = "auto";
  SeedArgument seed{.seed = kDemoSeed};
  ModelOptions memory;  // all that is asked of a model
};

// A caption; of plain text also what is in it, what is not, and what nobody will see.
struct OwnCaption {
  NamedCaption caption;
  std::string summary;
  std::vector<std::string> left_out, warnings;
};

OwnCaption only_caption(const CaptionWords& words) {
  if (words.captions.size() + words.prompts.size() > 1) {
    throw CLI::ValidationError(
        "--caption and --prompt cannot be used together or twice: a demo "
        "is one picture");
  }
  for (const std::string& prompt : words.prompts) {
    if (prompt.find_first_not_of(" \t\r\n") == prompt.npos) {
      throw CLI::ValidationError("--prompt is empty, expected a description");
    }
  }
  OwnCaption own;
  const Captions captions = read_captions(words, [&](const std::string& text) {
    DemoPrompt prompt = demo_prompt(text);
    own.summary = std::move(prompt.summary);
    own.left_out = std::move(prompt.left_out);
    own.warnings = std::move(prompt.warnings);
    return std::move(prompt.caption);
  });
  if (captions.is_list) {
    throw CLI::ValidationError(
        "--caption is a list of captions, expected one: a demo is one "
        "picture");
  }
  own.caption = captions.all.front();
  return own;
}

// "cat, under, five stars: four fit"
std::string listed(const std::vector<std::string>& left_out) {
  constexpr size_t kMostListed = 20;
  std::string list;
  for (size_t i = 0; i < std::min(left_out.size(), kMostListed); ++i) {
    list += (i == 0 ? "" : ", ") + left_out[i];
  }
  if (left_out.size() > kMostListed) {
    list += fmt::format(" and {} more", left_out.size() - kMostListed);
  }
  return list;
}

GenerateRequest demo_request_from(const CommonFlags& flags, const DemoArguments& arguments,
                                  const OwnCaption& own) {
  const bool is_own = are_given(arguments.captions);
  GenerateRequest request = demo_request(own.caption.text);
  if (is_own) request.picture = with_caption(request.picture, own.caption);
  request.picture.preset = arguments.preset;
  request.picture.steps = arguments.steps;
  request.picture.seed = seed_from(arguments.seed, flags);
  request.model.device = flags.device;
  request.model.threads = flags.threads;
  request.model.keep = arguments.memory.keep;
  request.model.max_memory = arguments.memory.max_memory;
  return request;
}

// What is on the picture, as a line; a caption need not say it.
std::string first_line_of(const OwnCaption& own, const RenderReport& report) {
  if (!own.summary.empty()) return printable(own.summary) + "\n";
  const auto caption = nlohmann::json::parse(report.caption, nullptr, /*allow_exceptions=*/false);
  const auto found = caption.find("high_level_description");
  const std::string line =
      found != caption.end() && found->is_string() ? found->get<std::string>() : "";
  return line.empty() ? "" : printable(line) + "\n";
}

// The name that was asked for, which may have {name} and {seed}, as those of generate.
std::string path_from(const DemoArguments& arguments, const OwnCaption& own,
                      const GenerateRequest& request) {
  Captions captions;
  captions.all.push_back(own.caption);
  if (own.caption.name.empty()) captions.all.back().name = "demo";
  return PicturePaths(arguments.out, pictures_of(captions, request.picture, "--out")).of(0, 0);
}

void render_demo(const CommonFlags& flags, const DemoArguments& arguments) {
  const int quality = quality_for(arguments.out, arguments.quality);
  const OwnCaption own =
      are_given(arguments.captions) ? only_caption(arguments.captions) : OwnCaption();
  const GenerateRequest request = demo_request_from(flags, arguments, own);
  const std::string out = path_from(arguments, own, request);
  check_outputs(flags, {out}, arguments.captions.captions);
  const std::string left_out = listed(own.left_out);
  if (!left_out.empty()) say(flags, "warning: left out: " + left_out);
  for (const std::string& warning : own.warnings) say(flags, "warning: " + warning);
  PlannedPictures planned;
  RenderReport report = [&] {
    RenderingProgress progress(flags);
    RenderCallbacks callbacks;
    callbacks.progress = std::ref(progress);
    callbacks.plan = [&](const EngineInfo& info) {
      planned = tell_plan(flags, info, request, /*several=*/false);
    };
    TerminalPreview terminal(flags, arguments.show);
    if (terminal.is_on()) {
      callbacks.preview = [&](const Preview& preview) {
        terminal.show(preview.rgb, preview.width, preview.height);
      };
    }
    callbacks.picture = [&](const Picture& picture) {
      Picture marked = picture;
      if (!left_out.empty()) marked.metadata.emplace_back("left_out", left_out);
      write_picture(out, marked, quality);
      terminal.show(picture.rgb, picture.width, picture.height);
    };
    callbacks.warning = [&](const Sentence& sentence) { say(flags, sentence); };
    return generate(request, callbacks);
  }();
  report.warnings.insert(report.warnings.end(), own.warnings.begin(), own.warnings.end());
  const std::string text = fmt::format(
      "{}{}{} ({}x{}, seed {}), from the small model in {}\n{}\n"
      "With your own caption: octet demo --caption FILE, or --prompt TEXT\n"
      "With the weights of Ideogram 4: octet generate --model FOLDER --caption FILE -o out.png\n",
      flags.verbose ? to_text(report) + "\n" : "", first_line_of(own, report), printable(out),
      report.width, report.height, request.picture.seed, printable(short_path(request.model.model)),
      flags.verbose ? "" : to_text(report, Detail::usual));
  show(flags, flags.quiet ? printable(out) + "\n" : text,
       json_of(flags, DemoPicture{request, report, out, own.left_out, planned}));
}

}  // namespace

void add_demo(CLI::App& program, CommonFlags& flags) {
  CLI::App& command = add_computing_command(
      program, flags, "demo", "Render a picture with the small model that ships with Octet");
  const auto arguments = std::make_shared<DemoArguments>();
  add_caption_flags(command, arguments->captions);
  command.get_option("--caption")
      ->description("JSON caption: a file, - for stdin, or the JSON itself")
      ->type_name("FILE");
  command.get_option("--prompt")
      ->description("Objects, colours and words to paint, in plain English");
  command.get_option("--wrap-text")->description("The caption is plain text");
  add_value(command, "--preset", "NAME", arguments->preset,
            "Preset of the model (default: its first)");
  add_steps(command, arguments->steps);
  add_picture_path(command, "-o,--out", arguments->out,
                   "Picture: .png, .jpg or .webp; may contain {name} (of the caption) and {seed}");
  add_quality(command, arguments->quality);
  add_show(command, arguments->show);
  add_seed(command, arguments->seed, "Seed of the noise, or random");
  add_memory_flags(command, arguments->memory);
  set_group(command, kPictureOptions,
            {"--caption", "--prompt", "--wrap-text", "--preset", "--steps", "--seed", "--out",
             "--quality", "--show"});
  set_examples(command, {"octet demo", "octet demo --caption caption.json --seed random -o own.png",
                         "octet demo -p 'a red heart and the word HELLO on a yellow background'"});
  command.callback([&flags, arguments] { render_demo(flags, *arguments); });
}

}  // namespace octet::cli
