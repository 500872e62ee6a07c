#include "rendering.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

#include "octet/version.h"
#include "output.h"

namespace octet::cli {
namespace {

struct StageWords {
  const char *title, *unit;
};

StageWords words_for(Stage stage) {
  switch (stage) {
    case Stage::text: return {"text encoder", "layers"};
    case Stage::load: return {"loading", "bytes"};
    case Stage::denoise: return {"denoising", "steps"};
    case Stage::decode: return {"decoding", "images"};
  }
  return {"", ""};
}

// Bytes are counted in a unit of which there are some.
std::pair<std::string, int64_t> unit_for(const RenderingProgress::Work& work) {
  if (work.unit != "bytes") return {work.unit, 1};
  constexpr int64_t kKilobyte = 1000, kMegabyte = 1'000'000;
  if (work.total < 100 * kKilobyte) return {"bytes", 1};
  if (work.total < 100 * kMegabyte) return {"kB", kKilobyte};
  return {"MB", kMegabyte};
}

// "45 s", "3 min", "1 h 20 min"
std::string rough_time(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  constexpr int64_t kMinute = 60, kHour = 3600;
  if (whole < 2 * kMinute) return fmt::format("{} s", whole);
  if (whole < 2 * kHour) return fmt::format("{} min", (whole + kMinute - 1) / kMinute);
  return fmt::format("{} h {} min", whole / kHour, whole % kHour / kMinute);
}

std::string note_of(const RenderProgress& progress) {
  if (progress.stage != Stage::denoise || !(progress.seconds > 0)) return "";
  std::string note = fmt::format("{:.2f} s per step", progress.seconds);
  if (progress.eta_s >= 0) note += fmt::format(", {} left", rough_time(progress.eta_s));
  return note;
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

nlohmann::ordered_json linears_json(const LinearCount& linears) {
  return {{"int8", linears.int8},
          {"protected", linears.protected_},
          {"kept", linears.kept},
          {"floating", linears.floating},
          {"fake", linears.fake}};
}

}  // namespace

RenderingProgress::RenderingProgress(const CommonFlags& flags) : quiet_(flags.quiet) {}

bool RenderingProgress::operator()(const RenderProgress& progress) {
  const StageWords words = words_for(progress.stage);
  return show({.title = words.title,
               .unit = words.unit,
               .done = progress.done,
               .total = progress.total,
               .note = note_of(progress)});
}

bool RenderingProgress::show(const Work& work) {
  if (stop_signal_.was_sent()) return false;
  if (quiet_) return true;
  const auto [unit, divisor] = unit_for(work);
  const std::string title = prefix_ + work.title;
  // The parts are loaded one after the other: each has a bar.
  if (!progress_ || title_ != title || work.done < done_) {
    progress_.reset();
    progress_.emplace(title, work.total / divisor, unit);
  }
  title_ = title;
  done_ = work.done;
  progress_->update(work.done / divisor, work.note);
  return true;
}

std::string report_text(const RenderReport& report) {
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
}

nlohmann::ordered_json report_json(const RenderReport& report) {
  auto branches = nlohmann::ordered_json::array();
  for (const BranchUse& use : report.branches) {
    branches.push_back({{"name", use.name},
                        {"network", use.network},
                        {"steps", use.steps},
                        {"seconds", use.seconds}});
  }
  auto kernels = nlohmann::ordered_json::array();
  for (const KernelUse& use : report.kernels) {
    kernels.push_back({{"layer", use.layer},
                       {"path", use.path},
                       {"kernel", known(use.kernel)},
                       {"launches", use.launches},
                       {"us", use.us},
                       {"tops", known(use.tops)}});
  }
  auto ops = nlohmann::ordered_json::array();
  for (const OpShare& share : report.ops) {
    ops.push_back({{"op", share.op}, {"calls", share.calls}, {"us", share.us}});
  }
  return {{"device", report.device},
          {"text_tokens", report.text_tokens},
          {"steps", report.steps},
          {"checkpoint", report.checkpoint},
          {"text_s", report.text_s},
          {"load_s", report.load_s},
          {"denoise_s", report.denoise_s},
          {"decode_s", report.decode_s},
          {"peak_bytes", report.peak_bytes},
          {"linears_ran", linears_json(report.linears)},
          {"text_linears_ran", linears_json(report.text_linears)},
          {"recorded_steps", report.recorded_steps},
          {"branches", branches},
          {"kernels", kernels},
          {"ops", ops}};
}

nlohmann::ordered_json request_json(const GenerateRequest& request, const RenderReport& report) {
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
          {"guidance", picture.guidance.empty() ? nlohmann::ordered_json(nullptr)
                                                : nlohmann::ordered_json(picture.guidance)},
          {"seed", seeded ? nlohmann::ordered_json(picture.seed) : nlohmann::ordered_json(nullptr)},
          {"noise", known(picture.noise_name)}};
}

}  // namespace octet::cli
