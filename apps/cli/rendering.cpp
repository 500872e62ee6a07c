#include "rendering.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

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

std::string note_of(const RenderProgress& progress) {
  if (progress.stage != Stage::denoise || !(progress.seconds > 0)) return "";
  return fmt::format("{:.2f} s per step", progress.seconds);
}

}  // namespace

RenderingProgress::RenderingProgress(const CommonFlags& flags) : quiet_(flags.quiet) {}

bool RenderingProgress::operator()(const RenderProgress& progress) {
  const StageWords words = words_for(progress.stage);
  return show({.title = words.title,
               .unit = words.unit,
               .done = progress.done,
               .total = progress.total,
               .note = note_of(progress),
               .left_s = progress.eta_s});
}

bool RenderingProgress::show(const Work& work) {
  if (stop_signal_.was_sent()) return false;
  if (quiet_) return true;
  const auto [unit, divisor] = unit_for(work);
  const std::string title = prefix_ + work.title;
  // The parts are loaded one after the other: each has a bar.
  if (!progress_ || title_ != title || work.done < done_) {
    progress_.reset();
    progress_.emplace(title, work.total / divisor, unit, stderr, work.done / divisor);
  }
  title_ = title;
  done_ = work.done;
  progress_->update(work.done / divisor, work.note, work.left_s);
  return true;
}

PlannedPictures tell_plan(const CommonFlags& flags, const EngineInfo& info,
                          const GenerateRequest& request, bool several) {
  const PictureSize size = request.picture.size.width > 0 ? request.picture.size : info.size;
  PlannedPictures planned{info, predicted_step_ms(info, request.model, size)};
  const bool all_stay = std::ranges::all_of(
      info.plan, [](const PartPlace& part) { return part.where == Residency::device; });
  const bool is_news = info.streamed_bytes > 0 || (several && !all_stay);
  if (flags.verbose || (!flags.quiet && is_news)) std::fputs(to_text(planned).c_str(), stderr);
  return planned;
}

}  // namespace octet::cli
