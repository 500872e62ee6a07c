#include "weights/weight_upload.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/host_backend.h"
#include "base/error.h"
#include "base/per_thread.h"
#include "formats/text.h"

namespace octet::weights {
namespace {

// On its way to a device with memory of its own at a time.
constexpr int64_t kLandingBytes = int64_t{64} << 20;
static_assert(kUploadPiece % ChunkHashes::kChunk == 0);  // a piece is hashed by whole chunks

int64_t bytes_of_row(DType dtype, int64_t k) { return k * (bits_of(dtype) / 8); }

}  // namespace

WeightUpload::WeightUpload(const StoredWeight& weight, Backend& backend, bool fingerprint)
    : weight_(weight), backend_(backend), hash_(fingerprint) {
  // INT8 codes of a weight that is meant for floating point are rare, and the host's work.
  const bool is_usual = weight.raw() && (weight.is_int8() || weight.raw()->dtype != DType::i8);
  if (!is_usual) return;
  raw_ = &weight.tensors()[weight.raw()->tensor];
  if (hash_) hashes_ = ChunkHashes(raw_->bytes.size());
}

// Such that the pieces of every part are whole chunks of the tensor, if that can be.
int64_t WeightUpload::rows_at_once(DType dtype) const {
  const int64_t row_bytes = std::max<int64_t>(bytes_of_row(dtype, weight_.k()), 1);
  const int64_t rows = std::max<int64_t>(weight_.rows(), 1);
  const int64_t landing =
      keeps_data_on_host(backend_) ? static_cast<int64_t>(kMostLandingOnHost) : kLandingBytes;
  const int64_t most = std::clamp<int64_t>(landing / row_bytes, 1, rows);
  const auto piece = static_cast<int64_t>(kUploadPiece);
  const int64_t aligned = piece / std::gcd(piece, row_bytes);
  return most == rows || most < aligned ? most : most / aligned * aligned;
}

Buffer WeightUpload::stored(int64_t first, int64_t count, DType to) {
  const int64_t row_bytes = bytes_of_row(stored_dtype(), weight_.k());
  if (raw_ != nullptr) {
    const auto begin = static_cast<size_t>(first * row_bytes);
    return backend_.upload(
        static_cast<size_t>(count * row_bytes),
        [&](std::byte* into, size_t at, size_t size) { fill_raw(into, begin + at, size, to); });
  }
  return upload_rows(count, row_bytes,
                     [&](int64_t row, std::byte* into) { weight_.read_stored(first + row, into); });
}

Buffer WeightUpload::converted(int64_t first, int64_t count, DType to) {
  return upload_rows(count, bytes_of_row(to, weight_.k()),
                     [&](int64_t row, std::byte* into) { weight_.read(first + row, to, into); });
}

void WeightUpload::look_through(DType to) {
  scales(0, weight_.rows());  // throws where one is no number
  const auto run = [&](int64_t tasks, size_t scratch, const auto& task) {
    backend_.pool().run(tasks, [&](int64_t i, int) {
      static PerThread<std::vector<std::byte>> bytes_by_thread;
      std::vector<std::byte>& bytes = bytes_by_thread.get();
      bytes.resize(scratch);
      task(i, bytes.data());
    });
  };
  if (raw_ == nullptr) {
    return run(weight_.rows(), static_cast<size_t>(bytes_of_row(to, weight_.k())),
               [&](int64_t row, std::byte* into) { weight_.read(row, to, into); });
  }
  constexpr size_t kChunk = ChunkHashes::kChunk;
  const size_t all = raw_->bytes.size();
  run(static_cast<int64_t>((all + kChunk - 1) / kChunk), kChunk, [&](int64_t i, std::byte* into) {
    const size_t begin = static_cast<size_t>(i) * kChunk;
    fill_raw(into, begin, std::min(kChunk, all - begin), to);
  });
}

template <class Read>
Buffer WeightUpload::upload_rows(int64_t count, int64_t row_bytes, const Read& read) {
  const auto granule = static_cast<size_t>(row_bytes);
  return backend_.upload(
      static_cast<size_t>(count) * granule,
      [&](std::byte* into, size_t at, size_t size) {
        for (size_t done = 0; done < size; done += granule) {
          read(static_cast<int64_t>((at + done) / granule), into + done);
        }
      },
      granule);
}

void WeightUpload::fill_raw(std::byte* into, size_t first, size_t count, DType to) {
  raw_->copy(first, count, into);
  const std::span<const std::byte> bytes(into, count);
  if (hash_) hashes_.add(first, bytes);
  const DType dtype = weight_.raw()->dtype;
  if (dtype != DType::i8 && !all_finite(bytes, dtype, to)) {
    fail_not_finite(first, count, to);
  }
}

// Reading these rows says which one it is.
void WeightUpload::fail_not_finite(size_t first, size_t count, DType to) const {
  const auto row_bytes = static_cast<size_t>(bytes_of_row(weight_.raw()->dtype, weight_.k()));
  std::vector<std::byte> row(static_cast<size_t>(weight_.k()) * sizeof(float));
  for (size_t at = first / row_bytes; at * row_bytes < first + count; ++at) {
    weight_.read_stored(static_cast<int64_t>(at), row.data());
    weight_.read(static_cast<int64_t>(at), to, row.data());
  }
  weight_.check_intact();
  fail("{}: tensor {} changed while it was being read; wait until nothing writes to it",
       weight_.path(), in_quotes(raw_->name));
}

std::vector<float> WeightUpload::scales(int64_t first, int64_t count) const {
  std::vector<float> made(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) made[static_cast<size_t>(i)] = weight_.scale(first + i);
  return made;
}

bool WeightUpload::backend_can_convert() const {
  if (raw_ == nullptr || weight_.transform().kind != Transform::none) return false;
  const DType dtype = weight_.raw()->dtype;
  constexpr float kMostInBf16 = 0x1.fep127f;
  const float most = dtype == DType::i8 ? 128.0f : 448.0f;
  const bool is_code = dtype == DType::i8 || dtype == DType::f8_e4m3;
  for (int64_t row = 0; row < weight_.rows(); ++row) {
    const float scale = weight_.scale(row);
    // What would overflow is an error, which the host tells.
    if (is_code ? std::abs(scale) > kMostInBf16 / most : scale != 1) return false;
  }
  return true;
}

// Chunks of which a part went up with other rows: read once more, since the rest of the tensor was
// never mapped.
void WeightUpload::hash_missing() {
  const std::vector<size_t> chunks = hashes_.missing();
  backend_.pool().run(static_cast<int64_t>(chunks.size()), [&](int64_t i, int) {
    static PerThread<std::vector<std::byte>> bytes_by_thread;
    std::vector<std::byte>& bytes = bytes_by_thread.get();
    const size_t begin = chunks[static_cast<size_t>(i)] * ChunkHashes::kChunk;
    bytes.resize(std::min(ChunkHashes::kChunk, raw_->bytes.size() - begin));
    raw_->copy(begin, bytes.size(), bytes.data());
    hashes_.add(begin, bytes);
  });
}

Fingerprint WeightUpload::fingerprint() {
  if (raw_ != nullptr) hash_missing();
  Fingerprint made;
  for (const UsedTensor& tensor : weight_.tensors()) {
    if (&tensor == raw_) {
      made.add(tensor.name, tensor.bytes, std::move(hashes_), backend_.pool());
    } else {
      made.add(tensor.name, tensor.bytes, backend_.pool());
    }
  }
  return made;
}

}  // namespace octet::weights
