// Tables whose columns stand between "|": those that SGLang's analysis of a trace writes in
// Markdown, others of that kind, and what vLLM's layerwise profiler prints.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/csv_table.h"
#include "audit/read_trace.h"
#include "audit/trace_tables.h"
#include "base/error.h"

namespace octet::audit {
namespace {

constexpr size_t kMostColumns = 64;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r`*");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r`*") - begin + 1);
}

// Of "| a | b |" and of "a | b": none where there is no such sign. Names have "||" at most.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  line = trimmed(line);
  if (line.starts_with('|') && !line.starts_with("|-")) line.remove_prefix(1);
  if (line.find('|') == line.npos) return cells;
  while (cells.size() < kMostColumns) {
    size_t end = line.find('|');
    // "|- LlamaModel": a part of vLLM's tree.
    if (end == 0 && cells.empty()) end = line.find('|', 1);
    cells.emplace_back(trimmed(line.substr(0, end)));
    if (end == line.npos) break;
    line.remove_prefix(end + 1);
    if (line.empty()) break;
  }
  return cells;
}

struct Columns {
  size_t name = CsvHeader::kNoColumn, time = name, calls = name, op = name;
  double us = 0;      // in one of the table's unit; 0: each cell has its own
  bool tree = false;  // rows are of modules and, within them, of kernels

  bool are_known() const { return name != CsvHeader::kNoColumn && time != CsvHeader::kNoColumn; }
};

Columns columns_of(const CsvHeader& header) {
  const auto first_of = [&](std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      if (header.has(name)) return header.column(name);
    }
    return CsvHeader::kNoColumn;
  };
  Columns columns;
  if (header.has("cuda_time_us") && header.has("name")) {
    columns = {.name = header.column("name"),
               .time = header.column("cuda_time_us"),
               .calls = header.column("invocations"),
               .us = 1,
               .tree = true};
    return columns;
  }
  columns.name = first_of({"Kernel", "Kernel Name", "Kernel name"});
  columns.calls = first_of({"Launches", "Count", "Calls", "Instances", "# of Calls"});
  columns.time =
      first_of({"GPU time", "GPU Time", "CUDA time", "Total time", "Total Time", "Total", "Time"});
  columns.op = first_of({"CPU op", "CPU Op", "Op"});
  if (columns.calls == CsvHeader::kNoColumn) columns.name = CsvHeader::kNoColumn;
  if (columns.are_known()) columns.us = us_per(header.unit(columns.time));
  return columns;
}

bool is_rule(std::string_view line) {
  return line.find("---") != line.npos && line.find_first_not_of(" |:-\t\r") == line.npos;
}

class PipeTableReader {
 public:
  explicit PipeTableReader(ByteStream& bytes) : bytes_(bytes), tables_(bytes.path()) {}

  Trace read() {
    LineReader lines(bytes_);
    for (std::string_view line; lines.next(line);) {
      std::vector<std::string> cells = cells_of(line);
      if (cells.size() < 2 || is_rule(line)) continue;
      if (!columns_.are_known()) {
        header_ = CsvHeader(std::move(cells));
        columns_ = columns_of(header_);
        continue;
      }
      const CsvHeader other(cells);
      // A second table has the same kernels again, or others: the first counts.
      if (columns_of(other).are_known()) break;
      if (cells.size() + 1 >= header_.size() && cells.size() <= header_.size()) add_row(cells);
    }
    add_last();
    check(tables_.has_kernels(), "{}: is a table of kernels without any", bytes_.path());
    return tables_.take(columns_.tree ? "table of vLLM's layerwise profiler" : "table of kernels",
                        "", /*has_order=*/false);
  }

 private:
  void add_row(const std::vector<std::string>& cells) {
    std::string_view name = cell_of(cells, columns_.name);
    size_t depth = 0;
    if (columns_.tree) {
      while (name.starts_with('|') || name.starts_with('-')) {
        name.remove_prefix(1);
        ++depth;
      }
      name = trimmed(name);
      // What has others within it is a module.
      if (depth > depth_) last_.reset();
      add_last();
      depth_ = depth;
    }
    if (name.empty()) return;
    Kernel kernel;
    kernel.us = time_of(cell_of(cells, columns_.time));
    kernel.calls = columns_.calls == CsvHeader::kNoColumn
                       ? 1
                       : static_cast<int64_t>(csv_amount(cell_of(cells, columns_.calls)));
    kernel.name = tables_.name(name);
    kernel.is_transfer = name.starts_with("Memcpy") || name.starts_with("Memset");
    if (kernel.us <= 0 || kernel.calls <= 0) return;
    last_ = kernel;
    if (columns_.tree) return;
    add_op(cell_of(cells, columns_.op));
    add_last();
  }

  // The op that launched the row's kernel, if the column has no call of the runtime.
  void add_op(std::string_view name) {
    op_ = 0;
    if (name.find("::") == name.npos) return;
    Op op;
    op.start_us = ++ops_;
    op.name = tables_.name(name);
    op_ = ops_;
    tables_.add_op(op, op_);
  }

  void add_last() {
    if (last_) tables_.add_kernel(*last_, op_, 0);
    last_.reset();
  }

  // "2.03 ms", or a number in the unit of the column.
  double time_of(std::string_view cell) const {
    const size_t unit = cell.find_first_not_of("0123456789.,");
    if (unit == cell.npos) return csv_amount(cell) * (columns_.us > 0 ? columns_.us : 1);
    const double own = us_per(trimmed(cell.substr(unit)));
    return csv_amount(cell.substr(0, unit)) * (own > 0 ? own : columns_.us);
  }

  ByteStream& bytes_;
  TraceTables tables_;
  CsvHeader header_;
  Columns columns_;
  std::optional<Kernel> last_;  // of a tree, until the next row tells that it is no module
  size_t depth_ = 0;
  uint32_t ops_ = 0, op_ = 0;  // all, and that of the last kernel; 0: not told
};

}  // namespace

bool is_pipe_table_header(std::string_view line) {
  const std::vector<std::string> cells = cells_of(line);
  return cells.size() > 2 && columns_of(CsvHeader(cells)).are_known();
}

Trace read_pipe_table(ByteStream& bytes) { return PipeTableReader(bytes).read(); }

}  // namespace octet::audit
