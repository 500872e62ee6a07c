#include "convert/calibration_job.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/error.h"
#include "base/file_identity.h"
#include "base/folder.h"
#include "formats/json_value.h"
#include "nn/linear_list.h"
#include "weights/fingerprint.h"
#include "weights/random_weights.h"

namespace octet::convert {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostRows = 65536;

// Name and identity of each file of a part.
nlohmann::json files_of(const std::string& path) {
  std::vector<fs::path> files;
  // An index names files next to it.
  const fs::path folder = path.ends_with(".json") ? fs::path(path).parent_path() : fs::path(path);
  std::error_code error;
  if (fs::is_directory(folder, error)) {
    for (const std::string& name : names_in(folder.string(), error)) files.push_back(folder / name);
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

// In a backend's memory, in floating point.
uint64_t bytes_of_unit(models::Part& part, int64_t unit, DType dtype) {
  weights::WeightCount count(dtype, /*int8=*/false);
  part.visit(unit, count);
  return static_cast<uint64_t>(count.bytes());
}

// Channels of all that goes into the large linears of a unit, and comes out.
int64_t channels_of_unit(models::Part& part, int64_t unit) {
  nn::LinearList list;
  part.visit(unit, list);
  int64_t channels = 0;
  for (const nn::LinearSpec& spec : list.linears()) {
    if (spec.large) channels += spec.n() + spec.k;
  }
  return channels;
}

}  // namespace

CalibrationJob::CalibrationJob(const CalibrateRequest& request_, DType dtype_)
    : request(request_),
      dtype(dtype_),
      model(request.family->open(
          request.files, {.convention = request.convention,
                          .activations = dtype == DType::f32 ? Activations::f32 : Activations::bf16,
                          .decodes = false})) {
  check(!request.captions.empty(), "calibration: there are no captions, expected one or more");
  check(request.rows >= 1 && request.rows <= kMostRows,
        "calibration: {} rows of each linear, expected 1 to {}", request.rows, kMostRows);
  check_image_size(request.size, model.sizes);
  for (const std::string& caption : request.captions) tokens.push_back(model.tokenize(caption));
  grid = {request.size.height / model.sizes.token_side,
          request.size.width / model.sizes.token_side};
  models::ScheduleRequest asked = request.schedule;
  asked.size = request.size;
  asked.convention = request.convention;
  if (networks() < request.family->networks.size()) asked.guidance = {1};
  schedule = request.family->make_schedule(asked);
  for (size_t i = 0; i < networks(); ++i) {
    check(runs(i, schedule.steps()) > 0,
          "calibration: no step is guided, and the {} network would not run; give a guidance "
          "other than 1",
          name_of_network(i));
  }
  if (models::sees_text(branches(), models::BranchText::negative)) {
    negative_tokens = model.tokenize("");
  }
}

std::string CalibrationJob::key(ThreadPool& pool) const {
  // Of the networks first, as earlier releases listed them, whose files go on. What becomes of
  // latents is none of a calibration's.
  nlohmann::json files;
  models::ModelFiles others = request.files;
  others.erase(std::string(model.decoder->name()));
  const auto add = [&](const std::string& path) {
    files.push_back(path.empty() ? nlohmann::json() : files_of(path));
  };
  for (const models::NetworkInfo& network : request.family->networks) {
    const auto found = others.extract(std::string(network.part));
    const models::PartFiles of_network = found ? found.mapped() : models::PartFiles();
    add(of_network.path);
    add(of_network.base);
  }
  for (const auto& [part, of_part] : others) {
    add(of_part.path);
    if (!of_part.base.empty()) add(of_part.base);
  }
  const nlohmann::json about = {{"files", files},
                                {"captions", request.captions},
                                {"grid", {grid.height, grid.width}},
                                {"times", schedule.times},
                                {"deltas", schedule.deltas},
                                {"guidance", schedule.guidance},
                                {"seed", request.seed},
                                {"rows", request.rows},
                                {"conditional_only", networks() == 1},
                                {"dtype", name_of(dtype)}};
  // Names of files need not be UTF-8.
  const std::string text = about.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  weights::Fingerprint fingerprint;
  fingerprint.add("calibration", std::as_bytes(std::span(text)), pool);
  return fingerprint.to_string();
}

std::map<std::string, int64_t> CalibrationJob::input_widths() const {
  std::map<std::string, int64_t> widths;
  for (size_t i = 0; i < networks(); ++i) {
    nn::LinearList list;
    model.networks[i]->visit_all(list);
    for (const nn::LinearSpec& spec : list.linears()) {
      widths[name_of_network(i) + "." + spec.name()] = spec.k;
    }
  }
  return widths;
}

uint64_t CalibrationJob::block_bytes() const {
  uint64_t most = 0;
  for (const auto& network : model.networks) {
    for (int64_t unit = 1; unit < network->unit_count(); ++unit) {
      most = std::max(most, bytes_of_unit(*network, unit, dtype));
    }
  }
  return most;
}

CalibrateMemory CalibrationJob::memory() const {
  const int64_t each = bits_of(dtype) / 8;
  int64_t most_text = 0;
  for (const auto& ids : tokens) most_text = std::max(most_text, std::ssize(ids));
  // The largest unit of the text encoder, and its features, twice on their way.
  models::TextEncoder& text = *model.text_encoder;
  uint64_t working = 0;
  for (int64_t unit = 0; unit < text.unit_count(); ++unit) {
    working = std::max(working, bytes_of_unit(text, unit, dtype));
  }
  working += static_cast<uint64_t>(2 * most_text * text.feature_count() * 4);
  int64_t kept = 0;
  for (const auto& [name, k] : input_widths()) kept += (request.rows + 1) * k * 4;
  uint64_t least = static_cast<uint64_t>(kept) + block_bytes();
  int64_t all_blocks = 0;
  for (size_t i = 0; i < networks(); ++i) {
    models::Network& network = *model.networks[i];
    const int64_t last = network.pass_units() - 1;
    least += bytes_of_unit(network, 0, dtype) + bytes_of_unit(network, last, dtype);
    all_blocks += blocks(i);
    for (int64_t unit = 1; unit < last; ++unit) {
      const int64_t channels = channels_of_unit(network, unit);
      working =
          std::max(working, static_cast<uint64_t>((most_text + grid.tokens()) * channels * each));
    }
  }
  least += working;
  return {.most = least + static_cast<uint64_t>(all_blocks - 1) * block_bytes(), .least = least};
}

}  // namespace octet::convert
