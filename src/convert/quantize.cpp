#include "convert/quantize.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/hash.h"
#include "base/regular_file.h"
#include "base/stopwatch.h"
#include "convert/measured_errors.h"
#include "convert/quantize_plan.h"
#include "formats/json_value.h"
#include "formats/safetensors.h"
#include "octet/error.h"
#include "quant/linear_error.h"
#include "quant/recipe.h"
#include "weights/dialects/output_dialect.h"

namespace octet::convert {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Which job wrote a file, in its metadata.
constexpr const char* kJobEntry = "octet.job";

class Writing {
 public:
  Writing(Backend& backend, const models::Family& family, const std::vector<NetworkFiles>& networks,
          const std::string& path, const QuantizeOptions& options, const OnQuantizeStep& on_step)
      : backend_(backend), path_(path), options_(options), on_step_(on_step) {
    check_quantizable(family, networks, options, /*calibrates=*/false);
    for (const NetworkFiles& files : networks) networks_.emplace_back(family, files);
    if (options.max_memory > 0) {
      // Rows as read, as F32, their codes, and copies of these where the backend works: together
      // some twenty times the chunk when errors are measured.
      const auto share = static_cast<int64_t>(options.max_memory / 24);
      limit_.bytes = std::min(share, limit_.bytes);
      // What waits for the disk is in memory, too.
      resume_.batch_bytes = std::min(static_cast<uint64_t>(share), resume_.batch_bytes);
    }
  }

  QuantizeReport run() {
    for (Network& network : networks_) {
      report_.source_bytes += network.plan.source_bytes(/*large_only=*/false);
    }
    measure();
    protect();
    if (!path_.empty()) write();
    for (Network& network : networks_) {
      report_.errors.insert(report_.errors.end(), network.errors.begin(), network.errors.end());
      report_.networks.push_back(std::move(network.report));
    }
    return std::move(report_);
  }

 private:
  struct Network {
    Network(const models::Family& family, const NetworkFiles& files) : plan(family, files) {
      report.network = plan.name();
    }

    NetworkPlan plan;
    std::set<std::string> protected_modules;
    std::vector<LinearError> errors;
    QuantizedNetwork report;
  };

  static uint64_t fingerprint(const quant::ActivationStatistics& statistics) {
    uint64_t hash = statistics.size();
    for (const auto& [name, inputs] : statistics) {
      hash = hash_bytes(std::as_bytes(std::span(name)), hash);
      hash = hash_bytes(std::as_bytes(std::span(inputs.amax)), hash);
      hash = hash_bytes(std::as_bytes(std::span(inputs.rows)), hash);
    }
    return hash;
  }

  // What errors depend on. Another way to make codes gets another number.
  std::string measure_key() const {
    std::string text = fmt::format(
        "octet quantize 1\nrecipe {}\nclip {}\nfolds {}\nstatistics {}\n",
        quant::text_of(options_.recipe), options_.clip,
        !weights::can_say(options_.dialect, Transform::smooth), fingerprint(options_.statistics));
    for (const Network& network : networks_) {
      // The file has its configuration, which is not part of the weights' identity.
      text += network.plan.prefix() + network.plan.source().identity() +
              network.plan.config_text() + "\n";
    }
    return text;
  }

  // What the output depends on, once it is known which linears are protected.
  std::string key() const {
    std::string text = measure_key() + word_of(options_.dialect) + "\n";
    for (const Network& network : networks_) {
      for (const auto& name : network.report.protected_modules) {
        text += network.plan.prefix() + name + "\n";
      }
    }
    return text;
  }

  void measure() {
    if (!options_.measure && options_.protection.worst == 0) return;
    uint64_t total = 0;
    for (const Network& network : networks_) {
      total += network.plan.source_bytes(/*large_only=*/true);
    }
    MeasuredErrors known(path_, measure_key());
    begin(QuantizeStage::measure, total);
    for (Network& network : networks_) {
      Smoothing smoothing(backend_.pool(), network.plan, options_);
      for (const PlannedModule& module : network.plan.modules()) {
        if (!module.large) continue;
        const std::string name = network.plan.prefix() + module.name;
        const weights::StoredParts parts = network.plan.open(module);
        const quant::WeightRows rows = NetworkPlan::rows_of(module, parts);
        if (const LinearError* error = known.find(name)) {
          network.errors.push_back(*error);
        } else {
          network.errors.push_back(measure_error(
              backend_, module.name, rows,
              inputs_of(network.plan, options_, module.inputs, module.k),
              smoothing.columns(module.name), {options_.recipe, options_.clip, limit_}));
          known.add(name, network.errors.back());
        }
        network.errors.back().network = network.plan.name();
        for (const auto& part : parts) part->finish_reading();
        advance(rows.bytes());
      }
    }
  }

  void protect() {
    for (Network& network : networks_) {
      std::vector<const LinearError*> worst;
      for (const LinearError& error : network.errors) worst.push_back(&error);
      const Recipe::Kind kind = options_.recipe.kind;
      std::stable_sort(worst.begin(), worst.end(),
                       [&](const auto* a, const auto* b) { return a->of(kind) > b->of(kind); });
      worst.resize(std::min(worst.size(), static_cast<size_t>(options_.protection.worst)));
      for (const auto* error : worst) network.protected_modules.insert(error->module);
      for (const PlannedModule& module : network.plan.modules()) {
        if (!module.large) {
          if (module.is_linear) ++network.report.kept;
          continue;
        }
        const bool chosen = quant::matches(options_.protection, module.name);
        if (chosen) network.protected_modules.insert(module.name);
        const bool is_protected = network.protected_modules.contains(module.name);
        ++(is_protected ? network.report.protected_ : network.report.int8);
        if (is_protected) network.report.protected_modules.push_back(module.name);
      }
      for (LinearError& error : network.errors) {
        error.is_protected = network.protected_modules.contains(error.module);
      }
    }
  }

  std::map<std::string, std::string> metadata() const {
    Json made = {{"recipe", quant::text_of(options_.recipe)},
                 {"clip", options_.clip},
                 {"folded", folds_smoothing(options_)},
                 {"statistics", fs::path(options_.statistics_name).filename()}};
    for (const Network& network : networks_) {
      made["protected"][network.plan.name()] = network.report.protected_modules;
    }
    std::map<std::string, std::string> entries = {
        {"format", "pt"},
        {kJobEntry, job_name()},
        {std::string(weights::kConfigEntry), networks_.front().plan.config_text()},
        {std::string(weights::kQuantizationEntry),
         made.dump(-1, ' ', false, Json::error_handler_t::replace)}};
    for (const Network& network : networks_) {
      const std::string config = network.plan.config_text();
      if (config == entries.at(std::string(weights::kConfigEntry))) continue;
      entries.emplace(weights::config_entry_of(network.plan.name()), config);
    }
    // Readers would have to guess what is done to activations.
    if (options_.dialect == OutputDialect::transformerlab) entries["smooth"] = "divide";
    return entries;
  }

  void write() {
    report_.files.push_back(path_);
    if (is_there_already()) return;
    const Stopwatch watch;
    std::vector<std::unique_ptr<NetworkWriter>> writers;
    std::vector<TensorDeclaration> tensors;
    for (const Network& network : networks_) {
      writers.push_back(std::make_unique<NetworkWriter>(backend_, network.plan, options_,
                                                        network.protected_modules, limit_));
      writers.back()->declare(tensors);
    }
    ResumableSafetensors file(path_, tensors, metadata(), key(), resume_);
    report_.resumed_tensors = file.finished();
    begin(QuantizeStage::write, report_.source_bytes);
    for (size_t i = 0; i < networks_.size(); ++i) {
      for (const PlannedModule& module : networks_[i].plan.modules()) {
        advance(writers[i]->write(file, module));
      }
      for (const PlannedVector& vector : networks_[i].plan.vectors()) {
        writers[i]->write(file, vector);
      }
      writers[i].reset();
    }
    file.commit();
    std::error_code ignored;
    report_.output_bytes = fs::file_size(path_, ignored);
    report_.seconds = watch.microseconds() * 1e-6;
  }

  // Files appear complete: one of the very same job is what would be written. So a run that was
  // stopped in the second network does not redo the first.
  bool is_there_already() {
    try {
      if (!is_file_there(path_)) return false;
      const SafetensorsFile file(path_);
      const auto job = file.metadata().find(kJobEntry);
      if (job == file.metadata().end() || job->second != job_name()) return false;
      report_.resumed_tensors = file.tensors().size();
    } catch (const Error&) {
      return false;  // whatever it is, it is replaced
    }
    std::error_code ignored;
    report_.output_bytes = fs::file_size(path_, ignored);
    ResumableSafetensors::tidy_up(path_);
    return true;
  }

  std::string job_name() const { return fmt::format("{:016x}", hash_text(key())); }

  void begin(QuantizeStage stage, uint64_t total) {
    step_ = {.stage = stage, .total = static_cast<int64_t>(total)};
    advance(0);
  }

  void advance(uint64_t bytes) {
    step_.done = std::min(step_.done + static_cast<int64_t>(bytes), step_.total);
    if (on_step_ && !on_step_(step_)) {
      throw Cancelled(path_.empty() ? "stopped on request"
                                    : "stopped on request; the same command resumes from here");
    }
  }

  Backend& backend_;
  std::string path_;
  const QuantizeOptions& options_;
  const OnQuantizeStep& on_step_;
  std::vector<Network> networks_;
  quant::ChunkLimit limit_;
  ResumeOptions resume_;
  QuantizeStep step_;
  QuantizeReport report_;
};

}  // namespace

QuantizeReport quantize(Backend& backend, const models::Family& family,
                        const std::vector<NetworkFiles>& networks, const std::string& path,
                        const QuantizeOptions& options, const OnQuantizeStep& on_step) {
  return Writing(backend, family, networks, path, options, on_step).run();
}

}  // namespace octet::convert
