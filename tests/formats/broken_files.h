// Safetensors files and indexes that must be refused, each with what its message has to say.
// The tests read them from disk, and the fuzzer starts from them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octet::test {

struct BrokenFile {
  std::string label;  // for the test's output, and a file name for the fuzzer
  std::string content;
  std::string tensor;  // must appear in the message; empty when no tensor is at fault
  std::string fault;   // a word that must appear too
};

// A safetensors file: the length, the header and `data_bytes` bytes.
std::string file_with_header(std::string_view header, size_t data_bytes);

// A correct file with two tensors, some metadata and 24 bytes of data.
std::string sound_file();

std::vector<BrokenFile> broken_safetensors();
std::vector<BrokenFile> broken_indexes();

}  // namespace octet::test
