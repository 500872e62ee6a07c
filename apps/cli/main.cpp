// The program `octet`. Exit codes: 0 done, 1 failed (one sentence on stderr), 2 wrong usage, 128 +
// signal when one stopped it.
#include <fcntl.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <sstream>

#include "commands.h"
#include "octet/error.h"
#include "octet/invalid_request.h"
#include "octet/log.h"
#include "octet/text.h"
#include "octet/version.h"
#include "stop_signal.h"

namespace octet::cli {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kWrongUsage = 2 };

// fputs rather than fmt::print, which throws when standard error is full or closed.
int fail_with(const std::string& sentence, ExitCode code = kFailed) {
  std::fputs(fmt::format("octet: {}\n", printable(sentence)).c_str(), stderr);
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
  log::set_sink([lowest](log::Level level, std::string_view line) {
    if (level >= lowest) std::fputs(fmt::format("octet: {}\n", printable(line)).c_str(), stderr);
  });
}

int run(int argc, char** argv) {
  CLI::App program("Diffusion transformers in native INT8", "octet");
  program.set_version_flag("--version", fmt::format("octet {} ({})", version(), commit()));
  program.require_subcommand(1);
  CommonFlags flags;
  program.parse_complete_callback([&flags] { send_log_lines_to_stderr(flags); });
  add_devices(program, flags);
  add_pull(program, flags);
  add_inspect(program, flags);
  add_caption(program, flags);
  add_bench(program, flags);
  add_tune(program, flags);
  add_demo(program, flags);
  add_quantize(program, flags);
  add_generate(program, flags);
  add_compare(program, flags);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = error.get_exit_code() == 0;
    if (!asked_for_help) return fail_with(usage_sentence(program, error), kWrongUsage);
    std::ostringstream text;
    program.exit(error, text, text);
    std::fputs(text.str().c_str(), stdout);
  } catch (const InvalidRequest& error) {
    return fail_with(usage_sentence(program, CLI::ValidationError(error.what())), kWrongUsage);
  }
  // Both: an earlier write that failed leaves nothing to flush.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return fail_with("standard output could not be written to its end; is the disk full?");
  }
  return kDone;
}

// Every way in which run() may end, as an exit code.
int guarded_run(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    return fail_with(error.what());
  } catch (const std::bad_alloc&) {
    // As it is: formatting would ask for memory again.
    std::fputs("octet: out of memory; close programs or use a smaller problem\n", stderr);
    return kFailed;
  } catch (const std::exception& error) {
    return fail_with(fmt::format("unexpected failure: {}", error.what()));
  }
}

}  // namespace

}  // namespace octet::cli

int main(int argc, char** argv) {
  octet::cli::open_standard_descriptors();
  octet::cli::handle_stop_signals();
  return octet::cli::exit_code_after_signals(octet::cli::guarded_run(argc, argv));
}
