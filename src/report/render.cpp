// What ran while pictures were made; reports of several pictures as one.
#include "report/render.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "octet/version.h"
#include "report/text.h"

namespace octet {
namespace report {
namespace {

Json use_json(const KernelUse& use) {
  return {{"layer", use.layer},       {"path", use.path}, {"kernel", known(use.kernel)},
          {"launches", use.launches}, {"us", use.us},     {"tops", known(use.tops)}};
}

Json branch_json(const BranchUse& use) {
  return {
      {"name", use.name}, {"network", use.network}, {"steps", use.steps}, {"seconds", use.seconds}};
}

Json op_json(const OpShare& share) {
  return {{"op", share.op}, {"calls", share.calls}, {"us", share.us}};
}

}  // namespace

Json json_of(const LinearCount& linears) {
  return {{"int8", linears.int8},
          {"protected", linears.protected_},
          {"kept", linears.kept},
          {"floating", linears.floating},
          {"fake", linears.fake}};
}

Json json_of(const RenderReport& report) {
  return {{"device", report.device},
          {"text_tokens", report.text_tokens},
          {"steps", report.steps},
          {"checkpoint", report.checkpoint},
          {"text_s", report.text_s},
          {"load_s", report.load_s},
          {"denoise_s", report.denoise_s},
          {"decode_s", report.decode_s},
          {"peak_bytes", report.peak_bytes},
          {"linears_ran", json_of(report.linears)},
          {"text_linears_ran", json_of(report.text_linears)},
          {"recorded_steps", report.recorded_steps},
          {"branches", list_of(report.branches, branch_json)},
          {"kernels", list_of(report.kernels, use_json)},
          {"ops", list_of(report.ops, op_json)}};
}

Json json_of(const GenerateRequest& request, const RenderReport& report) {
  const PictureRequest& picture = request.picture;
  const bool made = report.width > 0;  // else what was asked for is all that is known
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

}  // namespace report

namespace {

using namespace report;

void add_kernel(std::vector<KernelUse>& kernels, const KernelUse& use) {
  const auto same = std::find_if(kernels.begin(), kernels.end(), [&](const KernelUse& each) {
    return each.layer == use.layer && each.path == use.path && each.kernel == use.kernel;
  });
  if (same == kernels.end()) {
    kernels.push_back(use);
    return;
  }
  const double operations = same->tops * same->us + use.tops * use.us;
  same->launches += use.launches;
  same->us += use.us;
  same->tops = same->us > 0 ? operations / same->us : 0;
}

void add_op(std::vector<OpShare>& ops, const OpShare& share) {
  const auto same = std::find_if(ops.begin(), ops.end(),
                                 [&](const OpShare& each) { return each.op == share.op; });
  if (same == ops.end()) {
    ops.push_back(share);
    return;
  }
  same->calls += share.calls;
  same->us += share.us;
}

void add_branch(std::vector<BranchUse>& branches, const BranchUse& use) {
  const auto same = std::find_if(branches.begin(), branches.end(),
                                 [&](const BranchUse& each) { return each.name == use.name; });
  if (same == branches.end()) {
    branches.push_back(use);
    return;
  }
  same->steps += use.steps;
  same->seconds += use.seconds;
}

RenderReport total_of(const std::vector<RenderedCaption>& results) {
  RenderReport total;
  bool is_first = true;
  for (const RenderedCaption& result : results) {
    if (!result.report) continue;
    if (is_first) {
      total = *result.report;
    } else {
      add_report(total, *result.report);
    }
    is_first = false;
  }
  return total;
}

Json caption_json(const RenderedCaption& result, bool seeded) {
  auto looks = Json::array();
  for (const PictureLook look : result.looks) looks.push_back(word_of(look));
  Json json = {{"name", result.name},
               {"caption", nullptr},
               {"pictures", result.pictures},
               {"seeds", seeded ? Json(result.seeds) : Json(nullptr)},
               {"looks", looks},
               {"error", known(result.error)}};
  if (result.report) json["caption"] = result.report->caption;
  const auto add = [&](const char* field, auto RenderReport::*value) {
    json[field] = result.report ? Json(*result.report.*value) : Json(nullptr);
  };
  add("text_tokens", &RenderReport::text_tokens);
  add("text_cached", &RenderReport::text_cached);
  add("text_s", &RenderReport::text_s);
  add("load_s", &RenderReport::load_s);
  add("denoise_s", &RenderReport::denoise_s);
  add("decode_s", &RenderReport::decode_s);
  return json;
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

}  // namespace

void add_report(RenderReport& total, const RenderReport& further) try {
  total.text_tokens += further.text_tokens;
  total.text_s += further.text_s;
  total.load_s += further.load_s;
  total.denoise_s += further.denoise_s;
  total.decode_s += further.decode_s;
  total.peak_bytes = std::max(total.peak_bytes, further.peak_bytes);
  total.recorded_steps += further.recorded_steps;
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
  json.update(report::json_of(report));
  json["loras"] = pictures.loras;
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
  json.update(report::json_of(picture.report));
  json["pictures"] = {picture.file};
  return document("octet.demo/1", json);
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const RenderedPictures& pictures) try {
  std::string text = to_text(total_of(pictures.captions)) + "\n";
  for (const std::string& lora : pictures.loras) text += "LoRA " + printable(lora) + "\n";
  return text;
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const RenderReport& report) try {
  Table kernels({"layer", "path", "kernel", "launches", "ms", "TOPS"}, 3);
  for (const KernelUse& use : report.kernels) {
    kernels.add({use.layer, use.path, use.kernel.empty() ? "-" : use.kernel,
                 std::to_string(use.launches), short_number(use.us * 1e-3),
                 short_number(use.tops)});
  }
  const std::string recorded =
      report.recorded_steps == 0
          ? ""
          : fmt::format("{} steps were replayed from a recording and are not counted here.\n",
                        report.recorded_steps);
  const LinearCount& of_text = report.text_linears;
  const std::string text_linears =
      of_text.int8 + of_text.fake == 0 ? "" : "Text encoder: " + linears_text(of_text) + "\n";
  return fmt::format(
      "{}\n\n{}{}\nLinears: {}\n{}Weights: {}\nText encoder {:.1f} s ({} tokens), loading {:.1f} "
      "s, {} steps {:.1f} s, decoding {:.1f} s; peak memory {}; checkpoint {}\n",
      report.device, kernels.text(), recorded, linears_text(report.linears), text_linears,
      report.places, report.text_s, report.text_tokens, report.load_s, report.steps,
      report.denoise_s, report.decode_s, human_bytes(report.peak_bytes), report.checkpoint);
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
