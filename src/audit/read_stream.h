// Which reader a file is for.
#pragma once

#include "audit/trace.h"
#include "formats/byte_stream.h"

namespace octet::audit {

// read_trace() of bytes: every format but SQLite, which is no stream.
Trace read_stream(ByteStream& bytes);

}  // namespace octet::audit
