// What Octet's own commands write with --json.
#pragma once

#include <string_view>

#include "audit/trace.h"
#include "formats/byte_stream.h"

namespace octet::audit {

// Whether a JSON text begins (or, where it is short, goes on) with a schema of Octet's.
bool is_octet_report(std::string_view head);

// Of `compare` the second side, and of `certify` the checkpoint: what was judged. Throws Error for
// a report that names no kernels.
Trace read_octet_report(ByteStream& bytes);

}  // namespace octet::audit
