// octet::quantize: finds the networks, calibrates if requested, and writes the
// files.
#include <algorithm>
#include <filesystem>

#include "backend/host_backend.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "base/invalid_request.h"
#include "convert/calibrate.h"
#include "convert/calibration_job.h"
#include "convert/measured_errors.h"
#include "convert/quantize.h"
#include "devices/select.h"
#include "formats/boundary.h"
#include "formats/json_value.h"
#include "hub/cache.h"
#include "models/presets.h"
#include "octet/quantize.h"
#include "octet/tools/files.h"

namespace octet {
namespace {

namespace fs = std::filesystem;
using models::NetworkFiles;

void write_text(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

// Folders for the output. Those that it made and nothing was put into are removed again: a run that
// fails or is interrupted leaves no empty ones behind.
class OutputFolders {
 public:
  OutputFolders() = default;
  ~OutputFolders() {
    std::error_code ignored;  // of those that have files
    for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) {
      fs::remove(*folder, ignored);
    }
  }
  OutputFolders(const OutputFolders&) = delete;
  OutputFolders& operator=(const OutputFolders&) = delete;

  void make(const fs::path& folder) {
    std::error_code error;
    if (folder.has_parent_path() && !fs::exists(folder, error)) make(folder.parent_path());
    const bool is_new = fs::create_directory(folder, error);
    check(!error, "{}: the folder cannot be made: {}", folder.string(), error.message());
    if (is_new) made_.push_back(folder);
  }

 private:
  std::vector<fs::path> made_;  // outer ones first
};

class Quantization {
 public:
  Quantization(const QuantizeRequest& request, const OnQuantizeStep& on_step)
      : request_(request),
        on_step_(on_step),
        source_(hub::find_model(request.source)),
        base_(hub::find_model(request.base)),
        family_(models::family_of(source_)) {
    options_.recipe = request.recipe;
    options_.protection = request.protect;
    options_.clip = request.clip;
    options_.dialect = request.dialect;
    options_.measure = request.measure || request.out.empty();
    options_.max_memory = request.max_memory;
    const size_t only =
        request.network.empty() ? 0 : network_named(family_, request.network, "network");
    networks_ = family_.find_networks(source_, base_, info(only).name);
  }

  QuantizeReport run() {
    check_out();
    const bool calibrates = !request_.captions.empty();
    if (!calibrates && !request_.statistics.empty()) read_statistics();
    check_quantizable(family_, networks_, options_, calibrates);
    const auto backend = select_backend({.device = request_.device, .threads = request_.threads});
    report_.device = backend->description();
    report_.recipe = options_.recipe;
    if (calibrates) {
      calibrate(*backend);
    } else {
      make_out();
    }
    report_.activations = options_.statistics_name.empty() ? "synthetic" : options_.statistics_name;
    if (into_one_file() || request_.out.empty()) {
      write(*backend, networks_, request_.out.empty() ? "" : file_of(networks_.front()));
    } else {
      for (const NetworkFiles& network : networks_) write(*backend, {network}, file_of(network));
    }
    if (!request_.out.empty()) {
      for (const NetworkFiles& network : networks_) {
        convert::MeasuredErrors::forget(file_of(network));
      }
      report_.base = base_of_output();
    }
    return std::move(report_);
  }

 private:
  const models::NetworkInfo& info(size_t network) const { return family_.networks[network]; }
  bool into_one_file() const { return options_.dialect == OutputDialect::transformerlab; }
  std::string one_file() const { return std::string(family_.name) + "-int8-w8a8.safetensors"; }

  std::string base_of_output() const {
    for (const std::string& named : {request_.base, request_.source}) {
      if (named.empty()) continue;
      try {
        family_.find({.model = request_.out, .base = hub::find_model(named)});
        return named;
      } catch (const Error&) {
        continue;  // it lacks something
      }
    }
    return "";
  }

  // Names of folders may have dots: "ideogram-4.0-int8".
  bool into_folder() const { return !request_.out.ends_with(".safetensors"); }

  void check_out() const {
    if (request_.out.empty()) return;
    const bool one = into_one_file() || networks_.size() == 1;
    for (const char* other : {".gguf", ".sft", ".bin", ".pt", ".pth", ".ckpt"}) {
      check(!request_.out.ends_with(other),
            "{}: is not a valid output, expected a folder or a file *.safetensors", request_.out);
    }
    check(one || into_folder(),
          "{}: several networks cannot go into one file of this dialect; name a folder, or one "
          "network "
          "as the source",
          request_.out);
    check_other_dialect();
    for (const NetworkFiles& network : networks_) {
      for (const std::string& source : {network.files.path, network.files.base}) {
        check(!lies_in(file_of(network), source),
              "{}: is where the source is, which would be lost; name another output", request_.out);
      }
      check_value(request_.statistics.empty() ||
                      written_file(file_of(network)) != written_file(request_.statistics),
                  "out",
                  "{}: is the file of the statistics, which would be lost; name another output",
                  request_.out);
    }
  }

  // Both in one folder would leave a reader to choose.
  void check_other_dialect() const {
    if (!into_folder()) return;
    const std::string other = into_one_file() ? std::string(info(0).part) : one_file();
    std::error_code ignored;
    check(!fs::exists(fs::path(request_.out) / other, ignored),
          "{}: holds {} of another dialect; remove it, or name another folder", request_.out,
          other);
  }

  // Before any work, which would be lost.
  void make_out() {
    if (request_.out.empty()) return;
    for (const NetworkFiles& network : networks_) {
      const std::string file = file_of(network);
      if (into_folder()) folders_.make(fs::path(file).parent_path());
      check_writable(file);
    }
  }

  // Whether a file would be `source`, or one of its files when that is a folder.
  static bool lies_in(const std::string& file, const std::string& source) {
    std::error_code ignored;  // what does not exist is not the same
    const fs::path place =
        fs::is_directory(source, ignored) ? fs::path(file).parent_path() : fs::path(file);
    return fs::equivalent(place.empty() ? "." : place, source, ignored);
  }

  // A calibration that was interrupted leaves a file, too.
  void read_statistics() {
    check(
        convert::is_complete(request_.statistics),
        "{}: belongs to an unfinished calibration; give the same captions to finish it, or remove "
        "the file",
        request_.statistics);
    options_.statistics = quant::read_statistics(request_.statistics);
    options_.statistics_name = request_.statistics;
    check(!options_.statistics.empty(), "{}: has no activations; calibrate with captions first",
          request_.statistics);
  }

  // The file of activations is kept: another recipe can be tried with it.
  std::string statistics_file() const {
    std::string path = statistics_path(request_);
    check_value(!path.empty(), "statistics",
                "captions: there is no output next to which their activations could be stored; "
                "name a file as `statistics`");
    return path;
  }

  // The source's own networks, with the base's for what it has not.
  models::ModelFiles files_to_calibrate() const {
    const bool has_first = networks_.front().network == 0;
    models::ModelFiles files = family_.find({.model = has_first ? source_ : base_, .base = base_});
    for (const NetworkFiles& network : networks_) {
      files[std::string(info(network.network).part)] = network.files;
    }
    return files;
  }

  void calibrate(Backend& backend) {
    check(networks_.size() == family_.networks.size() || !request_.base.empty(),
          "{}: is a single network, and captions need a complete model; name one as the `base`",
          request_.source);
    const models::PictureDefaults defaults = models::defaults_of(family_, {source_, base_});
    const auto preset = std::min_element(
        defaults.presets.begin(), defaults.presets.end(),
        [](const models::Preset& a, const models::Preset& b) { return a.steps < b.steps; });
    convert::CalibrateRequest calibration;
    calibration.family = &family_;
    calibration.captions = convert::read_captions(family_, request_.captions, request_.any_caption);
    calibration.files = files_to_calibrate();
    // Of the published models a quarter of the usual size, whose activations are much the same.
    constexpr PictureSize kCalibrationSize = {512, 512};
    calibration.size = request_.calibration_size;
    if (calibration.size == PictureSize()) {
      calibration.size = defaults.path.empty() ? kCalibrationSize : defaults.size;
    }
    calibration.schedule.preset = *preset;
    calibration.schedule.steps = request_.calibration_steps;
    calibration.seed = request_.seed;
    calibration.state_path = statistics_file();
    calibration.max_memory = request_.max_memory;
    if (calibration.max_memory == 0 && keeps_data_on_host(backend)) {
      // A fifth is left for what is not counted.
      calibration.max_memory =
          static_cast<uint64_t>(0.8 * free_memory().value_or(FreeMemory{}).bytes);
    }
    nn::Context ctx{backend, DType::bf16};
    memory_for(calibration, ctx.dtype);  // refuses what cannot be run
    make_out();
    // Encoding and loading are no steps, but whoever wants to stop is heard there, too.
    const int steps = request_.calibration_steps == 0 ? preset->steps : request_.calibration_steps;
    QuantizeStep shown{.stage = QuantizeStage::calibrate,
                       .total = std::ssize(calibration.captions) * steps};
    const auto tell = [&](const RenderProgress& progress) {
      if (progress.stage == Stage::denoise) {
        shown.done = progress.done;
        shown.total = progress.total;
      }
      return !on_step_ || on_step_(shown);
    };
    options_.statistics = convert::calibrate(ctx, calibration, tell);
    options_.statistics_name = calibration.state_path;
  }

  std::string file_of(const NetworkFiles& network) const {
    if (!into_folder()) return request_.out;
    const fs::path folder = request_.out;
    if (into_one_file()) return (folder / one_file()).string();
    return (folder / info(network.network).part / "diffusion_pytorch_model.safetensors").string();
  }

  void write(Backend& backend, const std::vector<NetworkFiles>& networks, const std::string& path) {
    const bool alone = networks.size() < networks_.size();
    const std::string network(alone ? info(networks.front().network).name : "");
    const OnQuantizeStep tell = [&](QuantizeStep step) {
      step.network = network;
      return !on_step_ || on_step_(step);
    };
    const auto made = convert::quantize(backend, family_, networks, path, options_, tell);
    add(made);
    if (path.empty()) return;
    write_beside(path, networks, made);
    if (!request_.verify) return;
    convert::verify(backend.pool(), family_, networks, path, options_, tell);
    report_.verified = true;
  }

  // What readers of the two dialects look for besides the weights.
  void write_beside(const std::string& path, const std::vector<NetworkFiles>& networks,
                    const QuantizeReport& made) const {
    if (!into_folder()) return;
    const fs::path folder = fs::path(path).parent_path();
    if (!into_one_file()) {
      const auto& [network, files] = networks.front();
      auto config = nlohmann::json::parse(family_.open_network(network, files)->config_text());
      // diffusers would take codes for weights, with a warning. It refuses a method that it does
      // not know, and its error repeats this text.
      config["quantization_config"] = {
          {"quant_method", "octet (INT8 codes: octet.diffusers.load_int8() reads them)"}};
      write_text((folder / "config.json").string(), config.dump(2) + "\n");
      return;
    }
    nlohmann::ordered_json recipe = {{"format", "octet-w8a8"},
                                     {"recipe", to_string(options_.recipe)},
                                     {"alpha", options_.recipe.alpha},
                                     {"smooth", "divide"},
                                     {"protected", nlohmann::json::array()}};
    for (const QuantizedNetwork& network : made.networks) {
      for (const std::string& module : network.protected_modules) {
        recipe["protected"].push_back(network.network + "." + module);
      }
    }
    write_text((folder / "recipe.json").string(), recipe.dump(2) + "\n");
  }

  void add(const QuantizeReport& made) {
    const auto append = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(report_.files, made.files);
    append(report_.networks, made.networks);
    append(report_.errors, made.errors);
    report_.source_bytes += made.source_bytes;
    report_.output_bytes += made.output_bytes;
    report_.resumed_tensors += made.resumed_tensors;
    report_.seconds += made.seconds;
  }

  const QuantizeRequest& request_;
  const OnQuantizeStep& on_step_;
  std::string source_, base_;  // paths
  const models::Family& family_;
  convert::QuantizeOptions options_;
  std::vector<NetworkFiles> networks_;
  OutputFolders folders_;
  QuantizeReport report_;
};

}  // namespace

std::string statistics_path(const QuantizeRequest& request) try {
  if (!request.statistics.empty() || request.out.empty()) return request.statistics;
  fs::path out = request.out;
  if (!out.has_filename()) out = out.parent_path();  // "folder/"
  return out.string() + ".activations.safetensors";
} catch (...) {
  rethrow_as_error();
}

QuantizeReport quantize(const QuantizeRequest& request, const OnQuantizeStep& on_step) try {
  return Quantization(request, on_step).run();
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
