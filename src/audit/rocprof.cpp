#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "audit/csv_table.h"
#include "audit/read_trace.h"
#include "audit/trace_tables.h"
#include "base/checked.h"
#include "base/error.h"
#include "formats/csv.h"
#include "formats/json_stream.h"

namespace octet::audit {
namespace {

class RocprofCsvReader {
 public:
  explicit RocprofCsvReader(ByteStream& bytes) : bytes_(bytes), tables_(bytes.path()) {}

  Trace read() {
    LineReader lines(bytes_);
    for (std::string_view line; lines.next(line);) {
      if (line.find(',') == line.npos) continue;
      std::vector<std::string> cells = split_csv(line);
      if (is_rocprof_header(cells)) {
        check(header_.size() == 0,
              "{}: has two tables of rocprof, expected one; give each as a file", bytes_.path());
        header_ = CsvHeader(std::move(cells));
        is_trace_ = header_.has("Start_Timestamp");
      } else if (header_.size() > 0 && cells.size() >= header_.size()) {
        is_trace_ ? add_launch(cells) : add_sum(cells);
      }
    }
    check(tables_.has_kernels(), "{}: is a table of rocprof without kernels", bytes_.path());
    return tables_.take("rocprof CSV", "", is_trace_);
  }

 private:
  std::string_view cell(const std::vector<std::string>& row, std::string_view name) const {
    return cell_of(row, header_.column(name));
  }

  void add_sum(const std::vector<std::string>& row) {
    Kernel kernel;
    kernel.us = csv_amount(cell(row, "TotalDurationNs")) * 1e-3;
    kernel.calls = static_cast<int64_t>(csv_amount(cell(row, "Calls")));
    kernel.name = tables_.name(cell(row, "Name"));
    tables_.add_kernel(kernel, 0, 0);
  }

  void add_launch(const std::vector<std::string>& row) {
    Kernel kernel;
    kernel.start_us = csv_amount(cell(row, "Start_Timestamp")) * 1e-3;
    kernel.us = std::max(0.0, csv_amount(cell(row, "End_Timestamp")) * 1e-3 - kernel.start_us);
    kernel.name = tables_.name(cell(row, "Kernel_Name"));
    // A grid of AMD's is one of threads.
    uint64_t threads = 1;
    for (const char* size : {"Grid_Size_X", "Grid_Size_Y", "Grid_Size_Z"}) {
      const auto extent = static_cast<uint64_t>(csv_amount(cell(row, size)));
      threads = checked_mul(threads, extent).value_or(0);
    }
    kernel.threads = threads;
    tables_.add_kernel(kernel, 0, 0);
  }

  ByteStream& bytes_;
  TraceTables tables_;
  CsvHeader header_;
  bool is_trace_ = false;
};

// {"rocprofiler-sdk-tool": [{"agents": [...], "kernel_symbols": [...], "buffer_records":
// {"kernel_dispatch": [...], ...}, ...}]}, in any order.
class RocprofJsonReader {
 public:
  explicit RocprofJsonReader(ByteStream& bytes)
      : path_(bytes.path()), json_(bytes), tables_(path_) {}

  Trace read() {
    for (json_.begin_object(); const auto key = json_.next_key();) {
      *key == "rocprofiler-sdk-tool" ? each_object([&] { read_process(); }) : json_.skip();
    }
    json_.expect_end();
    check(tables_.has_kernels(),
          "{}: is JSON of rocprofv3 without kernels; record with "
          "rocprofv3 --kernel-trace",
          path_);
    return tables_.take("rocprofv3 JSON", device_, /*has_order=*/true);
  }

 private:
  struct Dispatch {
    Kernel kernel;
    int64_t id = 0;
  };

  template <class Read>
  void each_object(const Read& read) {
    if (json_.kind() != JsonStream::Kind::array) return json_.skip();
    for (json_.begin_array(); json_.next_element();) {
      json_.kind() == JsonStream::Kind::object ? read() : json_.skip();
    }
  }

  // Calls read(key) for each field of an object, which takes its value; all else is passed over.
  template <class Read>
  void each_field(const Read& read) {
    if (json_.kind() != JsonStream::Kind::object) return json_.skip();
    for (json_.begin_object(); const auto key = json_.next_key();) read(std::string(*key));
  }

  void read_process() {
    names_.clear();
    dispatches_.clear();
    each_field([&](const std::string& key) {
      if (key == "kernel_symbols") {
        each_object([&] { read_symbol(); });
      } else if (key == "agents") {
        each_object([&] { read_agent(); });
      } else if (key == "buffer_records") {
        each_field([&](const std::string& kind) {
          kind == "kernel_dispatch" ? each_object([&] { read_dispatch(); }) : json_.skip();
        });
      } else {
        json_.skip();
      }
    });
    for (Dispatch& each : dispatches_) {
      const auto found = names_.find(each.id);
      each.kernel.name = found == names_.end() ? tables_.name("?") : found->second;
      tables_.add_kernel(each.kernel, 0, 0);
    }
  }

  void read_symbol() {
    std::optional<int64_t> id;
    std::string name, mangled;
    each_field([&](const std::string& key) {
      if (key == "kernel_id") {
        id = json_.integer();
      } else if (key == "formatted_kernel_name" || key == "demangled_kernel_name") {
        const std::string_view text = json_.text();
        if (name.empty()) name = text;
      } else if (key == "kernel_name") {
        mangled = json_.text();
      } else {
        json_.skip();
      }
    });
    if (id && names_.size() < TraceTables::kMaxEvents) {
      names_[*id] = tables_.name(name.empty() ? mangled : name);
    }
  }

  void read_agent() {
    std::string name;
    int64_t type = 0;
    each_field([&](const std::string& key) {
      if (key == "product_name") {
        name = json_.text().substr(0, 200);
      } else if (key == "type") {
        type = json_.integer().value_or(0);
      } else {
        json_.skip();
      }
    });
    constexpr int64_t kGpu = 2;
    if (type == kGpu && device_.empty()) device_ = name;
  }

  void read_dispatch() {
    Dispatch dispatch;
    double start = 0, end = 0;
    uint64_t threads = 0;
    each_field([&](const std::string& key) {
      if (key == "start_timestamp") {
        start = json_.number();
      } else if (key == "end_timestamp") {
        end = json_.number();
      } else if (key == "dispatch_info") {
        each_field([&](const std::string& field) {
          if (field == "kernel_id") {
            dispatch.id = json_.integer().value_or(0);
          } else if (field == "grid_size") {
            threads = read_extent();
          } else {
            json_.skip();
          }
        });
      } else {
        json_.skip();
      }
    });
    if (!(start >= 0 && end >= start && end < 1e21)) return;
    dispatch.kernel.start_us = start * 1e-3;
    dispatch.kernel.us = (end - start) * 1e-3;
    dispatch.kernel.threads = threads;
    check(dispatches_.size() < TraceTables::kMaxEvents, "{}: has more than {} kernels", path_,
          TraceTables::kMaxEvents);
    dispatches_.push_back(dispatch);
  }

  // {"x": 256, "y": 1, "z": 1}
  uint64_t read_extent() {
    uint64_t product = 1;
    each_field([&](const std::string&) {
      const int64_t size = json_.integer().value_or(0);
      product = size < 0 ? 0 : checked_mul(product, static_cast<uint64_t>(size)).value_or(0);
    });
    return product;
  }

  std::string path_;
  JsonStream json_;
  TraceTables tables_;
  std::string device_;
  std::unordered_map<int64_t, uint32_t> names_;  // of a process
  std::vector<Dispatch> dispatches_;
};

}  // namespace

bool is_rocprof_header(const std::vector<std::string>& cells) {
  const CsvHeader header(cells);
  const bool is_trace = header.has("Kernel_Name") && header.has("Start_Timestamp");
  return is_trace || (header.has("Name") && header.has("Calls") && header.has("TotalDurationNs"));
}

Trace read_rocprof_csv(ByteStream& bytes) { return RocprofCsvReader(bytes).read(); }

bool is_rocprof_json(std::string_view head) {
  return head.substr(0, 4096).find("\"rocprofiler-sdk-tool\"") != head.npos;
}

Trace read_rocprof_json(ByteStream& bytes) { return RocprofJsonReader(bytes).read(); }

}  // namespace octet::audit
