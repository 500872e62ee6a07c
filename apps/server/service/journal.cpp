#include "server/service/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include "formats/json_value.h"
#include "octet/error.h"

namespace octet::server {
namespace {

[[noreturn]] void fail_on(const std::string& path) {
  throw Error("serve: cannot write " + path + ": " + std::strerror(errno) +
              "; --state names another folder");
}

std::string line_of(const JournalEntry& entry) {
  nlohmann::json line{{"id", entry.id},
                      {"key", entry.key},
                      {"created_at", entry.created_at},
                      {"state", word_of(entry.state)}};
  if (entry.ended_at > 0) line["ended_at"] = entry.ended_at;
  if (!entry.error.empty()) line["error"] = entry.error;
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

constexpr const char* kForgotten = "forgotten";

// The later line of a job counts. A line that ends one names it alone. One that was forgotten has
// no id afterwards.
void read_line(const std::string& line, std::vector<JournalEntry>& entries,
               std::map<std::string, size_t>& known) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.value("id", nlohmann::json()).is_string()) return;
  try {
    const std::string id = json.at("id");
    if (json.at("state") == kForgotten) {
      if (const auto at = known.find(id); at != known.end()) entries[at->second].id.clear();
      return;
    }
    const auto state = from_word<JobState>(json.at("state").get<std::string>());
    if (!state) return;
    if (!known.contains(id)) {
      known[id] = entries.size();
      entries.push_back({.id = id, .key = json.at("key"), .created_at = json.at("created_at")});
    }
    JournalEntry& entry = entries[known[id]];
    entry.state = *state;
    entry.ended_at = json.value("ended_at", 0.0);
    entry.error = json.value("error", "");
  } catch (const nlohmann::json::exception&) {  // of another program
  }
}

}  // namespace

Journal::Journal(const std::string& folder) : path_(folder + "/jobs.jsonl") {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const std::string lock = folder + "/lock";
  lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_ < 0) fail_on(lock);
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock_);
    throw Error("serve: " + folder +
                " is in use by another server; give each its own folder with --state");
  }
  std::ifstream in(path_);
  std::map<std::string, size_t> known;
  for (std::string line; std::getline(in, line);) read_line(line, former_, known);
  std::erase_if(former_, [](const JournalEntry& entry) { return entry.id.empty(); });
  try {
    rewrite(former_);
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

Journal::~Journal() {
  if (file_ >= 0) ::close(file_);
  if (lock_ >= 0) ::close(lock_);
}

void Journal::rewrite(const std::vector<JournalEntry>& entries) {
  const std::string fresh = path_ + ".new";
  const int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) fail_on(fresh);
  const int before = std::exchange(file_, file);
  const size_t bytes_before = std::exchange(bytes_, 0);
  try {
    std::string lines;
    for (const JournalEntry& entry : entries) lines += line_of(entry);
    write(lines);
    if (::rename(fresh.c_str(), path_.c_str()) != 0) fail_on(path_);
  } catch (...) {
    ::close(std::exchange(file_, before));
    bytes_ = bytes_before;
    throw;
  }
  if (before >= 0) ::close(before);
}

void Journal::note_taken(const Job& job) {
  write(line_of({.id = job.id(), .key = job.spec().key, .created_at = job.view().created_at}));
}

void Journal::note_ended(const JobView& job) {
  write(line_of({.id = job.id,
                 .key = "",
                 .created_at = job.created_at,
                 .ended_at = job.ended_at,
                 .state = job.state,
                 .error = job.failure ? job.failure->message : ""}));
}

void Journal::note_forgotten(const std::string& id) {
  write(nlohmann::json{{"id", id}, {"state", kForgotten}}.dump() + "\n");
}

void Journal::write(const std::string& lines) {
  for (size_t done = 0; done < lines.size();) {
    const ssize_t wrote = ::write(file_, lines.data() + done, lines.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      // Half a line would spoil the next one.
      const int error_number = errno;
      if (done > 0 && ::ftruncate(file_, static_cast<off_t>(bytes_)) == 0) done = 0;
      errno = error_number;
      fail_on(path_);
    }
    done += static_cast<size_t>(wrote);
  }
  bytes_ += lines.size();
}

}  // namespace octet::server
