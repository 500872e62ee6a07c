#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "audit/csv_table.h"
#include "audit/read_trace.h"
#include "audit/trace_tables.h"
#include "base/checked.h"
#include "base/error.h"
#include "formats/csv.h"

namespace octet::audit {
namespace {

bool holds(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

enum class TensorType : uint8_t { int8, half, fp8 };

// Of "sm__inst_executed_pipe_tensor_op_imma.sum" and its like. Hopper runs packed additions of fp16
// (hfma2) in the same pipe as its products, and counts those of FP8 with those of fp16.
std::optional<TensorType> type_of_pipe(std::string_view metric) {
  if (holds(metric, "hfma2")) return std::nullopt;
  if (holds(metric, "imma")) return TensorType::int8;
  if (holds(metric, "qmma") || holds(metric, "fp8")) return TensorType::fp8;
  if (holds(metric, "hmma")) return TensorType::half;
  return std::nullopt;
}

// Of "sm__ops_path_tensor_src_bf16_dst_fp32.sum" and its like.
std::optional<TensorType> type_of_source(std::string_view metric) {
  if (holds(metric, "src_int8")) return TensorType::int8;
  if (holds(metric, "src_fp8")) return TensorType::fp8;
  if (holds(metric, "src_bf16") || holds(metric, "src_fp16")) return TensorType::half;
  return std::nullopt;
}

// By type, negative: not told.
using TensorCounts = std::array<double, 3>;
constexpr TensorCounts kNotCounted = {-1, -1, -1};

// What is known of one launch, or of all launches of a kernel in a summary.
struct NcuKernel {
  std::string identity;
  Kernel kernel;
  // Three ways to measure it, which cannot be compared with one another, the best first.
  TensorCounts operations = kNotCounted, instructions = kNotCounted, shares = kNotCounted;

  void add(std::string_view metric, std::string_view unit, std::string_view cell) {
    const double value = csv_number(cell);
    if (!(value >= 0 && value < 1e18)) return;
    const auto calls = static_cast<double>(kernel.calls);
    if (metric == "gpu__time_duration.sum" || metric == "Duration" ||
        metric == "gpu__time_duration.avg") {
      kernel.us = value * us_per(unit) * calls;
      return;
    }
    const bool is_sum = metric.ends_with(".sum");
    if (holds(metric, "ops_path_tensor_src_")) {
      // With and without sparsity are parts of the whole.
      const auto type = type_of_source(metric);
      if (!type || !is_sum || holds(metric, "sparsity")) return;
      double& count = operations[static_cast<size_t>(*type)];
      count = std::max(count, 0.0) + value * calls;
    } else if (holds(metric, "pipe_tensor")) {
      const auto type = type_of_pipe(metric);
      if (!type) return;
      // Longer names are parts of the shorter ones.
      double& count =
          is_sum ? instructions[static_cast<size_t>(*type)] : shares[static_cast<size_t>(*type)];
      count = std::max(count, value * calls);
    }
  }

  Kernel whole() const {
    Kernel result = kernel;
    for (const TensorCounts& counts : {operations, instructions, shares}) {
      if (counts == kNotCounted) continue;
      result.int8_instructions = counts[0];
      result.half_instructions = counts[1];
      result.fp8_instructions = counts[2];
      break;
    }
    return result;
  }
};

class NcuReader {
 public:
  explicit NcuReader(ByteStream& bytes) : bytes_(bytes), tables_(bytes.path()) {}

  Trace read() {
    LineReader lines(bytes_);
    for (std::string_view line; lines.next(line);) {
      if (line.find(',') == line.npos || line.starts_with("==")) continue;
      std::vector<std::string> cells = split_csv(line);
      if (is_nsight_compute_header(cells)) {
        flush();
        begin_table(CsvHeader(std::move(cells)));
      } else if (header_.size() > 0 && cells.size() >= header_.size()) {
        add_row(cells);
      }
    }
    flush();
    check(tables_.has_kernels(), "{}: is a table of Nsight Compute without kernels", bytes_.path());
    return tables_.take("Nsight Compute CSV", device_, has_order_);
  }

 private:
  void begin_table(CsvHeader header) {
    header_ = std::move(header);
    units_.clear();
    id_ = header_.column("ID");
    process_ = header_.column("Process ID");
    name_ = header_.column("Kernel Name");
    block_ = header_.column("Block Size");
    grid_ = header_.column("Grid Size");
    calls_ = header_.column("Invocations");
    metric_ = header_.column("Metric Name");
    unit_ = header_.column("Metric Unit");
    value_ = header_.column("Metric Value");
    if (value_ == CsvHeader::kNoColumn) value_ = header_.column("Average");
    if (metric_ != CsvHeader::kNoColumn) return;
    // One column for each metric, of which there may be thousands.
    metrics_.clear();
    for (size_t i = 0; i < header_.size(); ++i) {
      const std::string_view name = header_.cells()[i];
      if (name.starts_with("gpu__time_duration") || holds(name, "_tensor_") || name == "Duration") {
        metrics_.push_back(i);
      }
    }
    device_name_ = header_.column("device__attribute_display_name");
  }

  void add_row(const std::vector<std::string>& row) {
    const std::string_view name = cell_of(row, name_);
    if (name.empty()) {
      // Units of the raw page are in a row of their own.
      if (metric_ == CsvHeader::kNoColumn) units_ = row;
      return;
    }
    if (metric_ != CsvHeader::kNoColumn) {
      std::string identity;
      for (const size_t column : {process_, id_, name_, block_, grid_}) {
        identity += cell_of(row, column);
        identity += '\n';
      }
      if (identity != open_.identity) begin_kernel(row, std::move(identity));
      open_.add(cell_of(row, metric_), cell_of(row, unit_), cell_of(row, value_));
      return;
    }
    begin_kernel(row, "row");
    for (const size_t column : metrics_) {
      open_.add(header_.cells()[column], cell_of(units_, column), cell_of(row, column));
    }
    if (device_.empty()) device_ = cell_of(row, device_name_).substr(0, 200);
    flush();
  }

  void begin_kernel(const std::vector<std::string>& row, std::string identity) {
    flush();
    open_.identity = std::move(identity);
    Kernel& kernel = open_.kernel;
    kernel.name = tables_.name(cell_of(row, name_));
    if (calls_ != CsvHeader::kNoColumn) {
      kernel.calls = std::max<int64_t>(1, static_cast<int64_t>(csv_amount(cell_of(row, calls_))));
    }
    const uint64_t block = product_of(cell_of(row, block_));
    kernel.threads = checked_mul(block, product_of(cell_of(row, grid_))).value_or(0);
  }

  // Kernels are listed in the order of their launches; there is no time but their own.
  void flush() {
    if (!open_.identity.empty()) {
      Kernel kernel = open_.whole();
      kernel.start_us = now_us_;
      now_us_ += std::max(kernel.us, 1e-3);
      has_order_ = has_order_ && kernel.calls == 1;
      tables_.add_kernel(kernel, 0, 0);
    }
    open_ = {};
  }

  ByteStream& bytes_;
  TraceTables tables_;
  CsvHeader header_;
  std::vector<std::string> units_;
  std::vector<size_t> metrics_;  // columns of the raw page
  NcuKernel open_;
  std::string device_;
  double now_us_ = 0;
  bool has_order_ = true;  // unless a row sums up several launches
  size_t id_ = 0, process_ = 0, name_ = 0, block_ = 0, grid_ = 0, calls_ = 0;
  size_t metric_ = 0, unit_ = 0, value_ = 0, device_name_ = CsvHeader::kNoColumn;
};

}  // namespace

bool is_nsight_compute_header(const std::vector<std::string>& cells) {
  const CsvHeader header(cells);
  const bool has_metrics = header.has("Metric Name") && header.has("Metric Unit");
  return header.has("Kernel Name") && (has_metrics || (header.has("ID") && header.has("Context")));
}

Trace read_nsight_compute_csv(ByteStream& bytes) { return NcuReader(bytes).read(); }

}  // namespace octet::audit
