#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

#include "audit/csv_table.h"
#include "audit/patterns.h"
#include "audit/products.h"
#include "audit/read_trace.h"
#include "audit/text_table.h"
#include "audit/trace_tables.h"
#include "base/error.h"
#include "formats/csv.h"

namespace octet::audit {
namespace {

constexpr size_t kMaxTableRows = 100'000;
// Rows have sums of calls, and an op of the host is one call: more are not told apart.
constexpr int64_t kMostOps = 2000;

// "111.000us", "5.151ms", "2.775s"; 0 for anything else.
double time_of_cell(std::string_view cell) {
  const size_t unit = cell.find_first_not_of("0123456789.");
  if (unit == cell.npos) return 0;
  return csv_amount(cell.substr(0, unit)) * us_per(cell.substr(unit));
}

// "[[4096, 4608], [4608, 13824], []]": dims without types.
Signature shapes_of_cell(std::string_view cell) {
  constexpr size_t kMostOperands = 16, kMostDims = 8;
  Signature operands;
  int depth = 0;
  for (size_t at = 0; at < cell.size(); ++at) {
    if (cell[at] == '[') {
      if (++depth == 2 && operands.size() < kMostOperands) operands.emplace_back();
    } else if (cell[at] == ']') {
      --depth;
    } else if (depth == 2 && cell[at] >= '0' && cell[at] <= '9' && !operands.empty()) {
      int64_t size = 0;
      const char* end = std::from_chars(&cell[at], cell.data() + cell.size(), size).ptr;
      if (operands.back().dims.size() < kMostDims) operands.back().dims.push_back(size);
      at = static_cast<size_t>(end - cell.data()) - 1;
    }
  }
  return operands;
}

bool multiplies_itself(std::string_view op) {
  return op == "aten::mm" || op == "aten::addmm" || op == "aten::bmm" || op == "aten::baddbmm";
}

class TorchTableReader {
 public:
  explicit TorchTableReader(ByteStream& bytes) : bytes_(bytes), tables_(bytes.path()) {}

  Trace read() {
    LineReader lines(bytes_);
    bool is_header = false;
    for (std::string_view line; lines.next(line);) {
      // Over the header, under it, and after the last row.
      if (columns_.begin(line)) {
        is_header = true;
        continue;
      }
      if (columns_.size() == 0) continue;
      std::vector<std::string> cells = columns_.cells(line);
      if (cells.empty()) continue;
      if (is_header && is_torch_table_header(cells)) {
        begin_table(CsvHeader(std::move(cells)));
      } else if (header_.size() == cells.size()) {
        add_row(cells);
      }
      is_header = false;
    }
    add_kernels();
    if (!tables_.has_kernels()) add_ops();
    check(tables_.has_kernels() || tables_.has_ops(),
          "{}: is a table of PyTorch's profiler without ops and without kernels", bytes_.path());
    return tables_.take("table of PyTorch's profiler", "", /*has_order=*/false);
  }

 private:
  struct Row {
    std::string name, shapes;
    double host_us = 0, host_total_us = 0, device_us = 0;
    int64_t calls = 0;
  };

  void begin_table(CsvHeader header) {
    // A second table has the same calls again, in another order or by shapes.
    if (header_.size() > 0) has_ended_ = true;
    header_ = std::move(header);
    name_ = header_.column("Name");
    host_ = header_.column("Self CPU");
    host_total_ = header_.column("CPU total");
    calls_ = header_.column("# of Calls");
    shapes_ = header_.column("Input Shapes");
    device_ = CsvHeader::kNoColumn;
    for (const char* device : {"Self CUDA", "Self XPU", "Self PrivateUse1", "Self MTIA"}) {
      if (header_.has(device)) device_ = header_.column(device);
    }
  }

  void add_row(const std::vector<std::string>& cells) {
    const auto calls = static_cast<int64_t>(csv_amount(cell_of(cells, calls_)));
    if (has_ended_ || calls <= 0) return;
    check(rows_.size() < kMaxTableRows, "{}: is a table of more than {} rows", bytes_.path(),
          kMaxTableRows);
    rows_.push_back({.name = std::string(cell_of(cells, name_)),
                     .shapes = std::string(cell_of(cells, shapes_)),
                     .host_us = time_of_cell(cell_of(cells, host_)),
                     .host_total_us = time_of_cell(cell_of(cells, host_total_)),
                     .device_us = time_of_cell(cell_of(cells, device_)),
                     .calls = std::min(calls, TraceTables::kMaxCalls)});
  }

  // Ops, calls of the runtime, and ranges, which are listed again with their time on the device.
  std::set<std::string_view> names_on_host() const {
    std::set<std::string_view> names;
    for (const Row& row : rows_) {
      if (row.host_us > 0 || row.host_total_us > 0) names.insert(row.name);
    }
    return names;
  }

  void add_kernels() {
    const std::set<std::string_view> on_host = names_on_host();
    for (const Row& row : rows_) {
      // Inductor calls the range around the launch of a Triton kernel as it calls the kernel.
      const bool is_told = row.name.starts_with("triton_") && row.host_us <= 0;
      if (row.device_us <= 0 || (on_host.contains(row.name) && !is_told) ||
          row.name.starts_with("aten::") || row.name.starts_with("ProfilerStep")) {
        continue;
      }
      Kernel kernel;
      kernel.us = row.device_us;
      kernel.calls = row.calls;
      kernel.name = tables_.name(row.name);
      kernel.is_transfer = row.name.starts_with("Memcpy") || row.name.starts_with("Memset");
      tables_.add_kernel(kernel, add_op_around(row), 0);
    }
    if (tables_.has_kernels()) add_cut_copies();
  }

  // Of a table that shows only its first rows: copies, which may be casts, whose kernels it lacks.
  void add_cut_copies() {
    const Row* copies = nullptr;
    for (const Row& row : rows_) {
      const bool of_kernels = row.name.find("copy") != row.name.npos || row.name.ends_with("...");
      if (row.host_us <= 0 && row.device_us > 0 && of_kernels) return;
      if (row.name == "aten::copy_" && row.device_us > 0) copies = &row;
    }
    if (copies == nullptr) return;
    Kernel kernel;
    kernel.us = copies->device_us;
    kernel.calls = copies->calls;
    kernel.name = tables_.name(copies->name);
    tables_.add_kernel(kernel, 0, 0);
  }

  // A name that was cut short may have lost what tells it. If one op alone ran as often and took
  // exactly as long on the device, this is its kernel. 0: there is none.
  uint32_t add_op_around(const Row& kernel) {
    if (!kernel.name.ends_with("...")) return 0;
    const Row* found = nullptr;
    for (const Row& row : rows_) {
      const bool is_op = row.host_us > 0 && row.name.find("::") != std::string::npos;
      if (!is_op || row.calls != kernel.calls || row.device_us != kernel.device_us) continue;
      if (found != nullptr) return 0;
      found = &row;
    }
    if (found == nullptr) return 0;
    Op op;
    op.start_us = ++ops_;
    op.name = tables_.name(found->name);
    tables_.add_op(op, ops_);
    return ops_;
  }

  // Without kernels the ops are all there is: of the host, or each with what it ran on the device.
  void add_ops() {
    double now_us = 0;
    for (const Row& row : rows_) {
      const double all_us = device_ == CsvHeader::kNoColumn ? row.host_us : row.device_us;
      const bool is_op = row.name.find("::") != std::string::npos || is_compiled_code(row.name);
      // aten::linear leaves its product to aten::addmm, which has a row of its own, and multiplies
      // itself, however long it takes to copy the bias.
      const bool delegates = is_gemm(op_by_name(row.name).work) && !multiplies_itself(row.name) &&
                             row.host_us * 2 < row.host_total_us;
      if (!is_op || delegates || all_us <= 0) continue;
      const int64_t count = std::min(row.calls, kMostOps);
      Op op;
      op.us = static_cast<float>(all_us / static_cast<double>(count));
      op.name = tables_.name(row.name);
      const Signature shapes = shapes_of_cell(row.shapes);
      if (!shapes.empty()) op.signature = tables_.signature(shapes);
      for (int64_t i = 0; i < count; ++i) {
        op.start_us = now_us;
        now_us += 2 * static_cast<double>(op.us) + 10;  // clear of what comes next
        tables_.add_op(op, 0);
      }
    }
  }

  ByteStream& bytes_;
  TraceTables tables_;
  TextColumns columns_;
  CsvHeader header_;
  bool has_ended_ = false;
  std::vector<Row> rows_;
  uint32_t ops_ = 0;  // that kernels with a shortened name belong to
  size_t name_ = 0, host_ = 0, host_total_ = 0, calls_ = 0, shapes_ = 0, device_ = 0;
};

}  // namespace

bool is_torch_table_header(const std::vector<std::string>& cells) {
  const CsvHeader header(cells);
  return header.has("Name") && header.has("# of Calls") &&
         (header.has("Self CPU") || header.has("Self CUDA"));
}

Trace read_torch_table(ByteStream& bytes) { return TorchTableReader(bytes).read(); }

}  // namespace octet::audit
