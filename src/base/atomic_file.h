// A file that appears whole or not at all: bytes go to a temporary file in the target's folder,
// which commit() flushes to disk and gives the target's name. Without commit() it is dropped.
//
// If the file system allows it, the temporary file has no name until commit(), so a program that is
// interrupted or killed while it writes leaves nothing behind. A new file gets its name in one
// step. One that replaces another is called .octet.<pid>.<n>.tmp for a moment, and only a kill -9
// in that moment leaves it there. Elsewhere (NFS, for example) it has that name from the start, and
// the destructor or remove_temporary_files() removes it.
//
// Pipes, devices and files without a name (/dev/stdout may be any of them) cannot be replaced: they
// are written to directly, and what was written before an error stays written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/temporary_name.h"

namespace octet {

std::string folder_of(const std::string& path);  // "." for a plain name

// Where the chain of symbolic links at `path` ends, whether or not a file is there.
std::string follow_links(const std::string& path);

// Makes a rename or removal next to `path` durable across a power cut, if the system can.
void sync_folder_of(const std::string& path);

// What happens to a symbolic link where a file is to be written.
enum class AtLink {
  follow,   // the file it leads to is replaced: files of users, who may keep them elsewhere
  replace,  // the link is: files of caches, whose names nobody is asked about
};

class AtomicFile {
 public:
  // A file that is replaced passes its permissions on to the new one.
  explicit AtomicFile(std::string path, AtLink at_link = AtLink::follow);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  uint64_t bytes_written() const { return written_; }
  void commit();

 private:
  void open_direct();
  void open_temporary(unsigned mode);
  void close_checked();

  std::string path_;       // as the caller gave it, for messages
  std::string target_;     // path_ with symbolic links followed; empty when written to directly
  std::string temporary_;  // empty while there is no named temporary
  TemporaryName remembered_;
  int fd_ = -1;
  uint64_t written_ = 0;
};

}  // namespace octet
