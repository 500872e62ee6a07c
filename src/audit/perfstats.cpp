// What perfstats.py of onnxconverter-common prints of ONNX Runtime's profile: sums of operators.
#include <algorithm>
#include <string>
#include <vector>

#include "audit/csv_table.h"
#include "audit/read_trace.h"
#include "audit/text_table.h"
#include "audit/trace_tables.h"
#include "base/error.h"

namespace octet::audit {
namespace {

constexpr size_t kMaxRows = 10'000;
// Rows have sums of calls, and an op of the host is one call: more are not told apart.
constexpr int64_t kMostOps = 2000;

struct Row {
  std::string name;
  double us = 0;
  int64_t calls = 0;
};

// Sums have no order: calls of all rows are spread evenly, so that what dequantizes as often as
// there are products stands before them.
void add_ops(TraceTables& tables, const std::vector<Row>& rows) {
  struct Call {
    double place = 0;
    const Row* row = nullptr;
  };
  std::vector<Call> calls;
  for (const Row& row : rows) {
    const int64_t count = std::min(row.calls, kMostOps);
    // Of those that are called as often, products come last.
    const double late =
        row.name.find("Mat") != row.name.npos || row.name.find("Gemm") != row.name.npos ? 0.75
                                                                                        : 0.25;
    for (int64_t i = 0; i < count; ++i) {
      calls.push_back({(static_cast<double>(i) + late) / static_cast<double>(count), &row});
    }
  }
  std::stable_sort(calls.begin(), calls.end(),
                   [](const Call& a, const Call& b) { return a.place < b.place; });
  double now_us = 0;
  for (const Call& call : calls) {
    Op op;
    op.start_us = now_us;
    op.us =
        static_cast<float>(call.row->us / static_cast<double>(std::min(call.row->calls, kMostOps)));
    op.name = tables.name("onnx::" + call.row->name);
    now_us += 2 * static_cast<double>(op.us) + 10;  // clear of what comes next
    tables.add_op(op, 0);
  }
}

}  // namespace

bool is_perfstats_header(const std::vector<std::string>& cells) {
  const CsvHeader header(cells);
  return header.has("op_type") && header.has("duration") && header.has("count");
}

Trace read_perfstats(ByteStream& bytes) {
  TraceTables tables(bytes.path());
  TextColumns columns;
  CsvHeader header;
  std::vector<Row> rows;
  std::string before;
  LineReader lines(bytes);
  for (std::string_view line; lines.next(line);) {
    if (columns.begin(line)) {
      if (header.size() > 0) break;
      std::vector<std::string> cells = columns.cells(before);
      if (is_perfstats_header(cells)) header = CsvHeader(std::move(cells));
      continue;
    }
    before = line;
    if (header.size() == 0) continue;
    const std::vector<std::string> cells = columns.cells(line);
    if (cells.size() != header.size()) continue;
    Row row{.name = cells[header.column("op_type")],
            .us = csv_amount(cells[header.column("duration")]),
            .calls = static_cast<int64_t>(csv_amount(cells[header.column("count")]))};
    if (row.calls <= 0 || row.name.empty()) continue;
    check(rows.size() < kMaxRows, "{}: is a table of more than {} rows", bytes.path(), kMaxRows);
    rows.push_back(std::move(row));
  }
  add_ops(tables, rows);
  check(tables.has_ops(), "{}: is a table of ONNX Runtime's operators without any", bytes.path());
  return tables.take("summary of an ONNX Runtime profile", "", /*has_order=*/false);
}

}  // namespace octet::audit
