// Traces made in memory, one call at a time.
#pragma once

#include <string>
#include <vector>

#include "audit/trace.h"

namespace octet::test {

struct MadeTrace {
  audit::Trace trace;

  MadeTrace() {
    trace.path = "made";
    trace.format = "made";
    trace.has_order = true;
  }

  uint32_t name(const std::string& text) {
    for (uint32_t i = 0; i < trace.names.size(); ++i) {
      if (trace.names[i] == text) return i;
    }
    trace.names.push_back(text);
    return static_cast<uint32_t>(trace.names.size() - 1);
  }

  // An op with its operands; later ones are within `parent`.
  uint32_t op(const std::string& text, const audit::Signature& operands = {},
              uint32_t parent = audit::kNone, bool is_range = false) {
    audit::Op op{.start_us = now,
                 .us = 10,
                 .self_us = 10,
                 .name = name(text),
                 .parent = parent,
                 .is_range = is_range};
    if (!operands.empty()) {
      op.signature = static_cast<uint32_t>(trace.signatures.size());
      trace.signatures.push_back(operands);
      trace.has_shapes = true;
    }
    trace.ops.push_back(op);
    now += 1;
    return static_cast<uint32_t>(trace.ops.size() - 1);
  }

  void kernel(const std::string& text, uint32_t op = audit::kNone, double us = 10,
              int64_t calls = 1) {
    trace.kernels.push_back({.start_us = now,
                             .us = us,
                             .calls = calls,
                             .name = name(text),
                             .op = op,
                             .threads = 1 << 20});
    now += us;
  }

  double now = 0;
};

}  // namespace octet::test
