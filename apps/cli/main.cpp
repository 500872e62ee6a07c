// The program `octet`. Exit codes: 0 done, 1 failed (one sentence on stderr), 2 wrong usage, 3 what
// --fail-on looks for was found, 128 + signal when one stopped it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <sstream>
#include <string_view>
#include <vector>

#include "commands.h"
#include "config.h"
#include "field_names.h"
#include "help_page.h"
#include "octet/error.h"
#include "octet/log.h"
#include "octet/version.h"
#include "output.h"
#include "stop_signal.h"
#include "usage_errors.h"

namespace octet::cli {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kWrongUsage = 2, kFailedCheck = 3 };

int fail_with(const CommonFlags& flags, const Sentence& sentence, ExitCode code = kFailed) {
  std::signal(SIGPIPE, SIG_IGN);  // nobody may read standard output any more
  std::fflush(stdout);            // where both go to one place, the sentence comes last
  say(flags, sentence);
  return code;
}

// A file opened later must not become descriptor 0, 1 or 2, where log lines would end up in it.
// Standard output gets the wrong direction on purpose: writing to it then fails and is reported,
// whereas nobody misses log lines.
void open_standard_descriptors() {
  constexpr int kModes[] = {O_WRONLY, O_RDONLY, O_RDWR};
  for (int fd = 0; fd < 3; ++fd) {
    // open() takes the lowest free number, which is this one: those below it are open by now.
    if (::fcntl(fd, F_GETFD) == -1 && ::open("/dev/null", kModes[fd]) != fd) std::_Exit(kFailed);
  }
}

// Warnings and trace lines always, info unless quiet, debug when verbose. The flags win over the
// variable OCTET_LOG; a value of it that means nothing is wrong usage in any case.
void send_log_lines_to_stderr(const CommonFlags& flags) {
  log::Level lowest = log::Level::info;
  try {
    lowest = log::level_from_environment().value_or(lowest);
  } catch (const Error& error) {
    throw CLI::ValidationError(error.what());
  }
  if (flags.verbose) lowest = log::Level::debug;
  if (flags.quiet) lowest = log::Level::warning;
  log::set_sink([lowest, flags](log::Level level, const Sentence& line) {
    if (level >= lowest) say(flags, line);
  });
}

// Notes which command it is: "bench gemm", and where it is defined.
void choose_command(const CLI::App& program, CommonFlags& flags) {
  flags.app = &program;
  while (!flags.app->get_subcommands().empty()) {
    flags.app = flags.app->get_subcommands().front();
    flags.command += (flags.command.empty() ? "" : " ") + flags.app->get_name();
  }
}

using AddCommand = void (*)(CLI::App& program, CommonFlags& flags);

struct Section {
  const char* title;
  std::vector<AddCommand> commands;
};

// The commands as the help lists them.
const Section kSections[] = {
    {"Pictures", {add_generate, add_caption, add_demo, add_serve}},
    {"Models", {add_pull, add_list, add_rm, add_inspect, add_quantize, add_compare, add_certify}},
    {"This machine", {add_devices, add_bench, add_tune, add_map, add_plan}},
    {"Other programs", {add_audit}},
    {"Other", {add_config, add_completion, add_man, add_help}},
};

constexpr const char* kClosingLines =
    "octet COMMAND --help explains a command.\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 --fail-on found something; 130, 143\n"
    "and 129 when stopped by Ctrl-C, SIGTERM or SIGHUP. Environment variables: octet man, or\n"
    "docs/environment.md.";

void add_commands(CLI::App& program, CommonFlags& flags) {
  for (const Section& section : kSections) {
    for (const AddCommand add : section.commands) {
      add(program, flags);
      program.get_subcommands([](const CLI::App*) { return true; }).back()->group(section.title);
    }
  }
  refuse_empty_values(program);
  // Now, since a command inherits the footer that the program has when it is added.
  program.footer(kClosingLines);
}

// Log lines name the flags of a command, which is gone when the program is.
struct LogLinesEnd {
  ~LogLinesEnd() { log::set_sink({}); }
};

// The commands' own errors are caught where the program is still defined, for `say`.
int run(int argc, char** argv) {
  CLI::App program("Ideogram 4 in native INT8", "octet");
  program.formatter(std::make_shared<HelpPage>());
  program.set_version_flag("--version", fmt::format("octet {} ({})", version(), commit()));
  program.require_subcommand(1);
  const LogLinesEnd no_lines_later;
  CommonFlags flags;
  program.parse_complete_callback([&program, &flags] {
    choose_command(program, flags);
    send_log_lines_to_stderr(flags);
    use_configured_device(flags);
  });
  add_commands(program, flags);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = error.get_exit_code() == 0;
    if (!asked_for_help) return fail_with(flags, usage_sentence(program, error), kWrongUsage);
    std::ostringstream text;
    program.exit(error, text, text);
    std::fputs(text.str().c_str(), stdout);
  } catch (const FailedCheck& error) {
    return fail_with(flags, error.what(), kFailedCheck);
  } catch (const InvalidRequest& error) {
    // Captions and noise are what the program works on, not how it is used.
    if (error.field() == "caption" || error.field() == "noise") {
      return fail_with(flags, error.sentence());
    }
    const CLI::ValidationError usage(with_flags(error.sentence(), flags.app));
    return fail_with(flags, usage_sentence(program, usage), kWrongUsage);
  } catch (const Error& error) {
    return fail_with(flags, error.sentence());
  }
  // Both: an earlier write that failed leaves nothing to flush.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return fail_with(flags, "standard output could not be written to its end; is the disk full?");
  }
  return kDone;
}

// As it is: formatting would ask for memory again.
int fail_without_memory() {
  constexpr std::string_view kSentence =
      "octet: out of memory; close programs or use a smaller problem\n";
  const ssize_t written = ::write(STDERR_FILENO, kSentence.data(), kSentence.size());
  static_cast<void>(written);
  return kFailed;
}

constexpr size_t kFirstStack = 256 << 10, kFirstHeap = 1 << 20;

// As far as any command needs it: the stack grows now, since later that would be a signal. A
// function of its own, since its caller checks first whether there is memory.
[[gnu::noinline]] void grow_stack() {
  constexpr size_t kPage = 4096;
  [[maybe_unused]] volatile char stack[kFirstStack];
  for (size_t i = 0; i < kFirstStack; i += kPage) stack[kFirstStack - 1 - i] = 0;
}

// Before the constructors of all constants, which cannot throw, and while the standard library may
// lack the memory that it keeps for exceptions: ends a program that could not even say why.
__attribute__((constructor(101))) void check_first_memory() {
  constexpr size_t kBytes = kFirstStack + kFirstHeap;
  void* const room = ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) ::_exit(fail_without_memory());
  ::munmap(room, kBytes);
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur >= 2 * kFirstStack) grow_stack();
}

// Every way in which run() may end, as an exit code.
int guarded_run(int argc, char** argv) {
  try {
    try {
      return run(argc, argv);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      return fail_with({}, fmt::format("unexpected failure: {}", error.what()));
    }
  } catch (const std::bad_alloc&) {
    return fail_without_memory();
  }
}

}  // namespace

}  // namespace octet::cli

int main(int argc, char** argv) {
  octet::cli::open_standard_descriptors();
  octet::cli::handle_stop_signals();
  std::signal(SIGXFSZ, SIG_IGN);  // a file above the limit is a failed write, not the end
  return octet::cli::exit_code_after_signals(octet::cli::guarded_run(argc, argv));
}
