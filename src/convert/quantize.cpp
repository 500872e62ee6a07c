#include "convert/quantize.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/regular_file.h"
#include "base/stopwatch.h"
#include "convert/measured_errors.h"
#include "convert/quantize_plan.h"
#include "engine/sampler.h"
#include "formats/resumable_safetensors.h"
#include "formats/safetensors.h"
#include "formats/text.h"

namespace octet::convert {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using quant::Recipe;

// Which job wrote a file, in its metadata.
constexpr const char* kJobEntry = "octet.job";

// Tensors as they are but for their prefix, INT8 modules, and modules in floating point.
class Writing {
 public:
  Writing(Backend& backend, ThreadPool& pool, const std::vector<QuantizeBranch>& branches,
          const std::string& path, const QuantizeOptions& options, const OnQuantize& on_progress)
      : backend_(backend), pool_(pool), path_(path), options_(options), on_progress_(on_progress) {
    check_quantizable(branches, options, /*calibrates=*/false);
    for (const QuantizeBranch& branch : branches) {
      Branch& made = branches_.emplace_back(branch);
      made.report.conditional = branch.conditional;
    }
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
    for (Branch& branch : branches_) {
      report_.source_bytes += branch.plan.source_bytes(/*large_only=*/false);
    }
    measure();
    protect();
    if (!path_.empty()) write();
    for (Branch& branch : branches_) report_.branches.push_back(std::move(branch.report));
    return std::move(report_);
  }

 private:
  struct Branch {
    explicit Branch(const QuantizeBranch& from) : plan(from) {}

    BranchPlan plan;
    std::set<std::string> protected_modules;
    QuantizedBranch report;
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
        to_string(options_.recipe), options_.clip, !can_say(options_.dialect, Transform::smooth),
        fingerprint(options_.statistics));
    for (const Branch& branch : branches_) {
      const auto& source = branch.plan.source();
      // The file says its configuration, which is no part of the weights' identity.
      text += branch.plan.branch() + source.weights.identity() +
              ideogram4::config_text(source.config) + "\n";
    }
    return text;
  }

  // What the output depends on, once it is known which linears are protected.
  std::string key() const {
    std::string text = measure_key() + to_string(options_.dialect) + "\n";
    for (const Branch& branch : branches_) {
      for (const auto& name : branch.report.protected_modules) {
        text += branch.plan.branch() + name + "\n";
      }
    }
    return text;
  }

  void measure() {
    if (!options_.measure && options_.protection.worst == 0) return;
    uint64_t total = 0;
    for (const Branch& branch : branches_) total += branch.plan.source_bytes(/*large_only=*/true);
    MeasuredErrors known(path_, measure_key());
    begin("measure", total);
    for (Branch& branch : branches_) {
      Smoothing smoothing(pool_, branch.plan, options_);
      for (const PlannedModule& module : branch.plan.modules()) {
        if (!module.large) continue;
        const std::string name = branch.plan.branch() + module.name;
        const weights::StoredParts parts = branch.plan.open(module);
        const quant::WeightRows rows = BranchPlan::rows_of(module, parts);
        if (const quant::LinearError* error = known.find(name)) {
          branch.report.errors.push_back(*error);
        } else {
          branch.report.errors.push_back(measure_error(
              backend_, pool_, module.name, rows,
              inputs_of(branch.plan, options_, module.inputs, module.k),
              smoothing.columns(module.name), {options_.recipe, options_.clip, limit_}));
          known.add(name, branch.report.errors.back());
        }
        for (const auto& part : parts) part->finish_reading();
        advance(rows.bytes());
      }
    }
  }

  void protect() {
    for (Branch& branch : branches_) {
      std::vector<const quant::LinearError*> worst;
      for (const auto& error : branch.report.errors) worst.push_back(&error);
      const Recipe::Kind kind = options_.recipe.kind;
      std::stable_sort(worst.begin(), worst.end(),
                       [&](const auto* a, const auto* b) { return a->of(kind) > b->of(kind); });
      worst.resize(std::min(worst.size(), static_cast<size_t>(options_.protection.worst)));
      for (const auto* error : worst) branch.protected_modules.insert(error->module);
      for (const PlannedModule& module : branch.plan.modules()) {
        if (!module.large) {
          if (module.is_linear) ++branch.report.kept;
          continue;
        }
        const bool chosen = options_.protection.matches(module.name);
        if (chosen) branch.protected_modules.insert(module.name);
        const bool is_protected = branch.protected_modules.contains(module.name);
        ++(is_protected ? branch.report.protected_ : branch.report.int8);
        if (is_protected) branch.report.protected_modules.push_back(module.name);
      }
    }
  }

  bool is_int8(const Branch& branch, const PlannedModule& module) const {
    return module.large && !branch.protected_modules.contains(module.name);
  }

  // Before the names of a branch in the file.
  std::string prefix(const Branch& branch) const {
    return options_.dialect == weights::OutputDialect::transformerlab ? branch.plan.branch() : "";
  }

  // The type of a module that stays in floating point: as it was, BF16 where it was neither. Large
  // ones may be multiplied by factors.
  DType float_type(const PlannedModule& module, const weights::StoredParts& parts) const {
    const DType dtype = parts.front()->dtype();
    const bool plain = std::all_of(parts.begin(), parts.end(), [&](const auto& part) {
      return part->dtype() == dtype && part->format() == name_of(dtype);
    });
    if (!plain) return DType::bf16;
    return module.large ? with_room(dtype) : dtype;
  }

  // F16 may have no room for a factor.
  DType with_room(DType dtype) const { return folds() && dtype == DType::f16 ? DType::f32 : dtype; }

  bool folds() const {
    return options_.recipe.kind == Recipe::Kind::smoothquant &&
           !can_say(options_.dialect, Transform::smooth);
  }

  std::vector<TensorDeclaration> declare() {
    std::vector<TensorDeclaration> tensors;
    for (Branch& branch : branches_) {
      const std::string at = prefix(branch);
      for (const PlannedModule& module : branch.plan.modules()) {
        if (is_int8(branch, module)) {
          // Of the transform, only its kind decides over names and shapes.
          weights::StoredTransform kind;
          if (const int64_t group = group_for(options_.recipe, module.k)) {
            kind = {Transform::rotate, {}, group};
          } else if (options_.recipe.kind == Recipe::Kind::smoothquant && !folds()) {
            kind.kind = Transform::smooth;
          }
          const auto declared =
              declare_int8(options_.dialect, at + module.name, module.rows, module.k, kind);
          tensors.insert(tensors.end(), declared.begin(), declared.end());
        } else {
          tensors.push_back({at + module.name + ".weight",
                             float_type(module, branch.plan.open(module)),
                             {module.rows, module.k}});
        }
      }
      for (const PlannedVector& vector : branch.plan.vectors()) {
        const TensorInfo& info =
            branch.plan.source().weights.check_vector(vector.name, vector.shape);
        tensors.push_back({at + vector.name, with_room(info.dtype), vector.shape});
      }
    }
    return tensors;
  }

  std::map<std::string, std::string> metadata() const {
    Json made = {{"recipe", to_string(options_.recipe)},
                 {"clip", options_.clip},
                 {"folded", folds()},
                 {"statistics", fs::path(options_.statistics_name).filename()}};
    for (const Branch& branch : branches_) {
      made["protected"][branch.plan.conditional() ? "conditional" : "unconditional"] =
          branch.report.protected_modules;
    }
    std::map<std::string, std::string> entries = {
        {"format", "pt"},
        {kJobEntry, job_name()},
        {std::string(ideogram4::kConfigEntry),
         ideogram4::config_text(branches_.front().plan.source().config)},
        {std::string(weights::kQuantizationEntry),
         made.dump(-1, ' ', false, Json::error_handler_t::replace)}};
    // Readers would have to guess what is done to activations.
    if (options_.dialect == weights::OutputDialect::transformerlab) entries["smooth"] = "divide";
    return entries;
  }

  void write() {
    report_.files.push_back(path_);
    if (is_there_already()) return;
    const Stopwatch watch;
    ResumableSafetensors file(path_, declare(), metadata(), key(), resume_);
    report_.resumed_tensors = file.finished();
    begin("write", report_.source_bytes);
    for (Branch& branch : branches_) {
      Smoothing smoothing(pool_, branch.plan, options_);
      for (const PlannedModule& module : branch.plan.modules()) {
        write_module(file, branch, module, smoothing);
      }
      for (const PlannedVector& vector : branch.plan.vectors()) {
        write_vector(file, branch, vector, smoothing);
      }
    }
    file.commit();
    std::error_code ignored;
    report_.output_bytes = fs::file_size(path_, ignored);
    report_.seconds = watch.microseconds() * 1e-6;
  }

  // Files appear complete: one of the very same job is what would be written. So a run that was
  // stopped in the second transformer does not redo the first.
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

  static void put(ResumableSafetensors& file, const std::string& name, uint64_t offset,
                  std::span<const std::byte> bytes) {
    if (!file.is_finished(name)) file.write(name, offset, bytes);
  }
  static void finish(ResumableSafetensors& file, const std::string& name) {
    if (!file.is_finished(name)) file.finish(name);
  }

  void write_module(ResumableSafetensors& file, Branch& branch, const PlannedModule& module,
                    Smoothing& smoothing) {
    const weights::StoredParts parts = branch.plan.open(module);
    const quant::WeightRows rows = BranchPlan::rows_of(module, parts);
    if (is_int8(branch, module)) {
      write_int8(file, prefix(branch), module, rows, smoothing);
    } else {
      write_float(file, prefix(branch), module, rows, float_type(module, parts), smoothing);
    }
    for (const auto& part : parts) part->finish_reading();
    advance(rows.bytes());
  }

  void write_int8(ResumableSafetensors& file, const std::string& at, const PlannedModule& module,
                  const quant::WeightRows& rows, Smoothing& smoothing) {
    weights::Int8Names names = int8_names(options_.dialect, at + module.name, {});
    const std::string smooth_name =
        int8_names(options_.dialect, at + module.name, {.kind = Transform::smooth}).smooth;
    const bool smooths = options_.recipe.kind == Recipe::Kind::smoothquant && !folds();
    const bool done = file.is_finished(names.codes) && file.is_finished(names.scales) &&
                      (!smooths || file.is_finished(smooth_name)) &&
                      (names.marker.empty() || file.is_finished(names.marker));
    if (done) return;
    const ModuleTransform transform = transform_of(module, options_, smoothing);
    quantize_chunks(backend_, pool_, rows, transform.weights.view(),
                    quant::clip_ratios(options_.clip), limit_,
                    [&](int64_t first, const QTensor& codes) {
                      auto* scales = codes.scales.as<float>();
                      for (int64_t row = 0; folds() && row < codes.rows(); ++row) {
                        scales[row] /= smoothing.row_divisor(module.name, first + row);
                      }
                      const auto count = static_cast<size_t>(codes.rows());
                      put(file, names.codes, static_cast<uint64_t>(first * module.k),
                          {codes.values.data, count * static_cast<size_t>(module.k)});
                      put(file, names.scales, static_cast<uint64_t>(first) * sizeof(float),
                          {codes.scales.data, count * sizeof(float)});
                    });
    rows.check_intact();
    finish(file, names.codes);
    finish(file, names.scales);
    if (smooths) {
      // The file says by what activations are divided.
      put(file, smooth_name, 0, std::as_bytes(std::span(transform.weights.smooth)));
      finish(file, smooth_name);
    }
    if (!names.marker.empty()) {
      const std::string marker = comfy_quant(transform.activations);
      put(file, names.marker, 0, std::as_bytes(std::span(marker)));
      finish(file, names.marker);
    }
  }

  void write_float(ResumableSafetensors& file, const std::string& at, const PlannedModule& module,
                   const quant::WeightRows& rows, DType dtype, Smoothing& smoothing) {
    const std::string name = at + module.name + ".weight";
    if (file.is_finished(name)) return;
    const bool changed = folds() && module.large;
    const std::vector<float>* columns = changed ? &smoothing.columns(module.name) : nullptr;
    const int64_t row_bytes = module.k * (bits_of(dtype) / 8), at_once = limit_.rows(rows);
    std::vector<std::byte> chunk(static_cast<size_t>(at_once * row_bytes));
    if (changed) smoothing.row_divisor(module.name, module.rows - 1);  // made before threads ask
    for (int64_t first = 0; first < module.rows; first += at_once) {
      const int64_t count = std::min(at_once, module.rows - first);
      pool_.run(count, [&](int64_t i, int) {
        const int64_t row = first + i;
        const float divisor = changed ? smoothing.row_divisor(module.name, row) : 1;
        rows.read_as(row, dtype, columns, divisor, chunk.data() + i * row_bytes);
      });
      file.write(name, static_cast<uint64_t>(first * row_bytes),
                 std::span(chunk).first(static_cast<size_t>(count * row_bytes)));
    }
    rows.check_intact();
    file.finish(name);
  }

  void write_vector(ResumableSafetensors& file, Branch& branch, const PlannedVector& vector,
                    Smoothing& smoothing) {
    const std::string name = prefix(branch) + vector.name;
    if (file.is_finished(name)) return;
    const weights::WeightSource& source = branch.plan.source().weights;
    const std::vector<float>* divisors = folds() ? smoothing.divisors(vector.name) : nullptr;
    const TensorInfo& info = source.check_vector(vector.name, vector.shape);
    std::vector<float> values(info.elements());
    source.read_vector(vector.name, vector.shape, values.data());  // refuses what is no number
    const DType dtype = with_room(info.dtype);
    std::vector<std::byte> bytes(values.size() * static_cast<size_t>(bits_of(dtype) / 8));
    for (size_t j = 0; j < values.size(); ++j) {
      const float value = divisors == nullptr ? values[j] : values[j] / (*divisors)[j];
      weights::store_f32(value, dtype, bytes.data(), static_cast<int64_t>(j));
    }
    file.write(name, 0, bytes);
    file.finish(name);
  }

  void begin(const char* stage, uint64_t total) {
    progress_ = {stage, 0, total};
    advance(0);
  }

  void advance(uint64_t bytes) {
    progress_.done = std::min(progress_.done + bytes, progress_.total);
    if (on_progress_ && !on_progress_(progress_)) {
      throw engine::Cancelled(path_.empty()
                                  ? "stopped on request"
                                  : "stopped on request; the same command goes on from here");
    }
  }

  Backend& backend_;
  ThreadPool& pool_;
  std::string path_;
  const QuantizeOptions& options_;
  const OnQuantize& on_progress_;
  std::vector<Branch> branches_;
  quant::ChunkLimit limit_;
  ResumeOptions resume_;
  QuantizeProgress progress_;
  QuantizeReport report_;
};

}  // namespace

QuantizeReport quantize(Backend& backend, ThreadPool& pool,
                        const std::vector<QuantizeBranch>& branches, const std::string& path,
                        const QuantizeOptions& options, const OnQuantize& on_progress) {
  return Writing(backend, pool, branches, path, options, on_progress).run();
}

}  // namespace octet::convert
