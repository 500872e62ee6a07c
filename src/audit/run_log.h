// Logs of programs that say which kernels they chose.
#pragma once

#include "audit/trace.h"
#include "formats/byte_stream.h"

namespace octet::audit {

// Lines that log_lines.h knows; equal meanings are counted. Throws Error when there is none, which
// is also what becomes of a file of any other kind.
Trace read_run_log(ByteStream& bytes);

}  // namespace octet::audit
