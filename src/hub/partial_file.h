// A file on its way: its bytes, written at their places in any order, and a journal of which are
// there. Killed at any moment, the two are taken up where they stood.
//
//   <blob>.octet.incomplete   the bytes, as long as the whole file from the start
//   <blob>.octet.ranges       three numbers (kind, file size, range size), then per range of the
//                             file how many bytes from its begin are there; 64 bits each
//
// Bytes are written before the number that counts them, and a number is replaced in one write, so
// what the journal says is there. After a power cut that may be untrue; the digest then tells.
// (The name is not that of huggingface_hub's own unfinished files, which end where they are.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace octet::hub {

class PartialFile {
 public:
  struct Range {
    uint64_t begin = 0, end = 0;
    uint64_t done = 0;  // bytes from `begin` that are there
  };

  // Takes up what an earlier run left of `target`, or begins. The caller holds the blob's lock.
  PartialFile(std::string target, uint64_t size, uint64_t range_bytes);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  uint64_t size() const { return size_; }
  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  size_t ranges() const { return done_.size(); }
  Range range(size_t index) const;
  uint64_t bytes_done() const;

  // Appends to what is there of one range. Two threads may do this at once for different ranges.
  void append(size_t index, std::span<const std::byte> bytes);

  // Forgets everything and makes the whole file one range: for servers that know no ranges.
  void restart_as_one();
  void forget(size_t index, uint64_t keep = 0);  // of one range, all but its first bytes

  // What says whether a file arrived as it was sent, in hexadecimal digits: the SHA-256 of a file
  // in Git LFS, or git's blob id, which is the SHA-1 of "blob <size>", a NUL byte and the content;
  // of the kind that `etag` is by its length. `go_on` is asked now and then: false ends it with an
  // empty answer.
  std::string digest_like(const std::string& etag, const std::function<bool()>& go_on) const;

  void finish();  // the file gets its name; the journal goes
  void remove();  // both go

  // Bytes of the disk that an unfinished file of this name holds already.
  static uint64_t bytes_on_disk(const std::string& target);
  static void remove_leftovers(const std::string& target);

 private:
  bool take_up();
  void begin(uint64_t range_bytes);
  void close();
  void set_done(size_t index, uint64_t done);

  std::string target_, path_, journal_path_;
  uint64_t size_;
  uint64_t range_bytes_;
  std::vector<uint64_t> done_;
  int fd_ = -1;
  int journal_ = -1;
};

}  // namespace octet::hub
