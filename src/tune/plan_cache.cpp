#include "tune/plan_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include "base/atomic_file.h"
#include "base/env.h"
#include "base/error.h"
#include "base/file_lock.h"
#include "base/log.h"
#include "base/own_folder.h"

namespace octet::tune {
namespace {

namespace fs = std::filesystem;

// The whole file; nothing when there is none. Throws Error when it cannot be read. Read rather than
// mapped: a mapping of a file that somebody cuts off at this moment would kill the process.
std::optional<std::string> read_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0 && errno == ENOENT) return std::nullopt;
  if (fd < 0) fail("cannot be opened: {}", system_error_text(errno));
  struct Closer {
    int fd;
    ~Closer() { ::close(fd); }
  } const closer{fd};
  struct stat status = {};
  check(::fstat(fd, &status) == 0 && S_ISREG(status.st_mode), "is not a regular file");

  std::string text;
  char chunk[1 << 16];
  while (text.size() <= kMaxPlanFileBytes) {  // one chunk above it is enough to be refused
    const ssize_t got = ::read(fd, chunk, sizeof(chunk));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot be read: {}", system_error_text(errno));
    if (got == 0) break;
    text.append(chunk, static_cast<size_t>(got));
  }
  return text;
}

void make_folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty()) make_own_folder(folder);
}

void tell_once(bool& told, log::Level level, const std::string& line) {
  if (!std::exchange(told, true)) log::write(level, line);
}

}  // namespace

fs::path default_plan_folder() {
  if (const auto folder = env::cache_dir()) return *folder / "plans";
  log::debug("no plans are kept: none of OCTET_CACHE_DIR, XDG_CACHE_HOME and HOME names a folder");
  return {};
}

std::string plan_file_name(std::string_view device_name) {
  constexpr size_t kMaxStem = 100;
  std::string stem;
  for (const char c : device_name) {
    if (stem.size() == kMaxStem) break;
    if (c >= 'A' && c <= 'Z') {
      stem += static_cast<char>(c - 'A' + 'a');
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      stem += c;
    } else if (!stem.empty() && stem.back() != '_') {
      stem += '_';
    }
  }
  if (!stem.empty() && stem.back() == '_') stem.pop_back();
  return (stem.empty() ? "device" : stem) + ".json";
}

fs::path default_plan_path(const PlanHeader& header) {
  const fs::path folder = default_plan_folder();
  return folder.empty() ? folder : folder / plan_file_name(header.device);
}

PlanCache::PlanCache(const fs::path& path, PlanHeader header,
                     std::chrono::milliseconds lock_patience)
    : path_(path.string()), header_(storable(std::move(header))), lock_patience_(lock_patience) {}

// Nothing when the file is there but cannot be read: it is not ours to replace then.
std::optional<Plans> PlanCache::read_plans() {
  std::optional<std::string> text;
  try {
    check_own_folder(fs::path(path_).parent_path());
    text = read_file(path_);
  } catch (const std::exception& error) {
    tell_once(
        told_of_bad_file_, log::Level::warning,
        fmt::format("plan file {}: {}; plans are neither read nor kept", path_, error.what()));
    told_of_failed_store_ = true;
    return std::nullopt;
  }
  if (!text) return Plans();
  try {
    check(text->size() <= kMaxPlanFileBytes, "{}: is longer than {} bytes", path_,
          kMaxPlanFileBytes);
    PlansFromText found = plans_from_text(*text, path_, header_);
    if (found.difference.empty()) return std::move(found.plans);
    tell_once(
        told_of_bad_file_, log::Level::info,
        fmt::format("plan file {} is ignored, it was made elsewhere: {}", path_, found.difference));
  } catch (const std::exception& error) {
    tell_once(told_of_bad_file_, log::Level::warning,
              fmt::format("plan file is ignored and will be replaced: {}", error.what()));
  }
  return Plans();
}

void PlanCache::load() {
  if (path_.empty()) return;
  plans_ = read_plans().value_or(Plans());
}

const GemmPlan* PlanCache::find(const GemmProblem& problem) const {
  const auto found = plans_.find(problem.to_string());
  return found == plans_.end() ? nullptr : &found->second;
}

// What this process measured comes back if the file was lost meanwhile; what it only read does not:
// somebody who deletes the file wants it measured again.
void PlanCache::merge_ours(Plans& plans, const std::string& latest) const {
  plans.insert(ours_.begin(), ours_.end());
  plans[latest] = ours_.at(latest);
  while (plans.size() > kMaxPlans) {
    auto oldest = plans.end();
    for (auto plan = plans.begin(); plan != plans.end(); ++plan) {
      if (plan->first == latest) continue;
      if (oldest == plans.end() || plan->second.date < oldest->second.date) oldest = plan;
    }
    plans.erase(oldest);
  }
}

void PlanCache::write(const Plans& plans) const {
  const std::string text = plans_to_text(header_, plans);
  AtomicFile file(path_, AtLink::replace);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

void PlanCache::store(const GemmProblem& problem, const GemmPlan& plan) {
  if (path_.empty()) return;
  const std::string key = problem.to_string();
  try {
    check_storable(key, plan);
    GemmPlan& kept = ours_[key] = plan;
    kept.source = GemmPlan::Source::file;
    make_folder_of(path_);
    const FileLock lock(path_ + ".lock", lock_patience_);
    if (!lock.is_held()) {
      const auto waited = std::exchange(lock_patience_, std::chrono::milliseconds(0));
      fail("another process has held {}.lock for {} ms", path_, waited.count());
    }
    std::optional<Plans> plans = read_plans();
    if (!plans) return;
    merge_ours(*plans, key);
    write(*plans);
    plans_ = std::move(*plans);
  } catch (const std::exception& error) {
    tell_once(told_of_failed_store_, log::Level::warning,
              fmt::format("plan file {} is not saved, the next run measures again: {}", path_,
                          error.what()));
  }
}

}  // namespace octet::tune
