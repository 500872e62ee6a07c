// The program `octet`. Exit codes: 0 done, 1 failed (one sentence on stderr), 2 wrong usage.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <new>

#include "commands.h"
#include "octet/error.h"
#include "octet/log.h"
#include "octet/version.h"
#include "output.h"

namespace octet::cli {
namespace {

int fail_with(const std::string& sentence) {
  fmt::print(stderr, "octet: {}\n", printable(sentence));
  return 1;
}

// Warnings always, info unless --quiet, debug with --verbose; OCTET_LOG takes the flags' place.
void send_log_lines_to_stderr(const CommonFlags& flags) {
  const char* variable = std::getenv("OCTET_LOG");
  const std::string wanted = variable == nullptr ? "" : variable;
  log::Level lowest = log::Level::info;
  if (flags.verbose || wanted == "debug") lowest = log::Level::debug;
  if (flags.quiet || wanted == "quiet") lowest = log::Level::warning;
  log::set_sink([lowest](log::Level level, std::string_view line) {
    if (level >= lowest) fmt::print(stderr, "octet: {}\n", line);
  });
}

int run(int argc, char** argv) {
  CLI::App program("Diffusion transformers in native INT8", "octet");
  program.set_version_flag("--version", fmt::format("octet {} ({})", version(), commit()));
  program.require_subcommand(1);
  CommonFlags flags;
  program.parse_complete_callback([&flags] { send_log_lines_to_stderr(flags); });
  add_devices(program, flags);
  add_inspect(program, flags);
  add_bench(program, flags);
  add_demo(program, flags);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = error.get_exit_code() == 0;
    program.exit(error);
    return asked_for_help ? 0 : 2;
  }
  if (std::fflush(stdout) != 0) return fail_with("standard output could not be written");
  return 0;
}

}  // namespace

void add_common_flags(CLI::App& command, CommonFlags& flags) {
  command.add_option("--device", flags.device, "auto, ref, cpu, cuda or cuda:<number>")
      ->capture_default_str();
  command.add_option("--threads", flags.threads, "CPU threads (default: one per physical core)")
      ->check(CLI::Range(1, 4096));
  command.add_option("--json", flags.json, "Write JSON to this file, or to stdout for -");
  command.add_flag("-v,--verbose", flags.verbose, "Say more");
  command.add_flag("-q,--quiet", flags.quiet, "Say less");
}

}  // namespace octet::cli

int main(int argc, char** argv) {
  try {
    return octet::cli::run(argc, argv);
  } catch (const octet::Error& error) {
    return octet::cli::fail_with(error.what());
  } catch (const std::bad_alloc&) {
    return octet::cli::fail_with("out of memory; close programs or use a smaller problem");
  } catch (const std::exception& error) {
    return octet::cli::fail_with(fmt::format("unexpected failure: {}", error.what()));
  }
}
