#include "formats/resume_journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <set>
#include <string_view>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/regular_file.h"

namespace octet {
namespace {

constexpr size_t kEntrySize = 8 + 1 + 16;              // index and checksum
constexpr size_t kLineSize = kEntrySize + 1 + 16 + 1;  // and the line's own checksum, newline

constexpr std::string_view kFirstWords = "octet finished tensors of job ";

std::string first_line(uint64_t job) { return fmt::format("{}{:016x}\n", kFirstWords, job); }

std::string line_of(const FinishedTensor& tensor, uint64_t job) {
  std::string line = fmt::format("{:08x} {:016x}", tensor.index, tensor.checksum);
  const uint64_t own = hash_bytes(std::as_bytes(std::span(line)), job);
  return line + fmt::format(" {:016x}\n", own);
}

std::string lines_of(std::span<const FinishedTensor> finished, uint64_t job) {
  std::string lines;
  for (const FinishedTensor& tensor : finished) lines += line_of(tensor, job);
  return lines;
}

// Reads the line leniently and then demands that it is what this tensor's line looks like.
std::optional<FinishedTensor> parse_line(std::string_view line, uint64_t job) {
  FinishedTensor tensor;
  std::from_chars(line.data(), line.data() + 8, tensor.index, 16);
  std::from_chars(line.data() + 9, line.data() + kEntrySize, tensor.checksum, 16);
  if (line != line_of(tensor, job)) return std::nullopt;
  return tensor;
}

// Nothing where there is no file, and where something else is in its place.
std::optional<std::string> text_of(const std::string& path, size_t limit) {
  try {
    return read_start(path, limit);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

bool is_resume_journal(const std::string& path) {
  const auto text = text_of(path, kFirstWords.size());
  return text && *text == kFirstWords;
}

std::optional<std::vector<FinishedTensor>> read_resume_journal(const std::string& path,
                                                               uint64_t job, size_t tensors) {
  const std::string head = first_line(job);
  const auto text = text_of(path, head.size() + tensors * kLineSize);
  if (!text || !text->starts_with(head)) return std::nullopt;
  std::vector<FinishedTensor> finished;
  std::set<size_t> seen;
  for (size_t at = head.size(); at + kLineSize <= text->size(); at += kLineSize) {
    const auto tensor = parse_line(std::string_view(*text).substr(at, kLineSize), job);
    if (!tensor || tensor->index >= tensors || !seen.insert(tensor->index).second) continue;
    finished.push_back(*tensor);
  }
  return finished;
}

ResumeJournal::ResumeJournal(std::string path, uint64_t job,
                             std::span<const FinishedTensor> finished)
    : path_(std::move(path)), job_(job) {
  const std::string text = first_line(job_) + lines_of(finished, job_);
  // Not an AtomicFile, whose temporary has another name each time: one that a killed run left
  // behind is overwritten here, and known to whoever tidies up.
  const std::string fresh = path_ + kFreshSuffix;
  // O_NONBLOCK: a pipe of that name must not hold the program up.
  constexpr int kFlags =
      O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  fd_ = ::open(fresh.c_str(), kFlags, 0666);
  if (fd_ < 0) fail("{}: cannot be opened: {}", fresh, system_error_text(errno));
  write_and_sync(text);
  if (::rename(fresh.c_str(), path_.c_str()) != 0) {
    fail("{}: cannot be replaced: {}", path_, system_error_text(errno));
  }
}

ResumeJournal::~ResumeJournal() {
  if (fd_ >= 0) ::close(fd_);
}

void ResumeJournal::append(std::span<const FinishedTensor> finished) {
  write_and_sync(lines_of(finished, job_));
}

void ResumeJournal::write_and_sync(const std::string& lines) {
  for (size_t done = 0; done < lines.size();) {
    const ssize_t written = ::write(fd_, lines.data() + done, lines.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("{}: writing failed: {}", path_, system_error_text(errno));
    done += static_cast<size_t>(written);
  }
  if (::fdatasync(fd_) != 0) fail("{}: writing failed: {}", path_, system_error_text(errno));
}

}  // namespace octet
