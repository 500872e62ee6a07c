// libFuzzer target: any bytes are either refused as a GGUF file with an Error of one line, or give
// tensors that lie apart from one another and inside of the file.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "base/error.h"
#include "formats/gguf.h"
#include "formats/text.h"

namespace {

void demand(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const octet::TensorFileHeader header =
        octet::parse_gguf(std::as_bytes(std::span(data, size)), "fuzz");
    uint64_t covered = 0;
    for (const octet::TensorInfo& tensor : header.tensors) {
      demand(tensor.begin >= covered && tensor.end >= tensor.begin);
      demand(header.data_begin + tensor.end <= size);
      if (tensor.packing.empty()) {
        demand(tensor.elements() * static_cast<uint64_t>(octet::bits_of(tensor.dtype)) ==
               tensor.bytes() * 8);
      }
      demand(octet::is_utf8(tensor.name));
      covered = tensor.end;
    }
    for (const auto& [key, value] : header.metadata) {
      demand(octet::is_utf8(key) && octet::is_utf8(value));
    }
  } catch (const octet::Error& error) {
    const std::string message = error.what();
    demand(message.starts_with("fuzz") && message.find('\n') == message.npos);
    demand(message.size() < 2000);
  }
  return 0;
}
