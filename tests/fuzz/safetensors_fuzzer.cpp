// libFuzzer target: any bytes are either refused with an Error of one line, or give tensors that
// cover the data exactly.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/safetensors.h"

namespace {

void demand(bool condition) {
  if (!condition) std::abort();
}

void parse(std::span<const std::byte> file) {
  try {
    const octet::TensorFileHeader header = octet::parse_safetensors(file, "fuzz");
    uint64_t covered = 0;
    for (const octet::TensorInfo& tensor : header.tensors) {
      demand(tensor.begin == covered && tensor.end >= tensor.begin);
      demand(tensor.elements() * static_cast<uint64_t>(octet::bits_of(tensor.dtype)) ==
             tensor.bytes() * 8);
      covered = tensor.end;
    }
    demand(header.data_begin + covered == file.size());
  } catch (const octet::Error& error) {
    const std::string message = error.what();
    demand(message.starts_with("fuzz") && message.find('\n') == message.npos);
    demand(message.size() < 2000);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  parse(bytes);
  // Few mutations keep the header's length right, so the same bytes are tried behind a correct one:
  // the first byte says how many of the last are data.
  if (size == 0) return 0;
  const size_t data_bytes = std::min<size_t>(data[0], size - 1);
  const size_t header_bytes = size - 1 - data_bytes;
  std::vector<std::byte> file(8);
  for (size_t i = 0; i < 8; ++i) file[i] = static_cast<std::byte>(header_bytes >> (8 * i));
  file.insert(file.end(), bytes.begin() + 1, bytes.end());
  parse(file);
  return 0;
}
