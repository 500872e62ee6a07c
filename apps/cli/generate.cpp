// octet generate
#include "octet/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "commands.h"
#include "config.h"
#include "field_names.h"
#include "from_picture.h"
#include "octet/error.h"
#include "octet/tools/report.h"
#include "octet/tools/text.h"
#include "output.h"
#include "picture_flags.h"
#include "picture_paths.h"
#include "rendering.h"
#include "terminal_preview.h"

namespace octet::cli {
namespace {

struct GenerateArguments {
  PictureArguments picture;
  std::vector<std::string> loras;
  std::string out = "out.png";
  std::optional<int> quality;
  std::string preview;  // a file; empty: none
  std::string show = "auto";
  std::string from;  // a picture to make again; empty: none
};

// Each step's rough picture takes the place of the one before it, in a file and in the terminal.
std::function<void(const Preview&)> preview_to(const std::string& path, TerminalPreview& terminal) {
  if (path.empty() && !terminal.is_on()) return {};
  return [path, &terminal](const Preview& preview) {
    terminal.show(preview.rgb, preview.width, preview.height);
    if (path.empty()) return;
    Picture picture;
    picture.width = preview.width;
    picture.height = preview.height;
    picture.rgb = preview.rgb;
    write_picture(path, picture);
  };
}

// Where pictures go and how.
struct Destination {
  PicturePaths paths;
  int quality;
  TerminalPreview& terminal;
  std::string left_out;  // of the caption, as the picture of --from says; empty: nothing known
};

// Writes one picture more, the next of caption `index`.
void keep_picture(RenderedCaption& caption, const Destination& to, size_t index,
                  const Picture& picture) {
  const std::string& path = to.paths.of(index, picture.index);
  if (to.left_out.empty()) {
    write_picture(path, picture, to.quality);
  } else {
    Picture marked = picture;
    marked.metadata.emplace_back(kLeftOut, to.left_out);
    write_picture(path, marked, to.quality);
  }
  to.terminal.show(picture.rgb, picture.width, picture.height);
  to.terminal.end();
  caption.pictures.push_back(path);
  caption.seeds.push_back(picture.seed);
  caption.looks.push_back(picture.look);
}

// The one caption of a command: the model is released as it is used.
RenderedCaption render_one(const CommonFlags& flags, const GenerateRequest& request,
                           const std::string& name, const Destination& to,
                           const RenderCallbacks& others) {
  RenderedCaption result{.name = name};
  RenderingProgress progress(flags);
  RenderCallbacks callbacks = others;
  callbacks.progress = std::ref(progress);
  callbacks.picture = [&](const Picture& picture) { keep_picture(result, to, 0, picture); };
  result.report = generate(request, callbacks);
  return result;
}

// A list of one has no others to go on with.
void fail_caption(const CommonFlags& flags, std::vector<RenderedCaption>& results, size_t index,
                  const Sentence& sentence) {
  if (results.size() == 1) throw Error(sentence);
  RenderedCaption& result = results[index];
  result.error = with_flags(sentence, flags.app);
  say(flags, sentence);
}

bool is_waiting(const RenderedCaption& result) { return result.error.empty(); }

bool is_readable(const NamedCaption& caption) { return caption.error.empty(); }

// Those that cannot be read and those that the model does not take are told in their order, before
// anything is loaded for the others.
std::vector<Job> check_captions(const CommonFlags& flags, const Engine& engine,
                                const PictureRequest& request,
                                const std::vector<NamedCaption>& captions,
                                std::vector<RenderedCaption>& results) {
  std::vector<Job> jobs(captions.size());
  for (size_t i = 0; i < captions.size(); ++i) {
    if (!is_readable(captions[i])) {
      fail_caption(flags, results, i, captions[i].error);
      continue;
    }
    try {
      jobs[i] = engine.check(with_caption(request, captions[i]));
    } catch (const InvalidRequest& error) {
      const bool is_its_own = error.field() == "caption" || captions[i].size.has_value();
      if (!is_its_own) throw;  // wrong for all of them
      fail_caption(flags, results, i, naming(captions[i].where, error.sentence()));
    } catch (const Cancelled&) {
      throw;
    } catch (const Error& error) {
      fail_caption(flags, results, i, naming(captions[i].where, error.sentence()));
    }
  }
  return jobs;
}

void print_now(const CommonFlags& flags, const std::string& lines) {
  if (flags.json == "-") return;
  std::fputs(lines.c_str(), stdout);
  std::fflush(stdout);
}

// The pictures' names, and unless quiet their seeds.
std::string lines_of(const CommonFlags& flags, const RenderedCaption& result, bool seeded) {
  std::string lines;
  for (size_t i = 0; i < result.pictures.size(); ++i) {
    lines += printable(result.pictures[i]);
    if (!flags.quiet && seeded) lines += fmt::format(" (seed {})", result.seeds[i]);
    lines += "\n";
  }
  return lines;
}

// Of all captions; an engine knows only the one that it renders.
Cancelled stopped(const std::vector<RenderedCaption>& results, int images) {
  size_t complete = 0, asked = 0;
  for (const RenderedCaption& result : results) {
    complete += result.pictures.size();
    if (is_waiting(result)) asked += static_cast<size_t>(images);
  }
  return Cancelled(
      fmt::format("stopped on request; {} of {} pictures are complete", complete, asked));
}

// Renders captions by a model that is loaded once, and prints the names of the pictures of each as
// soon as they are written. What is wrong with a caption is said at once, and leaves the others
// alone; other errors end the work. `others` are the callbacks besides progress and pictures.
std::vector<RenderedCaption> render_list(const CommonFlags& flags, const GenerateRequest& request,
                                         const std::vector<NamedCaption>& captions,
                                         const Destination& to, const RenderCallbacks& others) {
  std::vector<RenderedCaption> results;
  for (const NamedCaption& caption : captions) {
    results.push_back({.name = caption.name, .where = caption.where});
  }
  if (std::ranges::none_of(captions, is_readable)) {
    for (size_t i = 0; i < captions.size(); ++i) fail_caption(flags, results, i, captions[i].error);
    return results;
  }
  RenderingProgress progress(flags);
  Engine engine;
  engine.load(request.model, std::ref(progress), /*lazy=*/true);
  const std::vector<Job> jobs = check_captions(flags, engine, request.picture, captions, results);
  if (std::none_of(results.begin(), results.end(), is_waiting)) return results;
  others.plan(engine.info());
  const bool seeded = request.picture.noise.empty();
  for (size_t i = 0; i < captions.size(); ++i) {
    RenderedCaption& result = results[i];
    if (!is_waiting(result)) continue;
    progress.begin(title_of({.all = captions, .is_list = true}, i));
    RenderCallbacks callbacks = others;
    callbacks.progress = std::ref(progress);
    callbacks.picture = [&](const Picture& picture) { keep_picture(result, to, i, picture); };
    // Those that were made are told whatever ends the work.
    const auto tell = [&] {
      progress.end();
      print_now(flags, lines_of(flags, result, seeded));
    };
    try {
      result.report = engine.render(jobs[i], callbacks);
    } catch (const Cancelled&) {
      tell();
      throw stopped(results, request.picture.images);
    } catch (...) {
      tell();
      throw;
    }
    tell();
  }
  return results;
}

// Warns about pictures that look like failures; other programs report these as a success.
void warn_of_looks(const CommonFlags& flags, const RenderedCaption& result) {
  for (size_t i = 0; i < result.looks.size(); ++i) {
    if (result.looks[i] == PictureLook::ordinary) continue;
    say(flags,
        fmt::format("warning: {}: {}", result.pictures[i],
                    result.looks[i] == PictureLook::constant
                        ? "it is nearly all one colour"
                        : "it looks like a card of text, perhaps a refusal, instead of a picture"));
  }
}

// Throws Error naming the captions that failed.
void check_none_failed(const std::vector<RenderedCaption>& results) {
  constexpr size_t kMostListed = 10;
  size_t failed = 0;
  std::string names;
  for (const RenderedCaption& result : results) {
    if (result.error.empty()) continue;
    if (++failed <= kMostListed) names += (failed > 1 ? "; " : "") + short_path(result.where);
  }
  if (failed == 0) return;
  if (failed > kMostListed) names += fmt::format("; and {} more", failed - kMostListed);
  throw Error(fmt::format("{} of {} captions failed: {}", failed, results.size(), names));
}

// The picture of --from has other weights than those that ran.
void warn_of_weights(const CommonFlags& flags, const FormerPicture& former,
                     const RenderedCaption& result) {
  if (!result.report || result.report->checkpoint == former.checkpoint) return;
  say(flags, fmt::format("warning: {}: was made by other weights, checkpoint {}; these are {}, and "
                         "the picture is another",
                         former.path, former.checkpoint, result.report->checkpoint));
}

void generate_pictures(const CommonFlags& flags, const GenerateArguments& arguments,
                       const std::optional<FormerPicture>& former) {
  Captions captions;
  std::string left_out;
  if (former && !are_given(arguments.picture.captions)) {
    captions.all.push_back(former->caption);
    left_out = former->left_out;
  } else {
    captions = read_captions(arguments.picture.captions);
    say_warnings(flags, captions);
  }
  GenerateRequest request = request_from(arguments.picture, flags);
  request.model.loras = loras_from(arguments.loras);
  const bool seeded = request.picture.noise.empty();
  TerminalPreview terminal(flags, arguments.show);
  const Destination to{PicturePaths(arguments.out, pictures_of(captions, request.picture, "--out")),
                       quality_for(arguments.out, arguments.quality), terminal, left_out};
  std::vector<std::string> outputs = to.paths.all();
  outputs.push_back(arguments.preview);
  std::vector<std::string> inputs = inputs_of(arguments.picture, request);
  inputs.push_back(arguments.from);
  check_outputs(flags, std::move(outputs), inputs);

  RenderCallbacks callbacks;
  callbacks.preview = preview_to(arguments.preview, terminal);
  std::set<std::string> told;  // a list has the same size for all of it
  callbacks.warning = [&](const Sentence& sentence) {
    if (told.insert(sentence.text()).second) say(flags, sentence);
  };
  std::optional<PlannedPictures> planned;
  callbacks.plan = [&](const EngineInfo& info) {
    planned = tell_plan(flags, info, request, captions.is_list);
  };
  std::vector<RenderedCaption> results;
  if (captions.is_list) {
    results = render_list(flags, request, captions.all, to, callbacks);
  } else {
    request.picture = with_caption(request.picture, captions.all.front());
    results.push_back(render_one(flags, request, captions.all.front().name, to, callbacks));
  }
  const RenderedPictures rendered{request, arguments.loras, results, planned};
  const bool any = std::any_of(results.begin(), results.end(),
                               [](const RenderedCaption& each) { return each.report.has_value(); });
  // Those of a list have been told as they were made.
  std::string text = captions.is_list ? "" : lines_of(flags, results.front(), seeded);
  if (any && !flags.quiet) {
    text += (flags.verbose ? "\n" : "") + to_text(rendered, detail_of(flags));
  }
  for (const RenderedCaption& result : results) warn_of_looks(flags, result);
  if (former) warn_of_weights(flags, *former, results.front());
  show(flags, text, json_of(flags, rendered));
  check_none_failed(results);
}

void generate_pictures(const CommonFlags& flags, GenerateArguments arguments) {
  use_configured_model(flags, arguments.picture.request.model);
  std::optional<FormerPicture> former;
  if (!arguments.from.empty()) former = take_from(flags, arguments.from, arguments.picture);
  try {
    generate_pictures(flags, arguments, former);
  } catch (const InvalidRequest& error) {
    if (!former || !former->fields.contains(error.field())) throw;
    // Nobody gave the flag of that field.
    throw Error(fmt::format("{}: its metadata: {}", former->path, error.what()));
  }
}

// --linears and --path, of which a command takes one.
void add_linears_flags(CLI::App& command, Linears& linears) {
  add_choice(command, "--linears", linears, "Precision of the networks' large linears");
  const auto set_path = [&linears](const std::string& path) {
    linears = from_word<Linears>(path).value_or(Linears::floating);
  };
  CLI::Option* path = command.add_option_function<std::string>(
      "--path", set_path,
      "The same, under the names octet map uses; auto: INT8, except where octet tune or octet "
      "map found bf16 to be faster");
  choose_from(path, {"auto", "int8", "bf16"},
              linears == Linears::floating ? "bf16" : word_of(linears));
  path->excludes(command.get_option("--linears"));
}

}  // namespace

void add_generate(CLI::App& program, CommonFlags& flags) {
  CLI::App& command = add_computing_command(program, flags, "generate",
                                            "Make images from JSON captions or plain text");
  command.get_option("--device")
      ->description(
          "Device to run on; auto is a GPU if one can be used, else the CPU; two, such as "
          "cuda:0,cuda:1, share a picture");
  const auto arguments = std::make_shared<GenerateArguments>();
  ModelOptions& model = arguments->picture.request.model;
  add_value(command, "--model", "MODEL", model.model,
            "The model: a folder in Hugging Face's layout, owner/name of a pulled one, or "
            "the file or folder of its network in any dialect (default: that of octet config)");
  add_value(command, "--lora", "FILE", arguments->loras,
            "FILE[:strength[:cond|uncond|both]], merged into the weights; several stack");
  command.add_flag("--cache-weights", model.cache_weights,
                   "Cache the INT8 weights of a model stored in another format, for later runs");
  add_picture_flags(command, arguments->picture);
  add_picture_path(
      command, "-o,--out", arguments->out,
      "Picture: .png, .jpg or .webp; may contain {name} (of the caption), {index} (of the "
      "picture), {image} (within its caption) and {seed}; otherwise names and numbers are "
      "appended for several");
  add_quality(command, arguments->quality);
  add_picture_path(command, "--preview", arguments->preview,
                   "Picture with a rough preview, rewritten after each step");
  add_show(command, arguments->show);
  add_value(command, "--from", "PICTURE", arguments->from,
            "Make this picture again from its metadata; other flags change what they say")
      ->check(no_empty_path("a picture"));
  add_linears_flags(command, model.linears);
  add_choice(command, "--text-encoder-linears", model.text_encoder_linears,
             "Precision of the text encoder's linears",
             {Linears::int8, Linears::floating, Linears::fake});
  add_choice(command, "--attention", model.attention,
             "Precision of the networks' attention: int8 for its scores, int8-full for all of it");
  add_require_int8(command, model.require_int8);
  add_choice(command, "--dtype", model.activations, "Type of the activations");
  set_group(command, kModelOptions, {"--model", "--lora", "--cache-weights"});
  set_group(command, kPictureOptions, {"--out", "--quality", "--preview", "--show", "--from"});
  set_examples(
      command,
      {"octet generate --model ideogram-ai/ideogram-4-fp8 --caption poster.json -o poster.png",
       "octet generate --model ideogram-ai/ideogram-4-fp8 -p 'a red fox in snow' --seed random -n "
       "4",
       "octet generate --model ideogram-4-int8 --base ideogram-ai/ideogram-4-fp8 --preset turbo "
       "--caption poster.json",
       "octet generate --model ideogram-ai/ideogram-4-fp8 --caption posters/ --caption more.jsonl "
       "-o 'out/{name}-{seed}.png'",
       "octet generate --model ideogram-ai/ideogram-4-fp8 --from poster.png --seed 8 -o "
       "another.png"});
  command.callback([&flags, arguments] { generate_pictures(flags, *arguments); });
}

}  // namespace octet::cli
