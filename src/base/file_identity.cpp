#include "base/file_identity.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/hash.h"

namespace octet {
namespace {

// Headers stand at the begin of a file, and GGUF's last tensors at its end.
constexpr size_t kEndBytes = 64 * 1024;
constexpr size_t kSamples = 16, kSampleBytes = 16 * 1024;

// Of all bytes where the file is no larger than what would be sampled.
uint64_t hash_of_samples(std::span<const std::byte> bytes) {
  constexpr size_t kInside = kSamples * kSampleBytes;
  if (bytes.size() <= 2 * kEndBytes + kInside) return hash_bytes(bytes, bytes.size());
  uint64_t hash = hash_bytes(bytes.first(kEndBytes), bytes.size());
  const auto inside = bytes.subspan(kEndBytes, bytes.size() - 2 * kEndBytes);
  for (size_t i = 0; i < kSamples; ++i) {
    const size_t at = (inside.size() - kSampleBytes) / (kSamples - 1) * i;
    hash = hash_bytes(inside.subspan(at, kSampleBytes), hash);
  }
  return hash_bytes(bytes.last(kEndBytes), hash);
}

}  // namespace

std::string identity_of(const MappedFile& file) {
  const MappedFile::Stamp& stamp = file.stamp();
  return fmt::format("{} bytes, inode {}, modified {}, changed {}, samples {:016x}",
                     file.bytes().size(), stamp.inode, stamp.modified_ns, stamp.changed_ns,
                     file.read(hash_of_samples));
}

}  // namespace octet
