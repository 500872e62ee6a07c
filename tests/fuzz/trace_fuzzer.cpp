// libFuzzer target: any bytes are either refused as a trace with an Error of one line, or give one
// whose numbers refer to what is there.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "audit/read_stream.h"
#include "base/error.h"
#include "formats/text.h"

namespace {

using namespace octet::audit;  // NOLINT: this file is about it

void demand(bool condition) {
  if (!condition) std::abort();
}

bool is_time(double us) { return std::isfinite(us) && us >= 0; }

void check_trace(const Trace& trace) {
  for (const std::string& name : trace.names) demand(octet::is_utf8(name));
  demand(octet::is_utf8(trace.device) && !trace.format.empty());
  for (size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    demand(op.name < trace.names.size());
    demand(op.signature == kNone || op.signature < trace.signatures.size());
    demand(op.parent == kNone || op.parent < i);
    demand(std::isfinite(op.start_us) && is_time(op.us) && is_time(op.self_us));
  }
  for (size_t i = 0; i < trace.kernels.size(); ++i) {
    const Kernel& kernel = trace.kernels[i];
    demand(kernel.name < trace.names.size());
    demand(kernel.op == kNone || kernel.op < trace.ops.size());
    demand(kernel.calls >= 0 && is_time(kernel.us) && std::isfinite(kernel.start_us));
    demand(!trace.has_order || i == 0 || trace.kernels[i - 1].start_us <= kernel.start_us);
  }
  for (const Signature& signature : trace.signatures) {
    for (const Operand& operand : signature) {
      for (const int64_t dim : operand.dims) demand(dim >= 0);
    }
  }
  for (const LogFinding& finding : trace.log) demand(octet::is_utf8(finding.line));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  octet::ByteStream bytes({reinterpret_cast<const char*>(data), size}, "fuzz");
  try {
    check_trace(read_stream(bytes));
  } catch (const octet::Error& error) {
    const std::string message = error.what();
    demand(message.starts_with("fuzz") && message.find('\n') == message.npos);
    demand(message.size() < 2000);
  }
  return 0;
}
