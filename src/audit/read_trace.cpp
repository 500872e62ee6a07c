#include "audit/read_trace.h"

#include "audit/text_table.h"
#include "base/error.h"
#include "formats/csv.h"
#include "formats/sqlite_file.h"

namespace octet::audit {
namespace {

using Reader = Trace (*)(ByteStream&);

std::string_view without_blanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == text.npos ? std::string_view() : text.substr(begin);
}

// Lines of logs begin with brackets, too: "[INFO] ...", "{'prompt': ...}".
bool begins_as_json(std::string_view head) {
  head = without_blanks(head);
  if (head.empty() || (head[0] != '{' && head[0] != '[')) return false;
  const std::string_view inside = without_blanks(head.substr(1));
  if (inside.empty()) return true;
  return head[0] == '{' ? inside[0] == '"' || inside[0] == '}'
                        : inside[0] == '{' || inside[0] == ']';
}

// The reader of the first header among the lines; none: these are no tables.
Reader reader_of_table(std::string_view head) {
  bool is_of_ncu = false, has_dashes = false;
  TextColumns columns;
  std::string_view before;
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find_first_of("\r\n"));
    head.remove_prefix(std::min(line.size() + 1, head.size()));
    if (is_onednn_line(line)) return read_onednn_verbose;
    // The program that was profiled may print much before the table.
    if (line.starts_with("==PROF==")) is_of_ncu = true;
    // A header stands between two lines of dashes (PyTorch), or over one (Nsight Systems).
    if (columns.begin(line)) {
      has_dashes = true;
      if (is_nsight_systems_header(columns.cells(before))) return read_nsight_systems_csv;
      if (is_perfstats_header(columns.cells(before))) return read_perfstats;
    } else if (has_dashes && is_torch_table_header(columns.cells(line))) {
      return read_torch_table;
    }
    if (!line.empty()) before = line;
    if (is_pipe_table_header(line)) return read_pipe_table;
    // No header that is known has more text; a row of a raw page may.
    if (line.find(',') == line.npos) continue;
    const std::vector<std::string> cells = split_csv(line);
    if (is_nsight_compute_header(cells)) return read_nsight_compute_csv;
    if (is_nsight_systems_header(cells)) return read_nsight_systems_csv;
    if (is_rocprof_header(cells)) return read_rocprof_csv;
  }
  return is_of_ncu ? read_nsight_compute_csv : nullptr;
}

bool is_trace_json(std::string_view text) {
  const std::string_view begin = text.substr(0, 4096);
  return begins_as_json(text) &&
         (is_octet_report(text) || is_rocprof_json(text) || is_tensorrt_json(text) ||
          begin.find("\"traceEvents\"") != begin.npos || begin.find("\"ph\"") != begin.npos);
}

// What stands between the first fences of a Markdown text around JSON of some profiler; empty: none
// do. `text` may be the beginning alone.
std::string_view fenced_json(std::string_view text) {
  for (size_t fence = text.find("```"); fence != text.npos; fence = text.find("```", fence + 3)) {
    const size_t line = text.find('\n', fence);
    if (line == text.npos) break;
    std::string_view inside = text.substr(line + 1);
    inside = inside.substr(0, inside.find("\n```"));
    if (is_trace_json(inside)) return inside;
  }
  return {};
}

Trace read_json(ByteStream& bytes, std::string_view head) {
  if (is_octet_report(head)) return read_octet_report(bytes);
  if (is_rocprof_json(head)) return read_rocprof_json(bytes);
  return is_tensorrt_json(head) ? read_tensorrt_json(bytes) : read_chrome_trace(bytes);
}

// The JSON of a paste, as far as the fence that ends it.
Trace read_fenced(ByteStream& bytes) {
  constexpr size_t kMostPasted = size_t{64} << 20;
  std::string text;
  std::string piece(size_t{1} << 16, '\0');
  while (const size_t count = bytes.read(piece)) {
    text.append(piece, 0, count);
    check(text.size() <= kMostPasted,
          "{}: is a text of more than 64 MB around JSON; save the JSON as a file of its own",
          bytes.path());
  }
  const std::string_view inside = fenced_json(text);
  ByteStream pasted(inside, bytes.path());
  return read_json(pasted, inside);
}

void refuse_binary(std::string_view head, const std::string& path) {
  const bool is_utf16 = head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF");
  check(!is_utf16, "{}: is UTF-16, expected UTF-8; save it as that", path);
  check(!head.starts_with("PK\x03\x04"), "{}: is a ZIP archive; give the file that is in it", path);
  check(head.find('\0') == head.npos,
        "{}: is a binary file of no known format; of Nsight's own reports give what `nsys export "
        "--type sqlite` or `ncu --import FILE --csv --page raw` makes of them",
        path);
}

}  // namespace

Trace read_stream(ByteStream& bytes) {
  std::string_view head = bytes.head();
  check(!head.empty(), "{}: is empty", bytes.path());
  check(!is_sqlite(head), "{}: is SQLite, which can only be read as a file of its own",
        bytes.path());
  refuse_binary(head, bytes.path());
  if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
  if (begins_as_json(head)) return read_json(bytes, head);
  if (const Reader reader = reader_of_table(head)) return reader(bytes);
  return fenced_json(head).empty() ? read_run_log(bytes) : read_fenced(bytes);
}

Trace read_trace(const std::string& path, const std::function<void(uint64_t, uint64_t)>& progress) {
  {
    ByteStream bytes(path, progress);
    if (path == "-" || !is_sqlite(bytes.head())) return read_stream(bytes);
  }
  return read_nsight_systems_sqlite(path);
}

}  // namespace octet::audit
