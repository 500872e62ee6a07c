#include "audit/examine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "audit/linear_book.h"
#include "audit/linears.h"
#include "audit/work_list.h"
#include "formats/text.h"

namespace octet::audit {
namespace {

// With more of its time in unknown kernels, nobody knows whether a trace has products.
constexpr double kMostUnknown = 0.1;
// Names of unknown kernels that a sentence has room for.
constexpr size_t kMostNames = 3;

std::string shapes_text(const Signature& signature) {
  std::string text;
  int shown = 0;
  for (const Operand& operand : signature) {
    if (elements_of(operand) == 0 || ++shown > 3) continue;
    text += fmt::format("{}{}[{}]", text.empty() ? "" : " x ", name_of(operand.type),
                        fmt::join(operand.dims, ","));
  }
  return text;
}

// "_fused_thing_kernel": a sentence has no room for templates.
std::string short_name(const std::string& name) {
  constexpr size_t kMostBytes = 48;
  std::string text = name.starts_with("void ") ? name.substr(5) : name;
  for (const std::string_view scope : {"(anonymous namespace)::", "<unnamed>::"}) {
    for (size_t at; (at = text.find(scope)) != text.npos;) text.erase(at, scope.size());
  }
  const std::string stem = text.substr(0, text.find_first_of("<("));
  return std::string(first_bytes(stem.empty() ? text : stem, kMostBytes));
}

}  // namespace

struct Examination::Sums {
  struct KernelSum {
    AuditKernel kernel;
    double most_us = 0;  // of one call with the shapes that are shown
  };
  AuditReport report;
  std::map<WorkClass, AuditShare> classes;
  std::map<std::tuple<std::string, WorkClass>, KernelSum> kernels;
  LinearBook linears;
  std::vector<LogFinding> log;
  bool has_work = false;  // more than a log
  bool without_shapes = false, without_order = false;
  double unknown_us = 0;  // of kernels that may be products, or dequantize weights
  std::vector<std::string> unknown_names;
  std::pair<std::string, int64_t> most_frequent_unknown;  // and its calls

  void add_share(WorkClass work, int64_t calls, double us);
  void add_work(const WorkList& list);
  void add_reported(const Trace& trace);
  void sum_unknown();
  LinearCounts counts(const std::string& model) const;
  AuditModel judged(const std::string& model) const;
  void judge_all();
  void add_saving(const RatioOf& ratio_of);
  void add_notes(int64_t small);
  void sort();
};

void Examination::Sums::add_share(WorkClass work, int64_t calls, double us) {
  AuditShare& share = classes[work];
  share.work = name_of(work);
  share.key = key_of(work);
  share.calls += calls;
  share.us += us;
  report.total_us += us;
}

void Examination::Sums::add_work(const WorkList& list) {
  // Names are long and works many: each name is looked up once.
  std::unordered_map<uint64_t, KernelSum*> known;
  for (const Work& work : list.works()) {
    const double us = list.us(work);
    const int64_t calls = list.calls(work);
    add_share(work.work, calls, us);
    KernelSum*& found =
        known[uint64_t{list.name_index(work)} * kWorkClasses + static_cast<uint64_t>(work.work)];
    if (found == nullptr) found = &kernels[{list.name(work), work.work}];
    KernelSum& sum = *found;
    AuditKernel& kernel = sum.kernel;
    if (kernel.calls == 0) {
      kernel.name = list.name(work);
      kernel.work = name_of(work.work);
      kernel.key = key_of(work.work);
      kernel.library = list.library(work);
      kernel.evidence = list.evidence(work);
      if (!list.trace().is_host_only()) kernel.op = list.op_name(work);
    }
    if (us > sum.most_us || kernel.calls == 0) {
      sum.most_us = us;
      const Signature* operands = list.signature(work);
      kernel.shapes = operands == nullptr ? "" : shapes_text(*operands);
    }
    kernel.calls += calls;
    kernel.us += us;
  }
}

// Octet's own reports name classes of layers, and what they ran on.
void Examination::Sums::add_reported(const Trace& trace) {
  for (const ReportedLinear& reported : trace.reported) {
    const bool fake = reported.path == "fake int8", int8 = reported.path == "int8";
    const bool single = reported.path == "f32";
    const WorkClass work = int8     ? WorkClass::int8_gemm
                           : single ? WorkClass::single_gemm
                                    : WorkClass::half_gemm;
    const AuditVerdict verdict = int8   ? AuditVerdict::native_int8
                                 : fake ? AuditVerdict::fake_int8
                                        : AuditVerdict::unquantized;
    add_share(work, reported.calls, reported.us);
    linears.add_reported(reported, verdict, work, single ? "fp32" : "bf16");
    AuditKernel& kernel = kernels[{reported.kernel, work}].kernel;
    kernel.name = reported.kernel;
    kernel.work = name_of(work);
    kernel.key = key_of(work);
    kernel.library = "Octet";
    kernel.evidence = "report";
    kernel.calls += reported.calls;
    kernel.us += reported.us;
  }
  for (const auto& [key, us] : trace.reported_us) {
    add_share(work_class_of(key).value_or(WorkClass::other), 0, us);
  }
}

// Of all models together: what an unknown kernel belongs to, nobody knows.
void Examination::Sums::sum_unknown() {
  std::vector<const AuditKernel*> unknown;
  for (const auto& [key, sum] : kernels) {
    if (std::get<1>(key) != WorkClass::unknown || !may_be_of_linears(sum.kernel.name)) {
      continue;
    }
    unknown_us += sum.kernel.us;
    unknown.push_back(&sum.kernel);
  }
  std::stable_sort(unknown.begin(), unknown.end(),
                   [](const auto* a, const auto* b) { return a->us > b->us; });
  std::map<std::string, int64_t> calls;
  for (size_t i = 0; i < unknown.size(); ++i) {
    const std::string name = short_name(unknown[i]->name);
    if (i < kMostNames) unknown_names.push_back(name);
    calls[name] += unknown[i]->calls;
  }
  const auto most = std::max_element(
      calls.begin(), calls.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != calls.end()) most_frequent_unknown = *most;
}

LinearCounts Examination::Sums::counts(const std::string& model) const {
  LinearCounts counts = linears.counts(model);
  counts.unknown_us = unknown_us;
  counts.unknown_names = unknown_names;
  // Of a layer's four linears or more, nothing else is done for more than half.
  const auto& [name, calls] = most_frequent_unknown;
  const bool hides = without_shapes || without_order;
  if (hides && calls > counts.of(AuditVerdict::unquantized).calls / 2)
    counts.frequent_unknown = name;
  return counts;
}

AuditModel Examination::Sums::judged(const std::string& model) const {
  const LinearCounts counts = this->counts(model);
  Doubt doubt = Doubt::none;
  AuditModel judged{.name = model, .verdict = judge(counts, doubt)};
  judged.headline = headline_of(judged.verdict, doubt, counts);
  judged.linears = counts.all().calls;
  judged.native = counts.native().calls;
  judged.fake = counts.fake().calls;
  judged.weight_only = counts.of(AuditVerdict::weight_only).calls;
  judged.floating = counts.of(AuditVerdict::unquantized).calls;
  judged.unclear = counts.of(AuditVerdict::unclear).calls;
  return judged;
}

void Examination::Sums::judge_all() {
  sum_unknown();
  const std::vector<std::string> models = linears.models();
  const AuditModel all = judged("");
  report.verdict = all.verdict;
  report.headline = all.headline;
  report.linears = all.linears;
  report.native = all.native;
  report.fake = all.fake;
  report.weight_only = all.weight_only;
  report.floating = all.floating;
  report.unclear = all.unclear;
  const auto unknown = classes.find(WorkClass::unknown);
  const bool hides =
      unknown != classes.end() && unknown->second.us > kMostUnknown * report.total_us;
  if (report.verdict == AuditVerdict::no_linears && hides) {
    report.verdict = AuditVerdict::unclear;
    report.headline = fmt::format(
        "It is unknown how linears ran: no known kernel is a product, and much of the time is "
        "spent in unknown ones ({}).",
        fmt::join(counts("").unknown_names, ", "));
  }
  if (report.verdict == AuditVerdict::no_linears && classes.contains(WorkClass::convolution)) {
    report.headline =
        "No linear ran: what multiplied by weights were convolutions, not judged here.";
  }
  if (models.size() < 2) return;
  for (const std::string& model : models) report.models.push_back(judged(model));
  report.verdict = report.models[0].verdict;
  report.headline = fmt::format("{}: {}", models[0], report.models[0].headline);
}

void Examination::Sums::add_saving(const RatioOf& ratio_of) {
  AuditSaving& saving = report.saving;
  double left_us = 0, weighed_us = 0;
  for (const AuditLinear& linear : report.layers) {
    if (linear.verdict == AuditVerdict::native_int8) continue;
    const double us = linear.gemm_us + linear.dequantize_us + linear.quantize_us;
    saving.linear_us += us;
    const auto ratios = !ratio_of ? std::nullopt : ratio_of(linear.m, linear.n, linear.k);
    const bool fp8 = linear.verdict == AuditVerdict::native_fp8;
    const bool four_bit = linear.verdict == AuditVerdict::native_four_bit;
    const double ratio = !ratios || four_bit ? 0 : fp8 ? ratios->fp8 : ratios->bf16;
    if (!(ratio > 0)) {
      left_us += us;
      continue;
    }
    // The dequantization goes, and what INT8 needs for quantizing is part of the ratio.
    left_us += std::min(us, linear.gemm_us / ratio);
    weighed_us += us;
    // Where only some sizes were measured, the whole is a prediction.
    if (saving.source.empty() || !ratios->measured) saving.source = ratios->source;
  }
  if (!(report.total_us > 0)) return;
  saving.linear_us = std::min(saving.linear_us, report.total_us);
  saving.linear_share = saving.linear_us / report.total_us;
  // What remains of a trace of nothing but linears is the error of the sums.
  const double left_over = report.total_us - saving.linear_us;
  const double rest_us = left_over > 1e-6 * report.total_us ? left_over : 0;
  saving.at_most = rest_us > 0 ? report.total_us / rest_us : 0;
  if (weighed_us > 0 && left_us > 0) {
    saving.gemm_ratio = saving.linear_us / left_us;
    saving.expected = report.total_us / (rest_us + left_us);
  }
}

void Examination::Sums::add_notes(int64_t small) {
  auto& notes = report.notes;
  if (!has_work) {
    notes.push_back("A log announces what was chosen; only a trace shows what ran.");
    return;
  }
  if (without_shapes && report.verdict != AuditVerdict::native_int8) {
    notes.push_back(
        "A file has no shapes, so conversions of weights are recognised only by name; PyTorch's "
        "profiler records shapes with record_shapes=True.");
  }
  if (without_order) {
    notes.push_back(
        "A summary has no order of kernels: dequantized weights are found only if a kernel's name "
        "says so; a trace shows more.");
  }
  if (small > 0) {
    notes.push_back(
        fmt::format("{} calls of linears are not counted: each of their shapes has "
                    "less than 1/{:.0f} of the work of the largest.",
                    small, LinearBook::kSmallShare));
  }
  if (!report.unknown.empty()) {
    double us = 0;
    for (const AuditKernel& kernel : report.unknown) us += kernel.us;
    notes.push_back(fmt::format("{} {} of no known class, {:.1f} % of the time: see the list.",
                                report.unknown.size(),
                                report.unknown.size() == 1 ? "name is" : "names are",
                                report.total_us > 0 ? 100 * us / report.total_us : 0.0));
  }
  if (report.on_host) {
    notes.push_back("These are CPU ops, timed by the host, each without the ops it called.");
  }
}

void Examination::Sums::sort() {
  const double total = report.total_us;
  for (auto& [work, share] : classes) {
    share.share = total > 0 ? share.us / total : 0;
    report.classes.push_back(share);
  }
  for (auto& [key, sum] : kernels) {
    sum.kernel.share = total > 0 ? sum.kernel.us / total : 0;
    report.kernels.push_back(sum.kernel);
    if (std::get<1>(key) == WorkClass::unknown) report.unknown.push_back(sum.kernel);
  }
  report.layers = linears.layers();
  report.pairs = linears.pairs();
  const auto longer = [](const auto& a, const auto& b) { return a.us > b.us; };
  std::stable_sort(report.classes.begin(), report.classes.end(), longer);
  std::stable_sort(report.kernels.begin(), report.kernels.end(), longer);
  std::stable_sort(report.unknown.begin(), report.unknown.end(), longer);
  const auto lost = [](const AuditLinear& linear) {
    const bool native = linear.verdict == AuditVerdict::native_int8;
    return std::pair(!native, linear.gemm_us + linear.dequantize_us + linear.quantize_us);
  };
  std::stable_sort(report.layers.begin(), report.layers.end(),
                   [&](const auto& a, const auto& b) { return lost(a) > lost(b); });
}

Examination::Examination() : sums_(std::make_unique<Sums>()) {}
Examination::~Examination() = default;

const std::string& Examination::device() const { return sums_->report.device; }

void Examination::add(const Trace& trace) {
  AuditReport& report = sums_->report;
  report.files.push_back(trace.path);
  report.formats.push_back(trace.format);
  if (report.device.empty()) report.device = trace.device;
  sums_->log.insert(sums_->log.end(), trace.log.begin(), trace.log.end());
  if (!trace.reported.empty()) {
    sums_->has_work = true;
    sums_->add_reported(trace);
  }
  if (trace.kernels.empty() && trace.ops.empty()) return;
  sums_->has_work = true;
  report.on_host = report.on_host || trace.is_host_only();
  WorkList list(trace);
  const std::vector<LinearCall> calls = find_linears(list);
  sums_->linears.add(list, calls);
  sums_->add_work(list);
  const bool ordered = trace.has_order || trace.is_host_only();
  sums_->without_order = sums_->without_order || !ordered;
  sums_->without_shapes = sums_->without_shapes || (ordered && !trace.has_shapes);
  if (!ordered) return;
  const AuditTimeline timeline = timeline_of(list);
  report.wall_us +=
      timeline.piece_us * (timeline.us.empty() ? 0.0 : static_cast<double>(timeline.us[0].size()));
  if (report.timeline.us.empty()) report.timeline = timeline;
}

AuditReport Examination::finish(const RatioOf& ratio_of) {
  AuditReport& report = sums_->report;
  for (const LogFinding& finding : sums_->log) {
    report.log.push_back({finding.line, finding.meaning, finding.count});
  }
  if (sums_->has_work) {
    sums_->judge_all();
  } else {
    report.verdict = judge(sums_->log);
    report.headline = headline_of(report.verdict, sums_->log);
  }
  sums_->sort();
  sums_->add_saving(ratio_of);
  sums_->add_notes(sums_->linears.counts("").small);
  return report;
}

}  // namespace octet::audit
