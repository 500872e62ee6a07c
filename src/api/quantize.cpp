// octet::quantize: finds the transformers, calibrates where that is asked for, and writes the
// files.
#include "octet/quantize.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "api/boundary.h"
#include "backend/host_backend.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "base/invalid_request.h"
#include "base/thread_pool.h"
#include "convert/calibrate.h"
#include "convert/calibration_state.h"
#include "convert/caption_files.h"
#include "convert/measured_errors.h"
#include "convert/quantize.h"
#include "devices/select.h"
#include "hub/cache.h"
#include "models/ideogram4/model_folders.h"
#include "octet/files.h"

namespace octet {
namespace {

namespace fs = std::filesystem;
using convert::QuantizeBranch;

// Both transformers in Transformer Lab's dialect.
constexpr const char* kOneFile = "ideogram4-int8-w8a8.safetensors";

const char* name_of_branch(bool conditional) {
  return conditional ? "conditional" : "unconditional";
}

void write_text(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  check(!error, "{}: the folder cannot be made: {}", folder.string(), error.message());
}

class Quantization {
 public:
  Quantization(const QuantizeRequest& request, const OnQuantizeStep& on_step)
      : request_(request), on_step_(on_step) {
    options_.recipe = quant::parse_recipe(request.recipe);
    options_.protection = quant::parse_protection(request.protect);
    options_.clip = request.clip;
    options_.dialect = weights::parse_output_dialect(request.dialect);
    options_.measure = request.measure || request.out.empty();
    options_.max_memory = request.max_memory;
    const auto found = ideogram4::find_transformers(
        hub::find_model(request.source), hub::find_model(request.base), request.unconditional);
    if (!found.conditional.path.empty()) branches_.push_back({found.conditional, true});
    if (!found.unconditional.path.empty()) branches_.push_back({found.unconditional, false});
  }

  QuantizeReport run() {
    check_out();
    const bool calibrates = !request_.captions.empty();
    if (!calibrates && !request_.statistics.empty()) read_statistics();
    check_quantizable(branches_, options_, calibrates);
    const auto backend = select_backend({.device = request_.device, .threads = request_.threads});
    ThreadPool pool(request_.threads);
    report_.device = backend->description();
    report_.recipe = to_string(options_.recipe);
    if (calibrates) {
      calibrate(*backend, pool);
    } else {
      make_out();
    }
    report_.activations = options_.statistics_name.empty() ? "synthetic" : options_.statistics_name;
    if (options_.dialect == weights::OutputDialect::transformerlab || request_.out.empty()) {
      write(*backend, pool, branches_, request_.out.empty() ? "" : file_of(branches_.front()));
    } else {
      for (const QuantizeBranch& branch : branches_) {
        write(*backend, pool, {branch}, file_of(branch));
      }
    }
    if (!request_.out.empty()) {
      for (const QuantizeBranch& branch : branches_) {
        convert::MeasuredErrors::forget(file_of(branch));
      }
    }
    return std::move(report_);
  }

 private:
  // Names of folders may have dots: "ideogram-4.0-int8".
  bool into_folder() const { return !request_.out.ends_with(".safetensors"); }

  void check_out() const {
    if (request_.out.empty()) return;
    const bool one =
        options_.dialect == weights::OutputDialect::transformerlab || branches_.size() == 1;
    for (const char* other : {".gguf", ".sft", ".bin", ".pt", ".pth", ".ckpt"}) {
      check(!request_.out.ends_with(other),
            "{}: is not a name for what is written, expected a folder "
            "or a file *.safetensors",
            request_.out);
    }
    check(one || into_folder(),
          "{}: two transformers cannot go into one file of this dialect; name a folder, or one "
          "transformer as the source",
          request_.out);
    check_other_dialect();
    for (const QuantizeBranch& branch : branches_) {
      for (const std::string& source : {branch.files.path, branch.files.base}) {
        check(!lies_in(file_of(branch), source),
              "{}: is where the source lies, which would be lost; name another output",
              request_.out);
      }
      check_value(request_.statistics.empty() ||
                      written_file(file_of(branch)) != written_file(request_.statistics),
                  "{}: is the file of the statistics, which would be lost; name another output",
                  request_.out);
    }
  }

  // Both in one folder would leave a reader to choose.
  void check_other_dialect() const {
    if (!into_folder()) return;
    const bool one_file = options_.dialect == weights::OutputDialect::transformerlab;
    const std::string other = one_file ? "transformer" : kOneFile;
    std::error_code ignored;
    check(!fs::exists(fs::path(request_.out) / other, ignored),
          "{}: holds {} of another dialect; remove it, or name another folder", request_.out,
          other);
  }

  // Before any work, which would be lost.
  void make_out() const {
    if (request_.out.empty()) return;
    for (const QuantizeBranch& branch : branches_) {
      const std::string file = file_of(branch);
      if (into_folder()) make_folder(fs::path(file).parent_path());
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
    check(convert::is_complete(request_.statistics),
          "{}: is of a calibration that did not end; give the same captions to finish it",
          request_.statistics);
    options_.statistics = quant::read_statistics(request_.statistics);
    options_.statistics_name = request_.statistics;
    check(!options_.statistics.empty(), "{}: has no activations; calibrate with captions first",
          request_.statistics);
  }

  // The file of activations is kept: another recipe can be tried with it.
  std::string statistics_file() const {
    std::string path = statistics_path(request_);
    check_value(!path.empty(),
                "captions: there is no output beside which their activations could be kept; name a "
                "file with --statistics");
    return path;
  }

  // The source's own transformers, with the base's for what it has not.
  ideogram4::ModelFolders folders_to_calibrate() const {
    const std::string source = hub::find_model(request_.source);
    const std::string base = hub::find_model(request_.base);
    const bool conditional = branches_.front().conditional;
    auto folders = ideogram4::find_folders({.model = conditional ? source : base, .base = base});
    for (const QuantizeBranch& branch : branches_) {
      (branch.conditional ? folders.transformer : folders.unconditional) = branch.files;
    }
    return folders;
  }

  void calibrate(Backend& backend, ThreadPool& pool) {
    check(branches_.size() == 2 || !request_.base.empty(),
          "{}: is one transformer, and captions take a whole model; name one as the base",
          request_.source);
    convert::CalibrateRequest calibration;
    calibration.captions = convert::read_captions(request_.captions, request_.any_caption);
    calibration.folders = folders_to_calibrate();
    calibration.size = models::parse_image_size(request_.calibration_size);
    calibration.schedule.preset = ideogram4::preset_named("turbo");
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
    const int steps = request_.calibration_steps == 0 ? calibration.schedule.preset.steps
                                                      : request_.calibration_steps;
    QuantizeStep shown{"calibrate", "", "steps", 0, std::ssize(calibration.captions) * steps};
    const auto tell = [&](const engine::GenerateProgress& progress) {
      if (progress.stage == engine::Stage::denoise) {
        shown.done = progress.done;
        shown.total = progress.total;
      }
      return !on_step_ || on_step_(shown);
    };
    options_.statistics = convert::calibrate(ctx, pool, calibration, tell);
    options_.statistics_name = calibration.state_path;
  }

  std::string file_of(const QuantizeBranch& branch) const {
    if (!into_folder()) return request_.out;
    const fs::path folder = request_.out;
    if (options_.dialect == weights::OutputDialect::transformerlab) {
      return (folder / kOneFile).string();
    }
    return (folder / (branch.conditional ? "transformer" : "unconditional_transformer") /
            "diffusion_pytorch_model.safetensors")
        .string();
  }

  void write(Backend& backend, ThreadPool& pool, const std::vector<QuantizeBranch>& branches,
             const std::string& path) {
    const bool alone = branches.size() < branches_.size();
    const std::string branch = alone ? name_of_branch(branches.front().conditional) : "";
    const convert::OnQuantize tell = [&](const convert::QuantizeProgress& progress) {
      return !on_step_ ||
             on_step_({progress.stage, branch, "bytes", static_cast<int64_t>(progress.done),
                       static_cast<int64_t>(progress.total)});
    };
    const auto made = quantize(backend, pool, branches, path, options_, tell);
    add(made);
    if (path.empty()) return;
    write_beside(path, branches, made);
    if (!request_.verify) return;
    verify(pool, branches, path, options_, tell);
    report_.verified = true;
  }

  // What readers of the two dialects look for beside the weights.
  void write_beside(const std::string& path, const std::vector<QuantizeBranch>& branches,
                    const convert::QuantizeReport& made) const {
    if (!into_folder()) return;
    const fs::path folder = fs::path(path).parent_path();
    if (options_.dialect == weights::OutputDialect::comfyui) {
      const auto config =
          ideogram4::find_dit_config(branches.front().files, branches.front().conditional);
      const auto text = nlohmann::json::parse(ideogram4::config_text(config)).dump(2) + "\n";
      write_text((folder / "config.json").string(), text);
      return;
    }
    nlohmann::ordered_json recipe = {{"format", "octet-w8a8"},
                                     {"recipe", to_string(options_.recipe)},
                                     {"alpha", options_.recipe.alpha},
                                     {"smooth", "divide"},
                                     {"protected", nlohmann::json::array()}};
    for (const auto& branch : made.branches) {
      for (const std::string& module : branch.protected_modules) {
        recipe["protected"].push_back(std::string(name_of_branch(branch.conditional)) + "." +
                                      module);
      }
    }
    write_text((folder / "recipe.json").string(), recipe.dump(2) + "\n");
  }

  void add(const convert::QuantizeReport& made) {
    report_.files.insert(report_.files.end(), made.files.begin(), made.files.end());
    report_.source_bytes += made.source_bytes;
    report_.output_bytes += made.output_bytes;
    report_.resumed_tensors += made.resumed_tensors;
    report_.seconds += made.seconds;
    for (const auto& branch : made.branches) {
      const std::string name = name_of_branch(branch.conditional);
      report_.branches.push_back(
          {name, branch.int8, branch.protected_, branch.kept, branch.protected_modules});
      for (const quant::LinearError& error : branch.errors) add(name, branch, error);
    }
  }

  void add(const std::string& name, const convert::QuantizedBranch& branch,
           const quant::LinearError& error) {
    LinearErrorReport& made = report_.errors.emplace_back();
    made.branch = name;
    made.module = error.module;
    made.n = error.n;
    made.k = error.k;
    made.rowwise = error.rowwise;
    made.smoothquant = error.smoothquant;
    made.convrot = error.convrot;
    made.unquantized = error.unquantized;
    made.is_protected = std::find(branch.protected_modules.begin(), branch.protected_modules.end(),
                                  error.module) != branch.protected_modules.end();
    for (const auto& place : error.worst_rows) {
      made.worst_rows.push_back({place.index, place.value});
    }
    for (const auto& place : error.worst_columns) {
      made.worst_columns.push_back({place.index, place.value});
    }
  }

  const QuantizeRequest& request_;
  const OnQuantizeStep& on_step_;
  convert::QuantizeOptions options_;
  std::vector<QuantizeBranch> branches_;
  QuantizeReport report_;
};

}  // namespace

std::string statistics_path(const QuantizeRequest& request) try {
  if (!request.statistics.empty() || request.out.empty()) return request.statistics;
  fs::path out = request.out;
  if (!out.has_filename()) out = out.parent_path();  // "folder/"
  return out.string() + ".activations.safetensors";
} catch (...) {
  api::rethrow_as_error();
}

QuantizeReport quantize(const QuantizeRequest& request, const OnQuantizeStep& on_step) try {
  return Quantization(request, on_step).run();
} catch (...) {
  api::rethrow_as_error();
}

}  // namespace octet
