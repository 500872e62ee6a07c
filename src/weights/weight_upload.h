// The rows of one stored weight on their way into a backend's memory: each byte of the file is
// read, checked and hashed by one task, while it is in a core's cache.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "base/thread_pool.h"
#include "weights/fingerprint.h"
#include "weights/stored_weight.h"

namespace octet::weights {

// On its way at a time, and there beside what is made of it, where memory is the host's: more than
// some megabytes are new to the process each time they are asked for, which costs more than the
// copy.
inline constexpr uint64_t kMostLandingOnHost = uint64_t{12} << 20;

class WeightUpload {
 public:
  // `fingerprint`: whether it will be asked for. The weight must outlive this object.
  WeightUpload(const StoredWeight& weight, Backend& backend, bool fingerprint);

  // As the file has them, where it has them so: else of the weight's own type, read by the host.
  // Throws Error where a value is a NaN or an infinity, or would be one as `to`.
  Buffer stored(int64_t first, int64_t count, DType to);
  DType stored_dtype() const { return raw_ != nullptr ? weight_.raw()->dtype : weight_.dtype(); }
  // Converted by the host: the weight itself, transform undone.
  Buffer converted(int64_t first, int64_t count, DType to);
  // Reads all rows, as converted() or stored() would, and uploads none.
  void look_through(DType to);
  // F32 [count]: what stored rows are multiplied by.
  std::vector<float> scales(int64_t first, int64_t count) const;

  // Rows that are on their way at a time.
  int64_t rows_at_once(DType dtype) const;

  // Whether the backend can make exactly what converted() would, from what stored() gives.
  bool backend_can_convert() const;

  // Of all its tensors.
  Fingerprint fingerprint();

 private:
  // Rows that read(row, into) writes, by several threads at once.
  template <class Read>
  Buffer upload_rows(int64_t count, int64_t row_bytes, const Read& read);
  void fill_raw(std::byte* into, size_t first, size_t count, DType to);
  void hash_missing();
  [[noreturn]] void fail_not_finite(size_t first, size_t count, DType to) const;

  const StoredWeight& weight_;
  Backend& backend_;
  const UsedTensor* raw_ = nullptr;
  bool hash_;
  ChunkHashes hashes_;  // of raw_
};

}  // namespace octet::weights
