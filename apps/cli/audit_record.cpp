#include "audit_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "octet/error.h"
#include "octet/tools/files.h"
#include "octet/tools/text.h"
#include "record_sitecustomize_text.h"

extern char** environ;

namespace octet::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP};

// Read and written by the handler.
std::atomic<pid_t> recorded_process = 0;
std::atomic<bool> asked_to_end = false;
static_assert(std::atomic<pid_t>::is_always_lock_free);

// A terminal signals the whole group, and the command has got it then; what a process sent came to
// us alone.
void pass_on(int signal, siginfo_t* info, void*) {
  const int error_number = errno;
  asked_to_end = true;
  const pid_t process = recorded_process;
  if (process > 0 && info->si_code <= 0) ::kill(process, signal);
  errno = error_number;
}

// While a command runs, signals are its own; ours are restored afterwards.
class PassedOnSignals {
 public:
  PassedOnSignals() {
    asked_to_end = false;
    struct sigaction action = {};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_RESTART | SA_SIGINFO;
    for (size_t i = 0; i < std::size(kPassedOn); ++i) {
      ::sigaction(kPassedOn[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) ::sigaction(kPassedOn[i], &action, nullptr);
    }
  }
  ~PassedOnSignals() {
    recorded_process = 0;
    for (size_t i = 0; i < std::size(kPassedOn); ++i) {
      ::sigaction(kPassedOn[i], &before_[i], nullptr);
    }
  }
  PassedOnSignals(const PassedOnSignals&) = delete;
  PassedOnSignals& operator=(const PassedOnSignals&) = delete;

 private:
  struct sigaction before_[std::size(kPassedOn)] = {};
};

// Nobody else may write what Python is going to run.
class PrivateFolder {
 public:
  explicit PrivateFolder(const fs::path& parent) {
    path_ = (parent / ".octet-record-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) {
      const std::string why = std::strerror(errno);
      throw Error(fmt::format("{}: a folder for the recording cannot be created there: {}",
                              parent.string(), why));
    }
  }
  ~PrivateFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Our environment, with some variables replaced.
class ChildEnvironment {
 public:
  ChildEnvironment() {
    for (char** entry = environ; *entry != nullptr; ++entry) entries_.emplace_back(*entry);
  }
  std::string value(const std::string& name) const {
    for (const std::string& entry : entries_) {
      if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
    }
    return "";
  }
  void set(const std::string& name, const std::string& value) {
    std::erase_if(entries_, [&](const std::string& each) { return each.starts_with(name + "="); });
    entries_.push_back(name + "=" + value);
  }
  std::vector<char*> pointers() { return pointers_to(entries_); }

  static std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
  }

 private:
  std::vector<std::string> entries_;
};

// The process, with signals as they were for us when we were started.
pid_t start(std::vector<std::string> command, ChildEnvironment& environment, bool to_stderr) {
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t files;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_init(&files);
  if (to_stderr) ::posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  sigset_t defaults, held, mask;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGXFSZ);  // main() ignores it
  ::sigemptyset(&held);
  for (const int signal : kPassedOn) ::sigaddset(&held, signal);
  // A signal waits until the process that it is for has its number.
  ::pthread_sigmask(SIG_BLOCK, &held, &mask);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setsigmask(&attributes, &mask);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  pid_t process = 0;
  const int failed =
      ::posix_spawnp(&process, command.front().c_str(), &files, &attributes,
                     ChildEnvironment::pointers_to(command).data(), environment.pointers().data());
  if (failed == 0) recorded_process = process;
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    throw Error(fmt::format("{}: cannot be run: {}; give a program after --", command.front(),
                            std::strerror(failed)));
  }
  return process;
}

int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) == -1) {
    if (errno != EINTR) {
      throw Error(fmt::format("waiting for the command failed: {}", std::strerror(errno)));
    }
  }
  recorded_process = 0;  // its number may be another's from now on
  return status;
}

// Nothing where it ended well, or because it was asked to.
std::string failure_of(int status) {
  if (asked_to_end || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) return "";
  if (WIFEXITED(status)) return fmt::format("ended with exit code {}", WEXITSTATUS(status));
  return fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                     ::strsignal(WTERMSIG(status)));
}

// One that begins with a dot is unfinished.
bool is_trace_name(std::string_view name) {
  if (name.starts_with('.')) return false;
  return name.ends_with(".json") || name.ends_with(".json.gz");
}

// PYTHONPATH takes no colons, and a program may change its folder.
fs::path folder_for_python() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  if (error) {
    throw Error(fmt::format("the folder for temporary files (TMPDIR, else /tmp) cannot be used: {}",
                            error.message()));
  }
  const fs::path usual = fs::absolute(folder);
  return usual.string().find(':') == std::string::npos ? usual : fs::path("/tmp");
}

// Under this name, or a similar one where that is taken: out.12.json, out.12-2.json.
fs::path move_to_free_name(const fs::path& trace, const fs::path& wanted) {
  const std::string name = wanted.filename().string();
  const std::string suffix = name.ends_with(".gz") ? ".json.gz" : ".json";
  const std::string stem = name.substr(0, name.size() - suffix.size());
  constexpr int kMostTries = 1000;
  for (int i = 1; i <= kMostTries; ++i) {
    const fs::path free =
        i == 1 ? wanted : wanted.parent_path() / fmt::format("{}-{}{}", stem, i, suffix);
    // Fails where there is something, a link that leads nowhere included; rename() would not.
    std::error_code taken;
    fs::create_hard_link(trace, free, taken);
    if (!taken) return free;
    if (taken == std::errc::file_exists) continue;
    // A file system without hard links.
    if (fs::exists(fs::symlink_status(free))) continue;
    fs::rename(trace, free);
    return free;
  }
  throw Error(fmt::format("{}: is taken, and so are {} similar names; give another -o",
                          wanted.string(), kMostTries - 1));
}

// Each goes where the user wants it: a single one gets the name, several get similar ones, which
// nobody named and which therefore replace nothing. Links are no traces: they lead elsewhere.
std::vector<std::string> keep_traces(const PrivateFolder& folder, const fs::path& out) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path())) {
    const bool is_file = fs::is_regular_file(entry.symlink_status());
    const bool has_text = is_file && entry.file_size() > 0;
    if (has_text && is_trace_name(entry.path().filename().string())) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> kept;
  for (const fs::path& trace : found) {
    if (found.size() == 1) {
      fs::rename(trace, out);
      kept.push_back(out.string());
    } else {
      kept.push_back(move_to_free_name(trace, out.parent_path() / trace.filename()).string());
    }
  }
  return kept;
}

}  // namespace

Recording record(const RecordRequest& request) try {
  const fs::path out = request.out;
  const fs::path parent = out.has_parent_path() ? out.parent_path() : fs::path(".");
  // Until the traces are kept and the folders are gone: whoever ends a recording wants its trace.
  const PassedOnSignals signals;
  // Traces can be large: they are written where they will stay.
  const PrivateFolder traces(fs::absolute(parent).lexically_normal()), site(folder_for_python());
  write_text_file(site.file("sitecustomize.py"), std::string(kRecordSitecustomize));
  ChildEnvironment environment;
  const std::string path = environment.value("PYTHONPATH");
  environment.set("PYTHONPATH", site.path() + (path.empty() ? "" : ":" + path));
  environment.set("OCTET_RECORD_FILE", traces.file(out.filename().string()));
  environment.set("OCTET_RECORD_SKIP_SECONDS", std::to_string(request.skip));
  environment.set("OCTET_RECORD_SECONDS", std::to_string(request.seconds));
  Recording recording;
  recording.failure =
      failure_of(wait_for(start(request.command, environment, request.stdout_is_ours)));
  recording.traces = keep_traces(traces, out);
  return recording;
} catch (const fs::filesystem_error& error) {
  throw Error(
      fmt::format("{}: the recording cannot be kept: {}", request.out, error.code().message()));
}

std::string shell_line(const std::vector<std::string>& command) {
  std::string line;
  for (const std::string& word : command) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

std::string how_to_record(const std::vector<std::string>& command) {
  return fmt::format(R"(Any program on an NVIDIA GPU, with Nsight Systems:
  nsys profile -o run {0}
  nsys export --type sqlite run.nsys-rep
  octet audit run.sqlite

PyTorch code of your own:
  from torch.profiler import ProfilerActivity, profile
  with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
               record_shapes=True) as run:
      ...  # a step or two are enough
  run.export_chrome_trace("trace.json.gz")

and then: octet audit trace.json.gz
)",
                     printable(shell_line(command)));
}

}  // namespace octet::cli
