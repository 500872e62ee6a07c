#include "base/scratch_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/error.h"

namespace octet {
namespace {

std::string scratch_folder() {
  std::error_code error;
  const std::string folder = std::filesystem::temp_directory_path(error).string();
  check(!error, "the folder for temporary files (TMPDIR, else /tmp) cannot be used: {}",
        error.message());
  return folder;
}

}  // namespace

void check_scratch_room(uint64_t bytes) {
  const std::string folder = scratch_folder();
  std::error_code unknown;
  const std::filesystem::space_info space = std::filesystem::space(folder, unknown);
  check(unknown || space.available >= bytes,
        "{}: the disk has room for {} bytes, but temporary files need {}; free some space, or name "
        "another folder with TMPDIR",
        folder, space.available, bytes);
}

ScratchFile::ScratchFile() : folder_(scratch_folder()) {
  std::string name = folder_ + "/octet.XXXXXX";
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) fail("{}: a temporary file cannot be created: {}", folder_, system_error_text(errno));
  ::unlink(name.c_str());
  file_.reset(::fdopen(fd, "w+b"));
  if (!file_) {
    ::close(fd);
    fail("{}: a temporary file cannot be created: {}", folder_, system_error_text(errno));
  }
}

void ScratchFile::write(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size()) return;
  fail("{}: a temporary file cannot be written: {}; name another folder with TMPDIR", folder_,
       system_error_text(errno));
}

void ScratchFile::rewind() {
  if (std::fflush(file_.get()) == 0 && std::fseek(file_.get(), 0, SEEK_SET) == 0) return;
  fail("{}: a temporary file cannot be written: {}; name another folder with TMPDIR", folder_,
       system_error_text(errno));
}

void ScratchFile::read(std::span<std::byte> bytes) {
  check(std::fread(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size(),
        "{}: a temporary file cannot be read to its end", folder_);
}

}  // namespace octet
