// libFuzzer target: any bytes are either refused as a trace with an Error of one line, or give one
// whose numbers refer to what is there, and whose examination ends with shares of a whole.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "audit/examine.h"
#include "audit/read_trace.h"
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

bool is_share(double share) { return std::isfinite(share) && share >= 0 && share < 1.001; }

void check_report(const octet::AuditReport& report) {
  const std::string& headline = report.headline;
  demand(!headline.empty() && headline.find('\n') == headline.npos && octet::is_utf8(headline));
  demand(is_time(report.total_us) && is_time(report.wall_us));
  for (const octet::AuditShare& share : report.classes) demand(is_share(share.share));
  for (const octet::AuditKernel& kernel : report.kernels) demand(is_share(kernel.share));
  const octet::AuditSaving& saving = report.saving;
  demand(is_share(saving.linear_share) && is_time(saving.linear_us));
  demand(std::isfinite(saving.at_most) && std::isfinite(saving.expected));
  demand(report.linears >= 0 && report.native <= report.linears && report.fake <= report.linears);
}

void examine(const Trace& trace) {
  Examination examination;
  examination.add(trace);
  check_report(examination.finish([](int64_t, int64_t, int64_t) {
    return PathRatios{.bf16 = 1.7, .fp8 = 1.1, .source = "made up"};
  }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  octet::ByteStream bytes({reinterpret_cast<const char*>(data), size}, "fuzz");
  try {
    const Trace trace = read_stream(bytes);
    check_trace(trace);
    examine(trace);
  } catch (const octet::Error& error) {
    const std::string message = error.what();
    demand(message.starts_with("fuzz") && message.find('\n') == message.npos);
    demand(message.size() < 2000);
  }
  return 0;
}
