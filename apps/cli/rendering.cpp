#include "rendering.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "octet/version.h"
#include "output.h"

namespace octet::cli {
namespace {

std::string title_of(const std::string& stage) {
  if (stage == "text") return "text encoder";
  if (stage == "load") return "transformer";
  if (stage == "denoise") return "denoising";
  if (stage == "decode") return "decoding";
  return stage;  // of other commands: "measure", "write", ...
}

// Bytes are counted in a unit of which there are some.
std::pair<std::string, int64_t> unit_for(const GenerateStep& step) {
  if (step.unit != "bytes") return {step.unit, 1};
  constexpr int64_t kKilobyte = 1000, kMegabyte = 1'000'000;
  if (step.total < 100 * kKilobyte) return {"bytes", 1};
  if (step.total < 100 * kMegabyte) return {"kB", kKilobyte};
  return {"MB", kMegabyte};
}

}  // namespace

RenderingProgress::RenderingProgress(const CommonFlags& flags) : quiet_(flags.quiet) {}

bool RenderingProgress::operator()(const GenerateStep& step) {
  if (stop_signal_.was_sent()) return false;
  if (quiet_) return true;
  const auto [unit, divisor] = unit_for(step);
  // The two transformers are loaded one after the other: each has a bar.
  if (stage_ != step.stage || step.done < done_) {
    progress_.reset();
    progress_.emplace(prefix_ + title_of(step.stage), step.total / divisor, unit);
  }
  stage_ = step.stage;
  done_ = step.done;
  progress_->update(step.done / divisor,
                    step.seconds > 0 ? fmt::format("{:.2f} s per step", step.seconds) : "");
  return true;
}

void add_picture_path(CLI::App& command, std::string& path, const std::string& help) {
  command.add_option("-o,--out", path, help)
      ->type_name("FILE")
      ->capture_default_str()
      ->check([](const std::string& given) {
        if (given.empty()) return std::string("the path is empty, expected a PNG file");
        std::string extension = std::filesystem::path(given).extension().string();
        std::transform(extension.begin(), extension.end(), extension.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        for (const char* other : {".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff"}) {
          if (extension != other) continue;
          return fmt::format("'{}' would be a PNG under another name, expected .png", given);
        }
        return std::string();
      });
}

std::string picture_path(const std::string& path, int index, int images) {
  if (images == 1) return path;
  const std::filesystem::path whole(path);
  const std::string name =
      fmt::format("{}-{}{}", whole.stem().string(), index + 1, whole.extension().string());
  return (whole.parent_path() / name).string();
}

std::string report_text(const GenerateReport& report) {
  Table kernels({"layer", "path", "kernel", "launches", "ms", "TOPS"}, 3);
  for (const KernelUse& use : report.kernels) {
    kernels.add({use.layer, use.path, use.kernel.empty() ? "-" : use.kernel,
                 std::to_string(use.launches), short_number(use.us * 1e-3),
                 short_number(use.tops)});
  }
  return fmt::format(
      "{}\n\n{}\nText encoder {:.1f} s ({} tokens), loading {:.1f} s, {} steps {:.1f} s, decoding "
      "{:.1f} s; peak memory {}; checkpoint {}\n",
      report.device, kernels.text(), report.text_s, report.text_tokens, report.load_s, report.steps,
      report.denoise_s, report.decode_s, human_bytes(report.peak_bytes), report.checkpoint);
}

nlohmann::ordered_json report_json(const GenerateReport& report) {
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
          {"kernels", kernels},
          {"ops", ops}};
}

nlohmann::ordered_json request_json(const GenerateRequest& request, const GenerateReport& report) {
  using Json = nlohmann::ordered_json;
  const bool seeded = request.noise_file.empty();
  return {{"version", version()},
          {"commit", commit()},
          {"model", request.model},
          {"size", fmt::format("{}x{}", report.width, report.height)},
          {"caption", report.caption},
          {"preset", request.preset},
          {"guidance", request.guidance.empty() ? Json(nullptr) : Json(request.guidance)},
          {"seed", seeded ? Json(request.seed) : Json(nullptr)},
          {"noise", known(request.noise_file)}};
}

}  // namespace octet::cli
