#include "caption_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>

#include "field_names.h"
#include "octet/error.h"
#include "octet/tools/text.h"
#include "output.h"
#include "picture_flags.h"
#include "rendering.h"

namespace octet::cli {
namespace {

// A list of one has no others to go on with.
void fail_caption(const CommonFlags& flags, std::vector<RenderedCaption>& results, size_t index,
                  const Sentence& sentence) {
  if (results.size() == 1) throw Error(sentence);
  RenderedCaption& result = results[index];
  result.error = with_flags(sentence, flags.app);
  say(flags, sentence);
}

bool is_waiting(const RenderedCaption& result) { return result.error.empty(); }

// Those that the model does not take are told before anything is loaded for the others.
std::vector<Job> check_captions(const CommonFlags& flags, const Engine& engine,
                                const PictureRequest& request,
                                const std::vector<NamedCaption>& captions,
                                std::vector<RenderedCaption>& results) {
  std::vector<Job> jobs(captions.size());
  for (size_t i = 0; i < captions.size(); ++i) {
    if (!is_waiting(results[i])) continue;
    try {
      jobs[i] = engine.check(with_caption(request, captions[i]));
    } catch (const InvalidRequest& error) {
      if (error.field() != "caption") throw;  // wrong for all of them
      fail_caption(flags, results, i, error.sentence());
    } catch (const Cancelled&) {
      throw;
    } catch (const Error& error) {
      fail_caption(flags, results, i, error.sentence());
    }
  }
  return jobs;
}

void print_now(const CommonFlags& flags, const std::string& lines) {
  if (flags.json == "-") return;
  std::fputs(lines.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

std::vector<CaptionText> texts_of(const Captions& captions) {
  std::vector<CaptionText> texts;
  for (const NamedCaption& caption : captions.all) {
    if (!caption.error.empty()) throw Error(caption.error);
    texts.push_back({.name = caption.name, .where = caption.where, .text = caption.text});
  }
  return texts;
}

std::string title_of(const Captions& captions, size_t caption) {
  if (!captions.is_list) return "";
  return fmt::format("{}/{} {}: ", caption + 1, captions.all.size(),
                     printable(captions.all[caption].name));
}

void add_picture(RenderedCaption& caption, const std::string& path, const Picture& picture) {
  caption.pictures.push_back(path);
  caption.seeds.push_back(picture.seed);
  caption.looks.push_back(picture.look);
}

std::vector<RenderedCaption> render_list(const CommonFlags& flags, const GenerateRequest& request,
                                         const std::vector<NamedCaption>& captions,
                                         const PicturePaths& paths, const RenderCallbacks& others) {
  std::vector<RenderedCaption> results;
  for (const NamedCaption& caption : captions) {
    results.push_back({.name = caption.name, .where = caption.where});
  }
  for (size_t i = 0; i < captions.size(); ++i) {
    if (!captions[i].error.empty()) fail_caption(flags, results, i, captions[i].error);
  }
  if (std::none_of(results.begin(), results.end(), is_waiting)) return results;
  RenderingProgress progress(flags);
  Engine engine;
  engine.load(request.model, std::ref(progress), /*lazy=*/true);
  const std::vector<Job> jobs = check_captions(flags, engine, request.picture, captions, results);
  if (std::none_of(results.begin(), results.end(), is_waiting)) return results;
  if (!flags.quiet) std::fputs(plan_text(engine.info()).c_str(), stderr);
  const bool seeded = request.picture.noise.empty();
  for (size_t i = 0; i < captions.size(); ++i) {
    RenderedCaption& result = results[i];
    if (!is_waiting(result)) continue;
    progress.begin(title_of({.all = captions, .is_list = true}, i));
    RenderCallbacks callbacks = others;
    callbacks.progress = std::ref(progress);
    callbacks.picture = [&](const Picture& picture) {
      write_picture(paths.of(i, picture.index), picture);
      add_picture(result, paths.of(i, picture.index), picture);
    };
    try {
      result.report = engine.render(jobs[i], callbacks);
    } catch (...) {
      // Those that were made are told all the same.
      progress.end();
      print_now(flags, lines_of(flags, result, seeded));
      throw;
    }
    progress.end();
    print_now(flags, lines_of(flags, result, seeded));
  }
  return results;
}

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

std::string lines_of(const CommonFlags& flags, const RenderedCaption& result, bool seeded) {
  std::string lines;
  for (size_t i = 0; i < result.pictures.size(); ++i) {
    lines += printable(result.pictures[i]);
    if (!flags.quiet && seeded) lines += fmt::format(" (seed {})", result.seeds[i]);
    lines += "\n";
  }
  return lines;
}

void check_none_failed(const std::vector<RenderedCaption>& results) {
  constexpr size_t kMostListed = 10;
  size_t failed = 0;
  std::string names;
  for (const RenderedCaption& result : results) {
    if (result.error.empty()) continue;
    if (++failed <= kMostListed) names += (failed > 1 ? "; " : "") + result.where;
  }
  if (failed == 0) return;
  if (failed > kMostListed) names += fmt::format("; and {} more", failed - kMostListed);
  throw Error(fmt::format("{} of {} captions failed: {}", failed, results.size(), names));
}

}  // namespace octet::cli
