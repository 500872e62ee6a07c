#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "audit/read_trace.h"
#include "audit/trace_tables.h"
#include "base/checked.h"
#include "base/error.h"
#include "formats/sqlite_file.h"

namespace octet::audit {
namespace {

constexpr std::string_view kKernelTable = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr std::string_view kRuntimeTable = "CUPTI_ACTIVITY_KIND_RUNTIME";
constexpr size_t kMaxStrings = 1'000'000;

// NVTX ranges of PyTorch have the op's arguments behind its name: "aten::mm, op_id = 17, sizes =
// ..."
std::string_view without_arguments(std::string_view text) {
  for (const std::string_view argument : {", seq = ", ", op_id = ", ", sizes = "}) {
    text = text.substr(0, text.find(argument));
  }
  return text;
}

class NsysSqliteReader {
 public:
  explicit NsysSqliteReader(const std::string& path) : path_(path), file_(path), tables_(path) {}

  Trace read() {
    check(file_.has_table(kKernelTable) && file_.has_table("StringIds"),
          "{}: is an SQLite file without kernels, expected one that Nsight Systems exported",
          path_);
    name_column_ = file_.has_column(kKernelTable, "demangledName") ? "demangledName" : "shortName";
    has_ranges_ = file_.has_table("NVTX_EVENTS") && file_.has_column("NVTX_EVENTS", "globalTid");
    has_text_ids_ = has_ranges_ && file_.has_column("NVTX_EVENTS", "textId");
    read_names();
    read_kernels();
    read_transfers("CUPTI_ACTIVITY_KIND_MEMCPY", "copyKind");
    read_transfers("CUPTI_ACTIVITY_KIND_MEMSET", "0");
    if (has_ranges_) read_ranges();
    if (tables_.has_ops()) read_launches();
    check(tables_.has_kernels(), "{}: is a file of Nsight Systems in which no kernel ran", path_);
    return tables_.take("Nsight Systems SQLite", device_name(), /*has_order=*/true);
  }

 private:
  // The strings that are wanted, by their ids: a file has those of all calls and stacks as well.
  void read_names() {
    std::unordered_set<int64_t> wanted;
    const auto want = [&](const SqliteFile::Row& row) {
      wanted.insert(row.integer(0));
      check(wanted.size() <= kMaxStrings, "{}: has kernels of more than {} names", path_,
            kMaxStrings);
    };
    file_.select(fmt::format("SELECT {} FROM {}", name_column_, kKernelTable), want);
    if (has_text_ids_) {
      file_.select("SELECT textId FROM NVTX_EVENTS WHERE textId IS NOT NULL AND end IS NOT NULL",
                   want);
    }
    file_.select("SELECT id, value FROM StringIds", [&](const SqliteFile::Row& row) {
      const int64_t id = row.integer(0);
      if (!wanted.contains(id)) return;
      const std::string_view text = row.text(1), op = without_arguments(text);
      names_[id] = {tables_.name(op), op.size() < text.size()};
    });
  }

  struct Text {
    uint32_t name = 0;
    bool is_op = false;  // it had arguments
  };

  Text text_of(int64_t id) {
    const auto found = names_.find(id);
    return found != names_.end() ? found->second : Text{tables_.name("?"), false};
  }

  // Correlations count from 1 in each process.
  uint32_t correlation_of(int64_t correlation, int64_t process) {
    constexpr int64_t bits = 26, most = int64_t{1} << bits;
    const uint32_t number =
        processes_.try_emplace(process, static_cast<uint32_t>(processes_.size())).first->second;
    if (correlation <= 0 || correlation >= most || number >= 64) return 0;
    return static_cast<uint32_t>(correlation) | number << bits;
  }

  static bool set_times(const SqliteFile::Row& row, double& start_us, double& us) {
    const int64_t start = row.integer(0), end = row.integer(1);
    start_us = static_cast<double>(start) * 1e-3;
    us = std::max(0.0, (static_cast<double>(end) - static_cast<double>(start)) * 1e-3);
    return !row.is_null(0) && !row.is_null(1);
  }

  void read_kernels() {
    const bool has_process = file_.has_column(kKernelTable, "globalPid");
    const std::string query = fmt::format(
        "SELECT start, end, {}, deviceId, correlationId, {}, gridX, gridY, gridZ, blockX, blockY, "
        "blockZ FROM {}",
        name_column_, has_process ? "globalPid" : "0", kKernelTable);
    file_.select(query, [&](const SqliteFile::Row& row) {
      Kernel kernel;
      if (!set_times(row, kernel.start_us, kernel.us)) return;
      kernel.name = text_of(row.integer(2)).name;
      if (device_ < 0) device_ = row.integer(3);
      uint64_t threads = 1;
      for (int i = 6; i < 12; ++i) {
        const auto size = static_cast<uint64_t>(std::max<int64_t>(row.integer(i), 0));
        threads = checked_mul(threads, size).value_or(0);
      }
      kernel.threads = threads;
      tables_.add_kernel(kernel, 0, correlation_of(row.integer(4), row.integer(5)));
    });
  }

  void read_transfers(std::string_view table, std::string_view kind) {
    if (!file_.has_table(table)) return;
    file_.select(fmt::format("SELECT start, end, {} FROM {}", kind, table),
                 [&](const SqliteFile::Row& row) {
                   Kernel kernel;
                   if (!set_times(row, kernel.start_us, kernel.us)) return;
                   kernel.name = tables_.name(transfer_name(row.integer(2)));
                   kernel.is_transfer = true;
                   tables_.add_kernel(kernel, 0, 0);
                 });
  }

  static std::string_view transfer_name(int64_t kind) {
    switch (kind) {
      case 0: return "[CUDA memset]";
      case 1: return "[CUDA memcpy Host-to-Device]";
      case 2: return "[CUDA memcpy Device-to-Host]";
      case 8: return "[CUDA memcpy Device-to-Device]";
      case 10: return "[CUDA memcpy Peer-to-Peer]";
      default: return "[CUDA memcpy]";
    }
  }

  void read_ranges() {
    const std::string query =
        fmt::format("SELECT start, end, globalTid, text, {} FROM NVTX_EVENTS WHERE end IS NOT NULL",
                    has_text_ids_ ? "textId" : "NULL");
    file_.select(query, [&](const SqliteFile::Row& row) {
      double us = 0;
      Op op;
      if (!set_times(row, op.start_us, us)) return;
      op.us = static_cast<float>(us);
      if (row.is_null(3) && row.is_null(4)) return;
      op.thread = tables_.thread(static_cast<uint64_t>(row.integer(2)));
      Text text;
      if (row.is_null(3)) {
        text = text_of(row.integer(4));
      } else {
        const std::string_view whole = row.text(3), name = without_arguments(whole);
        text = {tables_.name(name), name.size() < whole.size()};
      }
      op.name = text.name;
      op.is_range = !text.is_op;
      tables_.add_op(op, 0);
    });
  }

  void read_launches() {
    if (!file_.has_table(kRuntimeTable)) return;
    file_.select(fmt::format("SELECT start, end, globalTid, correlationId FROM {}", kRuntimeTable),
                 [&](const SqliteFile::Row& row) {
                   double start_us = 0, us = 0;
                   if (!set_times(row, start_us, us)) return;
                   // The lower 24 bits are the thread's, the rest is the process.
                   const int64_t thread = row.integer(2), process = thread & ~int64_t{0xFFFFFF};
                   const uint32_t correlation = correlation_of(row.integer(3), process);
                   if (correlation == 0) return;  // before its thread takes memory
                   tables_.add_launch(start_us, tables_.thread(static_cast<uint64_t>(thread)), 0,
                                      correlation);
                 });
  }

  std::string device_name() {
    if (!file_.has_table("TARGET_INFO_GPU")) return {};
    std::string name;
    file_.select("SELECT id, name FROM TARGET_INFO_GPU", [&](const SqliteFile::Row& row) {
      if (name.empty() || row.integer(0) == device_) name = row.text(1).substr(0, 200);
    });
    return name;
  }

  std::string path_;
  SqliteFile file_;
  TraceTables tables_;
  std::string name_column_;
  bool has_ranges_ = false, has_text_ids_ = false;
  std::unordered_map<int64_t, Text> names_;
  std::unordered_map<int64_t, uint32_t> processes_;
  int64_t device_ = -1;
};

}  // namespace

Trace read_nsight_systems_sqlite(const std::string& path) { return NsysSqliteReader(path).read(); }

}  // namespace octet::audit
