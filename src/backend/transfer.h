// Bytes on their way from the host to a backend's memory.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace octet {

// Writes bytes [first, first + count) of what is uploaded to `into`.
using Fill = std::function<void(std::byte* into, size_t first, size_t count)>;

// The most that one call of a Fill is asked for, unless a granule is larger; a range of that size
// is still in a core's cache when a second pass looks at it.
inline constexpr size_t kUploadPiece = size_t{1} << 20;

// Bytes that each call is asked for, except the last one.
constexpr size_t upload_piece(size_t granule) {
  return granule >= kUploadPiece ? granule : kUploadPiece / granule * granule;
}

// A copy that may be under way, see Backend::prefetch(); without a state, one that is done.
struct Transfer {
  std::shared_ptr<void> state;
};

}  // namespace octet
