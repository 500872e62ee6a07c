// octet audit

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "audit_record.h"
#include "commands.h"
#include "octet/tools/files.h"
#include "octet/tools/report.h"
#include "octet/tools/text.h"
#include "output.h"

namespace octet::cli {
namespace {

struct AuditArguments {
  std::vector<std::string> words;  // traces; with --record the command
  AuditRequest request;
  std::string page;
  std::vector<std::string> fail_on;
  bool record = false;
  RecordRequest recording{.out = "octet-trace.json.gz"};
};

bool is_fake(AuditVerdict verdict) {
  return verdict == AuditVerdict::fake_int8 || verdict == AuditVerdict::fake_fp8 ||
         verdict == AuditVerdict::fake_four_bit;
}

void check_verdict(AuditVerdict verdict, const std::string& whose,
                   const std::vector<std::string>& fail_on) {
  for (const std::string& word : fail_on) {
    const bool falls_back = word == "fallback" && verdict == AuditVerdict::fallback;
    if (!falls_back && !is_fake(verdict)) continue;
    throw FailedCheck(
        fmt::format("--fail-on {}: the verdict{} is {}", word, whose, title_of(verdict)));
  }
}

// Of several models none may fail, however little time it took.
void check_verdicts(const AuditReport& report, const std::vector<std::string>& fail_on) {
  check_verdict(report.verdict, "", fail_on);
  for (const AuditModel& model : report.models) {
    check_verdict(model.verdict, fmt::format(" on {}", printable(model.name)), fail_on);
  }
}

void check_words(const CLI::App& command, const AuditArguments& arguments) {
  const std::vector<std::string>& words = arguments.words;
  const auto left = command.remaining();
  const bool has_dashes = std::find(left.begin(), left.end(), "--") != left.end();
  if (arguments.record && words.empty()) {
    throw CLI::ValidationError(
        "--record has no command, expected one after --, such as octet audit --record -- python "
        "main.py");
  }
  if (arguments.record && !has_dashes) {
    throw CLI::ValidationError(fmt::format(
        "--record needs -- before the command: octet audit --record -- {}", shell_line(words)));
  }
  if (arguments.record) return;
  if (words.empty()) throw CLI::ValidationError("TRACE... is missing");
  for (const std::string& word : words) {
    if (word.empty()) throw CLI::ValidationError("the path is empty, expected a trace or -");
  }
  if (std::count(words.begin(), words.end(), "-") > 1) {
    throw CLI::ValidationError("standard input is read once, and - was given twice");
  }
}

AuditReport audit_with_progress(const AuditRequest& request, const CommonFlags& flags) {
  // Smaller files are read before a bar could be looked at.
  constexpr uint64_t kLarge = 50'000'000, kMegabyte = 1'000'000;
  std::optional<ProgressReports> progress;
  uint64_t last = 0;
  return audit_traces(request, [&](uint64_t done, uint64_t total) {
    if (done < last) progress.reset();  // another file
    last = done;
    if (total < kLarge) return;
    if (!progress) progress.emplace(flags, "reading", "MB");
    (*progress)(static_cast<int>(done / kMegabyte), static_cast<int>(total / kMegabyte));
  });
}

// What was recorded becomes the traces.
Recording record_command(const AuditArguments& arguments, const CommonFlags& flags) {
  RecordRequest request = arguments.recording;
  request.command = arguments.words;
  request.stdout_is_ours = flags.json == "-";
  const Recording recording = record(request);
  if (!recording.traces.empty()) return recording;
  if (!flags.quiet && flags.json != "-") {
    std::fputs(how_to_record(request.command).c_str(), stdout);
  }
  throw Error(fmt::format(
      "{}: {}and nothing was recorded; it called no module of PyTorch, or its Python ignores "
      "PYTHONPATH (-I, -E), or it ended before the trace was written: docs/audit.md shows other "
      "ways",
      shell_line(request.command),
      recording.failure.empty() ? "it ended, " : "it " + recording.failure + ", "));
}

void run_audit(const CLI::App& command, const CommonFlags& flags, const AuditArguments& arguments) {
  check_words(command, arguments);
  AuditRequest request = arguments.request;
  Recording recording;
  if (arguments.record) {
    check_outputs(flags, {arguments.page, arguments.recording.out});
    recording = record_command(arguments, flags);
    request.traces = recording.traces;
  } else {
    request.traces = arguments.words;
    std::vector<std::string> inputs = arguments.words;
    std::erase(inputs, "-");
    check_outputs(flags, {arguments.page}, inputs);
  }
  const AuditReport report = audit_with_progress(request, flags);
  if (!arguments.page.empty()) write_text_file(arguments.page, audit_page(report));
  std::string text = to_text(report, detail_of(flags));
  for (const std::string& trace : recording.traces) text += "Recorded: " + printable(trace) + "\n";
  if (!arguments.page.empty()) text += printable(arguments.page) + "\n";
  show(flags, text, json_of(flags, report));
  if (!recording.failure.empty()) {
    throw Error(fmt::format("{}: {}; what it had recorded by then was audited",
                            shell_line(arguments.words), recording.failure));
  }
  check_verdicts(report, arguments.fail_on);
}

void add_record_flags(CLI::App& command, AuditArguments& arguments) {
  command.add_flag(
      "--record", arguments.record,
      "Run the command after --, profile it with PyTorch's profiler, and audit the trace");
  add_value(command, "-o,--out", "FILE", arguments.recording.out,
            "Where to keep the recorded trace")
      ->capture_default_str()
      ->needs("--record")
      ->check([](const std::string& path) {
        const bool is_trace = path.ends_with(".json") || path.ends_with(".json.gz");
        return is_trace
                   ? std::string()
                   : fmt::format("'{}' is not a valid name for a trace, expected .json or .json.gz",
                                 path);
      });
  constexpr int64_t kDay = 86400;
  add_whole_number(command, "--record-skip", arguments.recording.skip, 0, kDay,
                   "Seconds of warm-up to skip")
      ->needs("--record");
  add_whole_number(command, "--record-seconds", arguments.recording.seconds, 1, kDay,
                   "Stop recording after this many seconds (default: when the command ends)")
      ->default_str("")
      ->needs("--record");
  set_group(command, "Recording", {"--record", "--out", "--record-skip", "--record-seconds"});
}

}  // namespace

void add_audit(CLI::App& program, CommonFlags& flags) {
  CLI::App& command = add_command(
      program, flags, "audit", "Find out from profiler traces whether an INT8 run really was INT8");
  const auto arguments = std::make_shared<AuditArguments>();
  add_value(command, "trace", "FILE", arguments->words,
            "Files of one run: PyTorch profiler traces, Nsight Compute CSV, Nsight Systems "
            "CSV or SQLite, ComfyUI or vLLM logs, Octet reports; - is standard input");
  add_value(command, "--html", "FILE", arguments->page, "Write the report as an HTML page")
      ->check(no_empty_path("a file"));
  command
      .add_option("--fail-on", arguments->fail_on,
                  "Exit with 3 if weights were dequantized and multiplied in floating point: "
                  "fake, with no native linears; fallback, also alongside native ones")
      ->delimiter(',')
      ->allow_extra_args(false);
  choose_from(command.get_option("--fail-on"), {"fake", "fallback"}, "");
  add_value(command, "--card", "NAME", arguments->request.card,
            "The card it ran on, if the trace does not say: rtx3090, a100");
  add_record_flags(command, *arguments);
  set_examples(command, {"octet audit trace.json.gz --html audit.html",
                         "octet audit run.sqlite comfyui.log --fail-on fallback",
                         "octet audit --record -- python main.py"});
  command.callback([&flags, &command, arguments] { run_audit(command, flags, *arguments); });
}

}  // namespace octet::cli
