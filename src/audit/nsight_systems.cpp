#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <string_view>

#include "audit/csv_table.h"
#include "audit/read_trace.h"
#include "audit/text_table.h"
#include "audit/trace_tables.h"
#include "base/checked.h"
#include "base/error.h"
#include "formats/csv.h"

namespace octet::audit {
namespace {

enum class NsysTable { other, kernel_sums, transfer_sums, trace };

NsysTable table_of(const CsvHeader& header) {
  const bool is_trace = header.has("GrdX") && header.has("Start") && header.has("Duration");
  const bool is_launch_trace = header.has("Kernel Start") && header.has("Kernel Dur");
  if (is_trace || is_launch_trace) return NsysTable::trace;
  if (!header.has("Total Time")) return NsysTable::other;
  // Calls of the host are counted as "Num Calls", ranges of NVTX have a "Range" instead of a name.
  if (header.has("Instances") && (header.has("Name") || header.has("Category"))) {
    return NsysTable::kernel_sums;
  }
  return header.has("Operation") ? NsysTable::transfer_sums : NsysTable::other;
}

bool is_csv_number(std::string_view cell) { return !std::isnan(csv_number(cell)); }

class NsysCsvReader {
 public:
  explicit NsysCsvReader(ByteStream& bytes) : bytes_(bytes), tables_(bytes.path()) {}

  Trace read() {
    LineReader lines(bytes_);
    std::string before;  // the line, which is a header where dashes follow
    for (std::string_view line; lines.next(line);) {
      if (columns_.begin(line)) {
        std::vector<std::string> cells = columns_.cells(before);
        if (!cells.empty()) begin_table(CsvHeader(std::move(cells)));
        is_text_ = true;
        continue;
      }
      before = line;
      if (is_text_) {
        const std::vector<std::string> cells = columns_.cells(line);
        if (!cells.empty() && is_csv_number(cells[0])) add_row(cells);
        continue;
      }
      if (line.find(',') == line.npos) continue;
      std::vector<std::string> cells = split_csv(line);
      // All rows begin with a number. Headers do not, and end the table before, known or not.
      if (is_csv_number(cells[0])) {
        if (cells.size() >= header_.size()) add_row(cells);
      } else if (cells.size() > 2) {
        begin_table(CsvHeader(std::move(cells)));
      }
    }
    check(tables_.has_kernels(), "{}: is a table of Nsight Systems without kernels", bytes_.path());
    return tables_.take(is_text_ ? "Nsight Systems table" : "Nsight Systems CSV", device_,
                        kernel_table_ == NsysTable::trace);
  }

 private:
  void begin_table(CsvHeader header) {
    table_ = table_of(header);
    header_ = std::move(header);
    const bool has_kernels = table_ == NsysTable::kernel_sums || table_ == NsysTable::trace;
    // A second table tells the same kernels again.
    if (has_kernels && kernel_table_ != NsysTable::other) table_ = NsysTable::other;
    if (table_ == NsysTable::transfer_sums && has_transfers_) table_ = NsysTable::other;
    if (table_ == NsysTable::other) return;
    if (has_kernels) kernel_table_ = table_;
    const auto first_of = [&](std::initializer_list<std::string_view> names) {
      for (const std::string_view name : names) {
        if (header_.has(name)) return header_.column(name);
      }
      return CsvHeader::kNoColumn;
    };
    const bool is_trace = table_ == NsysTable::trace;
    start_ = first_of({"Kernel Start", "Start"});
    time_ = is_trace ? first_of({"Kernel Dur", "Duration"}) : first_of({"Total Time"});
    calls_ = is_trace ? CsvHeader::kNoColumn : first_of({"Instances", "Count"});
    name_ = first_of({"Kernel Name", "Name", "Operation"});
    category_ = first_of({"Category"});
    device_column_ = first_of({"Device", "DevId"});
    grid_ = first_of({"GridXYZ"});
    block_ = first_of({"BlockXYZ"});
    grid_x_ = first_of({"GrdX"});
    block_x_ = first_of({"BlkX"});
    // "Total Time (ns)"; tables without a unit are in nanoseconds.
    const double unit = us_per(header_.unit(time_));
    us_ = unit > 0 ? unit : 1e-3;
    const double start_unit = start_ == CsvHeader::kNoColumn ? 0 : us_per(header_.unit(start_));
    start_us_ = start_unit > 0 ? start_unit : 1e-3;
    // Sums of transfers come in a report of their own, unless the table has a column that tells
    // them from kernels.
    has_transfers_ = has_transfers_ || is_trace || category_ != CsvHeader::kNoColumn ||
                     table_ == NsysTable::transfer_sums;
  }

  void add_row(const std::vector<std::string>& row) {
    if (table_ == NsysTable::other) return;
    const std::string_view name = cell_of(row, name_);
    if (name.empty()) return;
    Kernel kernel;
    kernel.us = csv_amount(cell_of(row, time_)) * us_;
    if (calls_ != CsvHeader::kNoColumn) {
      kernel.calls = static_cast<int64_t>(csv_amount(cell_of(row, calls_)));
    }
    kernel.name = tables_.name(name);
    kernel.is_transfer = table_ == NsysTable::transfer_sums || name.starts_with("[CUDA mem") ||
                         cell_of(row, category_).starts_with("MEM");
    if (table_ == NsysTable::trace) {
      kernel.start_us = csv_amount(cell_of(row, start_)) * start_us_;
    }
    const uint64_t blocks = extent(row, grid_, grid_x_), threads = extent(row, block_, block_x_);
    kernel.threads = checked_mul(blocks, threads).value_or(0);
    // "NVIDIA H200 (0)"
    const std::string_view device = cell_of(row, device_column_);
    if (device_.empty() && !kernel.is_transfer && !is_csv_number(device)) {
      device_ = device.substr(0, std::min(device.rfind(" ("), size_t{200}));
    }
    tables_.add_kernel(kernel, 0, 0);
  }

  // In one cell, or in three.
  static uint64_t extent(const std::vector<std::string>& row, size_t whole, size_t x) {
    if (whole != CsvHeader::kNoColumn) return product_of(cell_of(row, whole));
    if (x == CsvHeader::kNoColumn) return 0;
    uint64_t product = 1;
    for (size_t i = 0; i < 3; ++i) {
      const double size = csv_amount(cell_of(row, x + i));
      product = checked_mul(product, static_cast<uint64_t>(size)).value_or(0);
    }
    return product;
  }

  ByteStream& bytes_;
  TraceTables tables_;
  TextColumns columns_;
  bool is_text_ = false;
  CsvHeader header_;
  NsysTable table_ = NsysTable::other, kernel_table_ = NsysTable::other;
  bool has_transfers_ = false;
  std::string device_;
  double us_ = 1, start_us_ = 1;
  size_t start_ = 0, time_ = 0, calls_ = 0, name_ = 0, category_ = 0;
  size_t device_column_ = 0, grid_ = 0, block_ = 0, grid_x_ = 0, block_x_ = 0;
};

}  // namespace

bool is_nsight_systems_header(const std::vector<std::string>& cells) {
  const NsysTable table = table_of(CsvHeader(cells));
  return table == NsysTable::kernel_sums || table == NsysTable::trace;
}

Trace read_nsight_systems_csv(ByteStream& bytes) { return NsysCsvReader(bytes).read(); }

}  // namespace octet::audit
