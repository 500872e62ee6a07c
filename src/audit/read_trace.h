// Files into traces.
#pragma once

#include <functional>
#include <string>

#include "audit/trace.h"

namespace octet::audit {

// By its content, not by its name: a PyTorch profiler trace (Chrome JSON, also gzip), Nsight
// Compute or Nsight Systems CSV, an Nsight Systems SQLite file, a report of Octet, a log of ComfyUI
// or vLLM. `path` "-" is standard input (anything but SQLite). Throws Error with one sentence for a
// file that is none of these, is damaged or cut off, or has nothing to tell. progress(done, total)
// in bytes of the file; may be empty.
Trace read_trace(const std::string& path,
                 const std::function<void(uint64_t, uint64_t)>& progress = {});

}  // namespace octet::audit
