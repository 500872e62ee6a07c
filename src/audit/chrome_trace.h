// Traces of PyTorch's profiler: JSON in the form of chrome://tracing, of any size.
#pragma once

#include "audit/trace.h"
#include "formats/byte_stream.h"

namespace octet::audit {

// An object with "traceEvents" or a bare array of events, their keys in any order; of two equal
// keys the last counts. Ops of the host, ranges, kernels and transfers are kept, everything else is
// passed over. Throws Error when the text is no JSON, is cut off, or has neither ops nor kernels.
Trace read_chrome_trace(ByteStream& bytes);

}  // namespace octet::audit
