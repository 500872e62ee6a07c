#include "formats/tensor_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/mapped_file.h"
#include "base/sha256.h"

namespace octet {
namespace {

// Some bytes at a time, whose memory is given back.
template <class File>
std::string digest_of(const File& file, std::span<const std::byte> bytes) {
  constexpr size_t kHashedPiece = size_t{8} << 20;
  Sha256 hash;
  for (size_t at = 0; at < bytes.size(); at += kHashedPiece) {
    const auto piece = bytes.subspan(at, std::min(kHashedPiece, bytes.size() - at));
    hash.add(piece);
    file.release(piece);
  }
  return hash.digest();
}

}  // namespace

std::string tensor_digest(const TensorFile& file, ThreadPool& pool) {
  const std::vector<TensorInfo>& tensors = file.tensors();
  std::vector<std::string> lines(tensors.size());
  pool.run(static_cast<int64_t>(tensors.size()), [&](int64_t index, int) {
    const TensorInfo& info = tensors[static_cast<size_t>(index)];
    const std::string dtype =
        info.packing.empty() ? std::string(name_of(info.dtype)) : info.packing;
    lines[static_cast<size_t>(index)] =
        fmt::format("{} {} {} {}\n", digest_of(file, file.bytes(info.name)), dtype,
                    to_string(info.shape), info.name);
  });
  file.check_intact();
  std::vector<size_t> order(tensors.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, [&](size_t a, size_t b) { return tensors[a].name < tensors[b].name; });
  Sha256 all;
  for (const size_t i : order) all.add(lines[i]);
  return all.digest();
}

std::string file_digest(const std::string& path) {
  const MappedFile file(path);
  return file.read([&](auto bytes) { return digest_of(file, bytes); });
}

}  // namespace octet
