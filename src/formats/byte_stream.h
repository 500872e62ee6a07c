// The bytes of a file or of standard input from front to back, unpacked where they are gzip.
//
// Read, not mapped: pages of a mapping count as the program's memory, and a file of a gigabyte
// shall not cost one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace octet {

class ByteStream {
 public:
  // Called with the bytes of the file that were read and all of its bytes (0: not known), a few
  // times per second and once at the end.
  using Progress = std::function<void(uint64_t, uint64_t)>;

  // `path` "-" is standard input. Throws Error, naming the path, when it cannot be opened or is a
  // folder.
  explicit ByteStream(const std::string& path, Progress progress = {});
  // Bytes in memory, which have to outlive it; `what` begins error sentences as a path does.
  ByteStream(std::string_view bytes, std::string what);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  const std::string& path() const { return path_; }

  // How the bytes begin, kHeadBytes of them unless there are fewer. They are still to be read.
  static constexpr size_t kHeadBytes = 256 * 1024;
  std::string_view head();

  // The next bytes, into.size() of them unless the end comes before; 0: nothing is left. Throws
  // Error when the file cannot be read, its gzip data are damaged or cut off, or unpack to more
  // than a trace has: kMaxBytes in all, or kMaxRatio times their size.
  size_t read(std::span<char> into);

  // Enough for any trace that a profiler could hold in memory, and an end to a pipe that has none.
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 30;
  // Traces shrink to a tenth or a thirtieth. Deflate can reach 1032, of one byte repeated.
  static constexpr uint64_t kMaxRatio = 400;

 private:
  struct Inflater;

  size_t read_file(std::span<char> into);
  size_t read_unpacked(std::span<char> into);
  void report(bool at_end);

  std::string path_;
  Progress progress_;
  int fd_ = -1;
  std::string_view memory_;
  uint64_t file_size_ = 0, file_read_ = 0, given_ = 0;
  int64_t reported_ms_ = 0;
  std::string head_;
  size_t head_taken_ = 0;
  bool has_begun_ = false;
  std::unique_ptr<Inflater> inflater_;
};

// The lines of a text. \n and \r both end one, so that there can be blank lines between those of a
// file from Windows; progress bars are lines each.
class LineReader {
 public:
  // Of a longer line, the rest is left out.
  static constexpr size_t kMaxLine = 256 * 1024;

  explicit LineReader(ByteStream& bytes);
  // False at the end. The line stays valid until the next call.
  bool next(std::string_view& line);

 private:
  ByteStream& bytes_;
  std::string buffer_;
  size_t at_ = 0, end_ = 0;
  std::string long_line_;
};

}  // namespace octet
