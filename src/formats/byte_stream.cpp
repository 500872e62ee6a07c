#include "formats/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "base/error.h"
#include "octet/tools/text.h"

namespace octet {
namespace {

constexpr int64_t kReportEveryMs = 200;

int64_t steady_milliseconds() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool is_gzip_begin(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

}  // namespace

struct ByteStream::Inflater {
  z_stream state = {};
  std::vector<char> packed = std::vector<char>(128 * 1024);
  bool is_between_members = false;

  Inflater() {
    // 16: a gzip header is expected, and its checksum verified.
    if (::inflateInit2(&state, 15 + 16) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { ::inflateEnd(&state); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

ByteStream::ByteStream(const std::string& path, Progress progress)
    : path_(path == "-" ? "standard input" : path), progress_(std::move(progress)) {
  if (path == "-") {
    fd_ = STDIN_FILENO;
  } else {
    check(!path.empty(), "the path of the file to read is empty");
    check(path.find('\0') == path.npos, "the path of a file to read has a NUL byte in it");
    // O_NONBLOCK: a pipe that nobody writes to is empty, instead of something to wait for.
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd_ < 0) fail("{}: cannot be opened: {}", path_, system_error_text(errno));
    ::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) & ~O_NONBLOCK);
  }
  struct stat status = {};
  if (::fstat(fd_, &status) == 0) {
    if (S_ISDIR(status.st_mode)) {
      if (fd_ != STDIN_FILENO) ::close(fd_);
      fail("{}: is a folder, expected a file; name the files in it, such as {}/*", path_,
           shell_word(path_));
    }
    if (S_ISREG(status.st_mode)) file_size_ = static_cast<uint64_t>(status.st_size);
  }
  reported_ms_ = steady_milliseconds();
}

ByteStream::ByteStream(std::string_view bytes, std::string what)
    : path_(std::move(what)), memory_(bytes), file_size_(bytes.size()) {}

ByteStream::~ByteStream() {
  if (fd_ > STDIN_FILENO) ::close(fd_);
}

size_t ByteStream::read_file(std::span<char> into) {
  size_t count = 0;
  if (fd_ < 0) {
    count = std::min(into.size(), memory_.size());
    std::memcpy(into.data(), memory_.data(), count);
    memory_.remove_prefix(count);
  }
  while (fd_ >= 0 && count < into.size()) {
    const ssize_t got = ::read(fd_, into.data() + count, into.size() - count);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("{}: cannot be read: {}", path_, system_error_text(errno));
    if (got == 0) break;
    count += static_cast<size_t>(got);
  }
  file_read_ += count;
  report(count < into.size());
  return count;
}

void ByteStream::report(bool at_end) {
  if (!progress_) return;
  const int64_t now = steady_milliseconds();
  if (!at_end && now - reported_ms_ < kReportEveryMs) return;
  reported_ms_ = now;
  // A file that is being written to grows.
  progress_(file_read_, file_size_ == 0 ? 0 : std::max(file_size_, file_read_));
}

size_t ByteStream::read_unpacked(std::span<char> into) {
  Inflater& gzip = *inflater_;
  z_stream& state = gzip.state;
  state.next_out = reinterpret_cast<Bytef*>(into.data());
  state.avail_out = static_cast<uInt>(into.size());
  while (state.avail_out > 0) {
    if (state.avail_in == 0) {
      state.avail_in = static_cast<uInt>(read_file(gzip.packed));
      state.next_in = reinterpret_cast<Bytef*>(gzip.packed.data());
      if (state.avail_in == 0) {
        check(gzip.is_between_members, "{}: its gzip data are cut off at byte {}", path_,
              file_read_);
        break;
      }
    }
    if (gzip.is_between_members) {
      // Files of several members are gzip as well, and tapes pad them with zeros.
      if (*state.next_in == 0) {
        ++state.next_in;
        --state.avail_in;
        continue;
      }
      ::inflateReset(&state);
      gzip.is_between_members = false;
    }
    const int result = ::inflate(&state, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      gzip.is_between_members = true;
    } else if (result == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      fail("{}: its gzip data are damaged at byte {}", path_, file_read_ - state.avail_in);
    }
  }
  const size_t count = into.size() - state.avail_out;
  // The first megabytes of a trace may be blanks; all of it is not.
  const uint64_t unpacked = given_ + count;
  check(unpacked < (uint64_t{256} << 20) || unpacked / kMaxRatio <= file_read_,
        "{}: unpacks to more than {} times its size, which no trace does", path_, kMaxRatio);
  return count;
}

std::string_view ByteStream::head() {
  if (!has_begun_) {
    has_begun_ = true;
    head_.resize(kHeadBytes);
    head_.resize(read_file(head_));
    if (is_gzip_begin(head_)) {
      inflater_ = std::make_unique<Inflater>();
      inflater_->packed.assign(head_.begin(), head_.end());
      inflater_->state.next_in = reinterpret_cast<Bytef*>(inflater_->packed.data());
      inflater_->state.avail_in = static_cast<uInt>(head_.size());
      head_.resize(kHeadBytes);
      head_.resize(read_unpacked(head_));
    }
  }
  return std::string_view(head_).substr(head_taken_);
}

size_t ByteStream::read(std::span<char> into) {
  if (into.empty()) return 0;
  const std::string_view begin = head();
  size_t count = std::min(begin.size(), into.size());
  std::memcpy(into.data(), begin.data(), count);
  head_taken_ += count;
  if (count == 0) {
    count = inflater_ ? read_unpacked(into) : read_file(into);
    if (!head_.empty()) {
      std::string().swap(head_);
      head_taken_ = 0;
    }
  }
  given_ += count;
  check(given_ <= kMaxBytes, "{}: has more than {} bytes, which no trace does", path_, kMaxBytes);
  return count;
}

LineReader::LineReader(ByteStream& bytes) : bytes_(bytes), buffer_(256 * 1024, '\0') {}

bool LineReader::next(std::string_view& line) {
  long_line_.clear();
  bool is_in_pieces = false;
  while (true) {
    if (at_ == end_) {
      at_ = 0;
      end_ = bytes_.read(buffer_);
      if (end_ == 0) {
        line = long_line_;
        return is_in_pieces;
      }
    }
    const std::string_view rest(buffer_.data() + at_, end_ - at_);
    const size_t length = std::min(rest.find_first_of("\n\r"), rest.size());
    at_ += std::min(length + 1, rest.size());
    if (length < rest.size() && !is_in_pieces) {
      line = rest.substr(0, length);
      return true;
    }
    is_in_pieces = true;
    long_line_.append(rest.substr(0, std::min(length, kMaxLine - long_line_.size())));
    if (length < rest.size()) {
      line = long_line_;
      return true;
    }
  }
}

}  // namespace octet
