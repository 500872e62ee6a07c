// What ran while pictures were made, and reports of several pictures as one.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "formats/boundary.h"
#include "octet/engine.h"
#include "octet/tools/report.h"
#include "octet/version.h"
#include "report/nested.h"
#include "report/text.h"

namespace octet {

using namespace report;

static void to_json(Json& json, const KernelUse& use) {
  json = joined({OCTET_FIELDS(use, layer, path), OCTET_KNOWN_FIELDS(use, kernel),
                 OCTET_FIELDS(use, launches, us), OCTET_KNOWN_FIELDS(use, tops)});
}

OCTET_JSON(BranchUse, name, network, steps, seconds)
OCTET_JSON(OpShare, op, calls, us)

void to_json(Json& json, const LinearCount& linears) {
  json = joined({OCTET_FIELDS(linears, int8), field("protected", linears.protected_),
                 OCTET_FIELDS(linears, kept, floating, fake)});
}

void to_json(Json& json, const RenderReport& report) {
  std::vector<std::string> warnings;
  for (const Sentence& warning : report.warnings) warnings.push_back(warning.text());
  json =
      joined({field("warnings", warnings),
              OCTET_FIELDS(report, device, text_tokens, steps, checkpoint, text_s, load_s,
                           denoise_s, decode_s, ahead_s, peak_bytes),
              field("linears_ran", report.linears), field("text_linears_ran", report.text_linears),
              OCTET_FIELDS(report, recorded_steps, branches, kernels, ops)});
}

Json report::json_of(const GenerateRequest& request, const RenderReport& report) {
  const PictureRequest& picture = request.picture;
  const bool made = report.width > 0;  // else only the request is known
  const PictureSize size = made ? PictureSize{report.width, report.height} : picture.size;
  const bool seeded = picture.noise.empty();
  return {{"version", version()},
          {"commit", commit()},
          {"model", request.model.model},
          {"size", known(size.width > 0 ? fmt::format("{}x{}", size.width, size.height) : "")},
          {"caption", report.caption},
          {"negative", known(made ? report.negative : picture.negative)},
          {"preset", known(made ? report.preset : picture.preset)},
          {"guidance", picture.guidance.empty() ? Json(nullptr) : Json(picture.guidance)},
          {"seed", seeded ? Json(picture.seed) : Json(nullptr)},
          {"noise", known(picture.noise_name)}};
}

namespace {

void add_kernel(std::vector<KernelUse>& kernels, const KernelUse& use) {
  const auto key = [](const KernelUse& each) {
    return std::tie(each.layer, each.path, each.kernel);
  };
  KernelUse* const same = same_in(kernels, use, key);
  if (same == nullptr) return;
  const double operations = same->tops * same->us + use.tops * use.us;
  same->launches += use.launches;
  same->us += use.us;
  same->tops = same->us > 0 ? operations / same->us : 0;
}

void add_op(std::vector<OpShare>& ops, const OpShare& share) {
  OpShare* const same = same_in(ops, share, &OpShare::op);
  if (same == nullptr) return;
  same->calls += share.calls;
  same->us += share.us;
}

void add_branch(std::vector<BranchUse>& branches, const BranchUse& use) {
  BranchUse* const same = same_in(branches, use, &BranchUse::name);
  if (same == nullptr) return;
  same->steps += use.steps;
  same->seconds += use.seconds;
}

RenderReport total_of(const std::vector<RenderedCaption>& results) {
  std::optional<RenderReport> total;
  for (const RenderedCaption& result : results) {
    if (total && result.report) add_report(*total, *result.report);
    if (!total) total = result.report;
  }
  return total.value_or(RenderReport());
}

Json caption_json(const RenderedCaption& result, bool seeded) {
  const RenderReport report = result.report.value_or(RenderReport());
  Json figures =
      OCTET_FIELDS(report, text_tokens, text_cached, text_s, load_s, denoise_s, decode_s);
  if (!result.report) std::fill(figures.begin(), figures.end(), nullptr);
  return joined(
      {{{"name", result.name},
        {"caption", result.report ? Json(report.caption) : Json(nullptr)},
        {"size", known(report.width > 0 ? fmt::format("{}x{}", report.width, report.height) : "")},
        {"pictures", result.pictures},
        {"seeds", seeded ? Json(result.seeds) : Json(nullptr)},
        {"looks", result.looks},
        {"error", known(result.error)}},
       figures});
}

// "136 INT8, 4 protected, 16 kept in floating point"
std::string linears_text(const LinearCount& linears) {
  std::string text = fmt::format("{} INT8, {} protected, {} kept in floating point", linears.int8,
                                 linears.protected_, linears.kept);
  if (linears.floating > 0)
    text += fmt::format(", {} in floating point as requested", linears.floating);
  if (linears.fake > 0) text += fmt::format(", {} in fake INT8 as requested", linears.fake);
  return text;
}

// "all 136 large linears in native INT8", "132 of 136 large linears in native INT8"
std::string int8_share(const LinearCount& linears) {
  const int large = linears.int8 + linears.protected_ + linears.floating + linears.fake;
  if (linears.int8 == large) return fmt::format("all {} large linears in native INT8", large);
  return fmt::format("{} of {} large linears in native INT8", linears.int8, large);
}

// "4.2 s on AVX-512 ...: all 136 large linears in native INT8, 8 steps; -v shows the kernels"
std::string in_one_line(const RenderReport& report) {
  return fmt::format("{:.1f} s on {}: {}, {} per picture; -v shows the kernels\n",
                     report.text_s + report.load_s + report.denoise_s + report.decode_s,
                     report.device, int8_share(report.linears),
                     counted(static_cast<size_t>(report.steps), "step"));
}

}  // namespace

void add_report(RenderReport& total, const RenderReport& further) try {
  total.text_tokens += further.text_tokens;
  total.text_s += further.text_s;
  total.load_s += further.load_s;
  total.denoise_s += further.denoise_s;
  total.decode_s += further.decode_s;
  total.ahead_s += further.ahead_s;
  total.peak_bytes = std::max(total.peak_bytes, further.peak_bytes);
  total.recorded_steps += further.recorded_steps;
  total.warnings.insert(total.warnings.end(), further.warnings.begin(), further.warnings.end());
  for (const BranchUse& use : further.branches) add_branch(total.branches, use);
  for (const KernelUse& use : further.kernels) add_kernel(total.kernels, use);
  for (const OpShare& share : further.ops) add_op(total.ops, share);
} catch (...) {
  rethrow_as_error();
}

std::string to_json(const RenderedPictures& pictures) try {
  const bool seeded = pictures.request.picture.noise.empty();
  const RenderReport report = total_of(pictures.captions);
  Json json = report::json_of(pictures.request, report);
  if (pictures.captions.size() > 1) json["caption"] = nullptr;
  json.update(Json(report));
  json["loras"] = pictures.loras;
  json.update(report::json_of(pictures.planned.value_or(PlannedPictures())));
  json["pictures"] = Json::array();
  json["seeds"] = seeded ? Json::array() : Json(nullptr);
  json["captions"] = Json::array();
  for (const RenderedCaption& caption : pictures.captions) {
    for (const std::string& path : caption.pictures) json["pictures"].push_back(path);
    for (const uint64_t seed : caption.seeds) {
      if (seeded) json["seeds"].push_back(seed);
    }
    json["captions"].push_back(caption_json(caption, seeded));
  }
  return document("octet.generate/1", json);
} catch (...) {
  rethrow_as_error();
}

std::string to_json(const DemoPicture& picture) try {
  Json json = report::json_of(picture.request, picture.report);
  json.update(Json(picture.report));
  json["pictures"] = {picture.file};
  json["left_out"] = picture.left_out;
  json.update(report::json_of(picture.planned));
  return document("octet.demo/1", json);
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const RenderedPictures& pictures, Detail detail) try {
  std::string text = to_text(total_of(pictures.captions), detail);
  if (detail != Detail::full) return text;
  text += "\n";
  for (const std::string& lora : pictures.loras) text += "LoRA " + printable(lora) + "\n";
  return text;
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const RenderReport& report, Detail detail) try {
  if (detail != Detail::full) return in_one_line(report);
  Table kernels({"layer", "path", "kernel", "launches", "ms", "TOPS"}, 3);
  for (const KernelUse& use : report.kernels) {
    kernels.add({use.layer, use.path, use.kernel.empty() ? "-" : use.kernel,
                 std::to_string(use.launches), short_number(use.us * 1e-3),
                 short_number(use.tops)});
  }
  const std::string recorded =
      report.recorded_steps == 0
          ? ""
          : fmt::format("{} replayed from a recording and not counted here.\n",
                        counted(static_cast<size_t>(report.recorded_steps), "step"));
  const LinearCount& of_text = report.text_linears;
  const std::string text_linears =
      of_text.int8 + of_text.fake == 0 ? "" : "Text encoder: " + linears_text(of_text) + "\n";
  return fmt::format(
      "{}\n\n{}{}\nLinears: {}\n{}Weights: {}\nText encoder {:.1f} s ({} tokens), loading {:.1f} "
      "s, {} {:.1f} s, decoding {:.1f} s; peak memory {}; checkpoint {}\n",
      report.device, kernels.text(), recorded, linears_text(report.linears), text_linears,
      report.places, report.text_s, report.text_tokens, report.load_s,
      counted(static_cast<size_t>(report.steps), "step"), report.denoise_s, report.decode_s,
      human_bytes(report.peak_bytes), report.checkpoint);
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
