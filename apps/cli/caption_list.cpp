#include "caption_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>

#include "field_names.h"
#include "octet/error.h"
#include "octet/invalid_request.h"
#include "octet/text.h"
#include "output.h"
#include "picture_flags.h"
#include "rendering.h"

namespace octet::cli {
namespace {

// A list of one has no others to go on with.
void fail_caption(const CommonFlags& flags, std::vector<CaptionResult>& results, size_t index,
                  const std::string& sentence) {
  if (results.size() == 1) throw Error(sentence);
  CaptionResult& result = results[index];
  result.error = with_flags(sentence, *flags.app);
  say(flags, sentence);
}

bool is_waiting(const CaptionResult& result) { return result.error.empty(); }

// Those that the model does not take are told before anything is loaded for the others.
void check_captions(const CommonFlags& flags, Engine& engine, const PictureRequest& request,
                    const std::vector<NamedCaption>& captions,
                    std::vector<CaptionResult>& results) {
  for (size_t i = 0; i < captions.size(); ++i) {
    if (!is_waiting(results[i])) continue;
    try {
      engine.check(with_caption(request, captions[i]));
    } catch (const InvalidRequest& error) {
      if (error.field() != "caption") throw;  // wrong for all of them
      fail_caption(flags, results, i, error.what());
    } catch (const Cancelled&) {
      throw;
    } catch (const Error& error) {
      fail_caption(flags, results, i, error.what());
    }
  }
}

void print_now(const CommonFlags& flags, const std::string& lines) {
  if (flags.json == "-") return;
  std::fputs(lines.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

std::vector<CaptionResult> render_list(const CommonFlags& flags, const GenerateRequest& request,
                                       const std::vector<NamedCaption>& captions,
                                       const PicturePaths& paths, const RenderCallbacks& others) {
  std::vector<CaptionResult> results;
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
  check_captions(flags, engine, request.picture, captions, results);
  if (std::none_of(results.begin(), results.end(), is_waiting)) return results;
  if (!flags.quiet) std::fputs(plan_text(engine.info()).c_str(), stderr);
  const bool seeded = request.picture.noise.empty();
  for (size_t i = 0; i < captions.size(); ++i) {
    CaptionResult& result = results[i];
    if (!is_waiting(result)) continue;
    progress.begin(fmt::format("{}/{} {}: ", i + 1, captions.size(), printable(result.name)));
    RenderCallbacks callbacks = others;
    callbacks.progress = std::ref(progress);
    callbacks.picture = [&](const Picture& picture) {
      write_picture(paths.of(i, picture.index), picture);
      result.add(paths.of(i, picture.index), picture);
    };
    try {
      result.report = engine.render(with_caption(request.picture, captions[i]), callbacks);
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

RenderReport total_of(const std::vector<CaptionResult>& results) {
  RenderReport total;
  bool is_first = true;
  for (const CaptionResult& result : results) {
    if (!result.report) continue;
    const RenderReport& report = *result.report;
    if (is_first) {
      total = report;
      is_first = false;
      continue;
    }
    total.text_tokens += report.text_tokens;
    total.text_s += report.text_s;
    total.load_s += report.load_s;
    total.denoise_s += report.denoise_s;
    total.decode_s += report.decode_s;
    total.peak_bytes = std::max(total.peak_bytes, report.peak_bytes);
    for (const KernelUse& use : report.kernels) {
      const auto same =
          std::find_if(total.kernels.begin(), total.kernels.end(), [&](const KernelUse& each) {
            return each.layer == use.layer && each.path == use.path && each.kernel == use.kernel;
          });
      if (same == total.kernels.end()) {
        total.kernels.push_back(use);
        continue;
      }
      const double operations = same->tops * same->us + use.tops * use.us;
      same->launches += use.launches;
      same->us += use.us;
      same->tops = same->us > 0 ? operations / same->us : 0;
    }
    for (const OpShare& share : report.ops) {
      const auto same = std::find_if(total.ops.begin(), total.ops.end(),
                                     [&](const OpShare& each) { return each.op == share.op; });
      if (same == total.ops.end()) {
        total.ops.push_back(share);
        continue;
      }
      same->calls += share.calls;
      same->us += share.us;
    }
  }
  return total;
}

std::string lines_of(const CommonFlags& flags, const CaptionResult& result, bool seeded) {
  std::string lines;
  for (size_t i = 0; i < result.pictures.size(); ++i) {
    lines += printable(result.pictures[i]);
    if (!flags.quiet && seeded) lines += fmt::format(" (seed {})", result.seeds[i]);
    lines += "\n";
  }
  return lines;
}

nlohmann::ordered_json caption_json(const CaptionResult& result, bool seeded) {
  nlohmann::ordered_json json = {
      {"name", result.name},
      {"caption", nullptr},
      {"pictures", result.pictures},
      {"seeds", seeded ? nlohmann::ordered_json(result.seeds) : nlohmann::ordered_json(nullptr)},
      {"error", known(result.error)}};
  if (result.report) json["caption"] = result.report->caption;
  const auto add = [&](const char* field, auto RenderReport::*value) {
    json[field] = result.report ? nlohmann::ordered_json(*result.report.*value)
                                : nlohmann::ordered_json(nullptr);
  };
  add("text_tokens", &RenderReport::text_tokens);
  add("text_cached", &RenderReport::text_cached);
  add("text_s", &RenderReport::text_s);
  add("load_s", &RenderReport::load_s);
  add("denoise_s", &RenderReport::denoise_s);
  add("decode_s", &RenderReport::decode_s);
  return json;
}

void check_none_failed(const std::vector<CaptionResult>& results) {
  constexpr size_t kMostListed = 10;
  size_t failed = 0;
  std::string names;
  for (const CaptionResult& result : results) {
    if (result.error.empty()) continue;
    if (++failed <= kMostListed) names += (failed > 1 ? "; " : "") + result.where;
  }
  if (failed == 0) return;
  if (failed > kMostListed) names += fmt::format("; and {} more", failed - kMostListed);
  throw Error(fmt::format("{} of {} captions failed: {}", failed, results.size(), names));
}

}  // namespace octet::cli
