#include "convert/calibration_job.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.h"
#include "base/file_identity.h"
#include "models/ideogram4/streamed_dit.h"
#include "models/qwen3/chat_prompt.h"
#include "weights/fingerprint.h"

namespace octet::convert {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostRows = 65536;

class InputWidths : public nn::WeightVisitor {
 public:
  explicit InputWidths(std::string branch) : branch_(std::move(branch)) {}
  const std::map<std::string, int64_t>& widths() const { return widths_; }

  void linear(nn::Linear&, const nn::LinearSpec& spec) override {
    widths_[branch_ + "." + spec.name()] = spec.k;
  }
  void conv(nn::Conv&, const nn::ConvSpec&) override {}
  void vector(nn::Vector&, const std::string&, int64_t) override {}
  void table(nn::Table&, const std::string&, int64_t, int64_t) override {}

 private:
  std::string branch_;
  std::map<std::string, int64_t> widths_;
};

// Name and identity of each file of a part.
nlohmann::json files_of(const std::string& path) {
  std::vector<fs::path> files;
  // An index names files beside it.
  const fs::path folder = path.ends_with(".json") ? fs::path(path).parent_path() : fs::path(path);
  std::error_code error;
  if (fs::is_directory(folder, error)) {
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      files.push_back(it->path());
    }
  } else {
    files.push_back(folder);
  }
  std::sort(files.begin(), files.end());
  nlohmann::json list = nlohmann::json::array();
  for (const fs::path& file : files) {
    if (!fs::is_regular_file(file, error)) continue;
    list.push_back({file.filename().string(), identity_of(MappedFile(file.string()))});
  }
  return list;
}

}  // namespace

CalibrationJob::CalibrationJob(const CalibrateRequest& request_, DType dtype_)
    : request(request_),
      dtype(dtype_),
      parts(open_parts(request.folders, !request.conditional_only)) {
  check(!request.captions.empty(), "calibration: there are no captions, expected one or more");
  check(request.rows >= 1 && request.rows <= kMostRows,
        "calibration: {} rows of each linear, expected 1 to {}", request.rows, kMostRows);
  check_image_size(request.size, engine::size_limits(request.folders, request.convention));
  for (const std::string& caption : request.captions) {
    tokens.push_back(qwen3::encode_caption(parts.tokenizer, caption));
  }
  grid_height = request.size.height / parts.token_side();
  grid_width = request.size.width / parts.token_side();
  ideogram4::ScheduleRequest asked = request.schedule;
  asked.width = request.size.width;
  asked.height = request.size.height;
  asked.convention = request.convention;
  if (request.conditional_only) asked.guidance = {1};
  schedule = make_schedule(asked);
  guided_steps =
      schedule.steps() - std::count(schedule.guidance.begin(), schedule.guidance.end(), 1.0f);
  check(request.conditional_only || guided_steps > 0,
        "calibration: no step is guided, and the unconditional transformer would not run; give a "
        "guidance other than 1");
}

std::string CalibrationJob::key(ThreadPool& pool) const {
  const ideogram4::ModelFolders& folders = request.folders;
  nlohmann::json files;
  for (const std::string* path :
       {&folders.transformer.path, &folders.transformer.base, &folders.unconditional.path,
        &folders.unconditional.base, &folders.text_encoder, &folders.tokenizer}) {
    files.push_back(path->empty() ? nlohmann::json() : files_of(*path));
  }
  const nlohmann::json about = {{"files", files},
                                {"captions", request.captions},
                                {"grid", {grid_height, grid_width}},
                                {"times", schedule.times},
                                {"deltas", schedule.deltas},
                                {"guidance", schedule.guidance},
                                {"seed", request.seed},
                                {"rows", request.rows},
                                {"conditional_only", request.conditional_only},
                                {"dtype", name_of(dtype)}};
  // Names of files need not be UTF-8.
  const std::string text = about.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  weights::Fingerprint fingerprint;
  fingerprint.add("calibration", std::as_bytes(std::span(text)), pool);
  return fingerprint.to_string();
}

std::map<std::string, int64_t> CalibrationJob::input_widths() const {
  std::map<std::string, int64_t> widths;
  for (int64_t branch = 0; branch < branches(); ++branch) {
    const bool conditional = branch == 0;
    ideogram4::Dit dit;
    dit.config = parts.dit;
    InputWidths list(conditional ? kConditional : kUnconditional);
    visit_weights(dit, conditional, list);
    widths.insert(list.widths().begin(), list.widths().end());
  }
  return widths;
}

uint64_t CalibrationJob::block_bytes() const {
  return ideogram4::memory_of(parts.dit, /*conditional=*/true, dtype).block;
}

CalibrateMemory CalibrationJob::memory() const {
  const ideogram4::DitConfig& dit = parts.dit;
  const qwen3::TextConfig& text = parts.text_encoder.config();
  const int64_t each = bits_of(dtype) / 8;
  int64_t most_text = 0;
  for (const auto& ids : tokens) most_text = std::max(most_text, std::ssize(ids));
  // The largest part of the text encoder, and its features, twice on their way.
  const int64_t encoding =
      text.vocabulary * text.hidden * each + 2 * most_text * dit.text_features * 4;
  // In a block: the hidden state, its norm, q, k, v, their mixture and what becomes of it, or
  // gate, up and their product.
  const int64_t denoising = (most_text + image_tokens()) * (7 * dit.hidden() + 3 * dit.ffn) * each;
  int64_t kept = 0;
  for (const auto& [name, k] : input_widths()) kept += (request.rows + 1) * k * 4;
  auto least = static_cast<uint64_t>(kept + std::max(encoding, denoising)) + block_bytes();
  for (int64_t branch = 0; branch < branches(); ++branch) {
    least += ideogram4::memory_of(dit, /*conditional=*/branch == 0, dtype).frame;
  }
  const auto blocks = static_cast<uint64_t>(branches() * dit.layers);
  return {.most = least + (blocks - 1) * block_bytes(), .least = least};
}

}  // namespace octet::convert
