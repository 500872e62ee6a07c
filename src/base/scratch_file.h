// Bytes that need not wait in memory: written from first to last, then read in the same order.
//
// The file has no name once it is open, so it vanishes with the program, however that ends. It is
// in the folder for temporary files (TMPDIR, else /tmp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

namespace octet {

// Throws Error if the disk is known to have no room for so many bytes in all such files.
void check_scratch_room(uint64_t bytes);

class ScratchFile {
 public:
  ScratchFile();

  void write(std::span<const std::byte> bytes);
  // Back to the start, for reading. Throws Error if not all could be written.
  void rewind();
  void read(std::span<std::byte> bytes);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string folder_;  // for messages
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace octet
