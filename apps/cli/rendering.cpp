#include "rendering.h"

#include <fmt/format.h>

#include <cmath>
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

}  // namespace octet::cli
