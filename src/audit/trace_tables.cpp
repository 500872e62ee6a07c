#include "audit/trace_tables.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "formats/text.h"

namespace octet::audit {
namespace {

// Walking from an op up to its callers must end, even in a maliciously made file.
constexpr size_t kMaxNesting = 500;
// Roughly what a string and its place in a hash table take besides its text.
constexpr size_t kEntryBytes = 120;

double end_of(const Op& op) { return op.start_us + static_cast<double>(op.us); }

// Old profilers cut times to microseconds, and a float of a long range is not exact.
bool ends_inside(const Op& op, const Op& outer) {
  return end_of(op) <= end_of(outer) + 1 + 2e-7 * static_cast<double>(outer.us);
}

// Callers of the ops, which are sorted, and the time that is their own.
void nest_ops(std::vector<Op>& ops) {
  struct Running {
    uint32_t op = kNone;
    uint32_t nearest_op = kNone;  // itself, unless it is a range
  };
  std::vector<Running> running;
  for (uint32_t i = 0; i < ops.size(); ++i) {
    Op& op = ops[i];
    op.self_us = op.us;
    op.parent = kNone;
    const auto has_ended = [&](const Op& outer) {
      return outer.thread != op.thread || end_of(outer) <= op.start_us || !ends_inside(op, outer);
    };
    while (!running.empty() && has_ended(ops[running.back().op])) running.pop_back();
    uint32_t nearest_op = kNone;
    if (!running.empty()) {
      op.parent = running.back().op;
      nearest_op = running.back().nearest_op;
    }
    // A range takes no time from the op around it: the ops inside of the range do.
    if (!op.is_range && nearest_op != kNone) ops[nearest_op].self_us -= op.us;
    if (op.parent != kNone && ops[op.parent].is_range) ops[op.parent].self_us -= op.us;
    if (running.size() < kMaxNesting) running.push_back({i, op.is_range ? nearest_op : i});
  }
  for (Op& op : ops) op.self_us = std::max(op.self_us, 0.0f);
}

// "By thread, then by start, callers before what they call"; `parent` holds the id, and callers
// have the lower one.
bool comes_before(const Op& a, const Op& b) {
  if (a.thread != b.thread) return a.thread < b.thread;
  if (a.start_us != b.start_us) return a.start_us < b.start_us;
  if (a.us != b.us) return a.us > b.us;
  if (a.is_range != b.is_range) return a.is_range;
  return a.parent < b.parent;
}

struct OpOfId {
  uint32_t id = 0, op = 0;
};

// Ops by id; of one id, ranges before ops, then by start.
class OpsById {
 public:
  // While `parent` still holds the ids.
  explicit OpsById(const std::vector<Op>& ops) : ops_(ops) {
    const auto count =
        std::count_if(ops.begin(), ops.end(), [](const Op& op) { return op.parent; });
    entries_.reserve(static_cast<size_t>(count));
    for (uint32_t i = 0; i < ops.size(); ++i) {
      if (ops[i].parent != 0) entries_.push_back({ops[i].parent, i});
    }
    const auto before = [&](const OpOfId& a, const OpOfId& b) { return key(a) < key(b); };
    if (!std::is_sorted(entries_.begin(), entries_.end(), before)) {
      std::sort(entries_.begin(), entries_.end(), before);
    }
  }

  // The innermost: the last that began before `us`.
  uint32_t find(uint32_t id, double us) const {
    if (id == 0) return kNone;
    const auto wanted = std::tuple(id, true, us);
    auto found = std::upper_bound(entries_.begin(), entries_.end(), wanted,
                                  [&](const auto& a, const OpOfId& b) { return a < key(b); });
    if (found != entries_.begin() && std::prev(found)->id == id) return std::prev(found)->op;
    return found != entries_.end() && found->id == id ? found->op : kNone;
  }

 private:
  std::tuple<uint32_t, bool, double> key(const OpOfId& entry) const {
    const Op& op = ops_[entry.op];
    return {entry.id, !op.is_range, op.start_us};
  }

  const std::vector<Op>& ops_;
  std::vector<OpOfId> entries_;
};

// The innermost op that was running on a thread.
uint32_t op_running_at(const std::vector<Op>& ops, uint32_t thread, double us) {
  const auto behind = std::upper_bound(
      ops.begin(), ops.end(), std::tuple(thread, us),
      [](const auto& wanted, const Op& op) { return wanted < std::tuple(op.thread, op.start_us); });
  if (behind == ops.begin()) return kNone;
  auto op = static_cast<uint32_t>(std::prev(behind) - ops.begin());
  if (ops[op].thread != thread) return kNone;
  while (op != kNone && end_of(ops[op]) < us) op = ops[op].parent;
  return op;
}

}  // namespace

void TraceTables::count_event() {
  check(++events_ <= kMaxEvents,
        "{}: has more than {} ops, kernels and launches; record fewer steps", path_, kMaxEvents);
}

void TraceTables::count_bytes(size_t bytes) {
  table_bytes_ += bytes + kEntryBytes;
  check(table_bytes_ <= kMaxTableBytes, "{}: has more than {} MB of different names and shapes",
        path_, kMaxTableBytes >> 20);
}

uint32_t TraceTables::name(std::string_view name) {
  name = first_bytes(name, kMaxName);
  if (const auto found = name_numbers_.find(name); found != name_numbers_.end()) {
    return found->second;
  }
  // Tables may have any bytes; a name that was mended is known already, or becomes so.
  if (!is_sound_utf8(name)) return this->name(with_replacements(name));
  count_bytes(name.size());
  const auto number = static_cast<uint32_t>(names_.size());
  name_numbers_.emplace(names_.emplace_back(name), number);
  return number;
}

uint32_t TraceTables::signature(const Signature& signature) {
  std::string key;
  for (const Operand& operand : signature) {
    key += static_cast<char>(operand.type);
    const size_t rank = operand.dims.size();
    key.append(reinterpret_cast<const char*>(&rank), sizeof rank);
    if (rank > 0) key.append(reinterpret_cast<const char*>(operand.dims.data()), rank * 8);
    has_shapes_ = has_shapes_ || rank > 0;
  }
  const auto number = static_cast<uint32_t>(signatures_.size());
  const auto [found, is_new] = signature_numbers_.try_emplace(std::move(key), number);
  if (is_new) {
    count_bytes(2 * found->first.size() + signature.size() * sizeof(Operand));
    signatures_.push_back(signature);
  }
  return found->second;
}

uint32_t TraceTables::thread(uint64_t key) {
  return threads_.try_emplace(key, static_cast<uint32_t>(threads_.size())).first->second;
}

void TraceTables::add_op(Op op, uint32_t id) {
  count_event();
  op.parent = id;
  ops_.push_back(op);
}

void TraceTables::add_kernel(Kernel kernel, uint32_t id, uint32_t correlation) {
  count_event();
  kernel.calls = std::min(kernel.calls, kMaxCalls);
  kernel.op = id;
  kernels_.push_back(kernel);
  correlations_.push_back(correlation);
}

void TraceTables::add_launch(double start_us, uint32_t thread, uint32_t id, uint32_t correlation) {
  if (correlation == 0) return;
  count_event();
  launches_.push_back({start_us, thread, id, correlation});
}

Trace TraceTables::take(const std::string& format, const std::string& device, bool has_order) {
  Trace trace;
  trace.path = path_;
  trace.format = format;
  trace.device = is_sound_utf8(device) ? device : with_replacements(device);
  trace.has_order = has_order;
  name_numbers_.clear();
  trace.names.assign(std::make_move_iterator(names_.begin()),
                     std::make_move_iterator(names_.end()));
  names_.clear();
  signature_numbers_.clear();
  trace.signatures = std::move(signatures_);
  trace.has_shapes = has_shapes_;

  std::vector<Op>& ops = trace.ops;
  ops = ops_.take();
  if (!std::is_sorted(ops.begin(), ops.end(), comes_before)) {
    std::sort(ops.begin(), ops.end(), comes_before);
  }
  trace.kernels = kernels_.take();
  const std::vector<uint32_t> correlations = correlations_.take();
  if (trace.kernels.empty()) {
    nest_ops(ops);
    return trace;
  }
  const OpsById by_id(ops);
  nest_ops(ops);
  std::vector<Launch> launches = launches_.take();
  std::sort(launches.begin(), launches.end(),
            [](const Launch& a, const Launch& b) { return a.correlation < b.correlation; });
  for (size_t i = 0; i < trace.kernels.size(); ++i) {
    Kernel& kernel = trace.kernels[i];
    kernel.op = by_id.find(kernel.op, kernel.start_us);
    if (kernel.op != kNone || correlations[i] == 0) continue;
    const auto launch = std::lower_bound(
        launches.begin(), launches.end(), correlations[i],
        [](const Launch& a, uint32_t correlation) { return a.correlation < correlation; });
    if (launch == launches.end() || launch->correlation != correlations[i]) continue;
    kernel.op = by_id.find(launch->id, launch->start_us);
    if (kernel.op == kNone) kernel.op = op_running_at(ops, launch->thread, launch->start_us);
  }
  if (!has_order) return trace;
  const auto starts_before = [](const Kernel& a, const Kernel& b) {
    return a.start_us < b.start_us;
  };
  if (!std::is_sorted(trace.kernels.begin(), trace.kernels.end(), starts_before)) {
    std::sort(trace.kernels.begin(), trace.kernels.end(), starts_before);
  }
  return trace;
}

}  // namespace octet::audit
