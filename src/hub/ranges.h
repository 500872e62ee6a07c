// The header Content-Range of HTTP.
#pragma once

#include <cstdint>
#include <string>

namespace octet::hub {

// "bytes 100-199/5000": where it ends, 200. Throws Error unless it begins at `from`, ends at or
// before `to` (one beyond the last byte) and is of a file of `size` bytes; `what` begins the
// sentence.
uint64_t end_of_content_range(const std::string& header, uint64_t from, uint64_t to, uint64_t size,
                              const std::string& what);

}  // namespace octet::hub
