// octet caption check FILE

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "caption_flags.h"
#include "commands.h"
#include "field_names.h"
#include "octet/error.h"
#include "octet/tools/report.h"
#include "octet/tools/text.h"
#include "output.h"

namespace octet::cli {
namespace {

struct CaptionArguments {
  std::string path;
  bool fix = false;
  bool wrap_text = false;
  bool any_caption = false;
};

bool is_error(const CaptionFinding& finding) {
  return finding.severity == CaptionFinding::Severity::error;
}

std::string closing_sentence(const std::string& name, const CaptionReport& report) {
  size_t errors = 0;
  size_t fixable = 0;
  for (const auto& finding : report.findings) {
    errors += is_error(finding) ? 1 : 0;
    fixable += is_error(finding) && finding.fixable ? 1 : 0;
  }
  std::string sentence = fmt::format("{}: {} in the caption", name, counted(errors, "error"));
  if (fixable == errors) return sentence + "; --fix prints the repaired caption";
  if (fixable > 0) sentence += fmt::format("; --fix can repair {} of them", fixable);
  if (!report.as_given.empty()) sentence += "; generate --any-caption runs it anyway";
  return sentence + "; docs/captions.md describes captions";
}

CaptionReport said_to_users(CaptionReport report, const CommonFlags& flags) {
  for (CaptionFinding& finding : report.findings) {
    finding.rule = with_flags(finding.rule, flags.app);
  }
  return report;
}

// For --any-caption: errors are only warnings, unless nothing can be run.
CaptionReport without_errors(CaptionReport report) {
  if (report.as_given.empty()) return report;
  for (CaptionFinding& finding : report.findings) {
    finding.severity = CaptionFinding::Severity::warning;
  }
  report.canonical = report.as_given;
  return report;
}

std::string name_of(const std::string& path) {
  std::error_code error;
  if (path == "-") return "standard input";
  return std::filesystem::exists(path, error) ? path : "the caption";
}

// A file's, or the argument itself where it is JSON, as --caption of generate takes it.
std::string text_of(const std::string& path, bool wrap_text) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) {
    throw Error(
        fmt::format("{}: is a folder, expected the file of one caption; for all in it: for "
                    "f in {}/*.json; do octet caption check \"$f\"; done",
                    path, shell_word(path)));
  }
  if (path == "-" || std::filesystem::exists(status)) return read_caption(path);
  if (path.find_first_not_of(" \t\r\n") != path.npos &&
      path[path.find_first_not_of(" \t\r\n")] == '{') {
    return path;
  }
  const bool has_spaces = path.find(' ') != path.npos;
  if (wrap_text && has_spaces) return path;
  // The name of a file with a slip, and no description.
  if (!has_spaces || path.ends_with(".json") || path.ends_with(".txt")) {
    throw Error(fmt::format("'{}': there is no such file", path));
  }
  throw Error(
      fmt::format("'{}': there is no such file, and it is no JSON; for a description in "
                  "plain text: octet caption check --wrap-text 'a lovely cat', or octet "
                  "generate --prompt",
                  path));
}

// Whoever has a list of prompts would get one picture of all.
void warn_of_lines(const CommonFlags& flags, const std::string& path, const std::string& text) {
  if (const Sentence warning = warning_of_lines(name_of(path), text); !warning.text().empty()) {
    say(flags, warning);
  }
}

void check_one(const CommonFlags& flags, const CaptionArguments& arguments) {
  check_outputs(flags, {}, {arguments.path});
  std::string text = text_of(arguments.path, arguments.wrap_text);
  if (arguments.wrap_text) {
    warn_of_lines(flags, arguments.path, text);
    text = wrap_plain_text(text);
  }
  const CaptionReport found = said_to_users(check_caption(text), flags);
  const CaptionReport report = arguments.any_caption ? without_errors(found) : found;
  const std::string lines = to_text(report, detail_of(flags));
  const std::string name = name_of(arguments.path);

  // The repaired caption is the result of --fix and nothing else is on standard output.
  if (arguments.fix || arguments.wrap_text) {
    const bool mended = !report.canonical.empty();
    if (!mended || !flags.quiet) std::fputs(lines.c_str(), stderr);
    // In JSON an escape says the same, and moves no cursor.
    const bool is_shown = ::isatty(STDOUT_FILENO) == 1;
    const std::string canonical = is_shown ? printable(report.canonical) : report.canonical;
    show(flags, mended ? canonical + "\n" : "", json_of(flags, report));
    if (!mended) throw Error(closing_sentence(name, report));
    return;
  }
  std::string verdict;
  if (!flags.quiet && report.valid()) {
    verdict = fmt::format("{}: {}\n", printable(name),
                          found.valid() ? "a valid caption" : "can be run with --any-caption");
  }
  show(flags, lines + verdict, json_of(flags, report));
  if (!report.valid()) throw Error(closing_sentence(name, report));
}

}  // namespace

void add_caption(CLI::App& program, CommonFlags& flags) {
  CLI::App* caption = program.add_subcommand("caption", "Check and repair JSON captions");
  caption->require_subcommand(1);
  CLI::App& command =
      add_command(*caption, flags, "check",
                  "Check a caption against the model's schema; exit code 1 if it has errors");
  const auto arguments = std::make_shared<CaptionArguments>();
  add_value(command, "file", "FILE", arguments->path,
            "A JSON caption: a file, - for standard input, or the JSON itself")
      ->required();
  command.add_flag("--fix", arguments->fix,
                   "Print the caption as passed to the model: keys in order, compact, literal "
                   "UTF-8, colors in upper case");
  command.add_flag("--wrap-text", arguments->wrap_text,
                   "The file is plain text: print it wrapped into a caption");
  command.add_flag("--any-caption", arguments->any_caption,
                   "Treat errors as warnings, like --any-caption of generate");
  set_examples(command, {"octet caption check poster.json",
                         "octet caption check poster.json --fix > fixed.json",
                         "octet caption check words.txt --wrap-text > caption.json"});
  command.callback([&flags, arguments] {
    if (arguments->path.empty()) {
      throw CLI::ValidationError("the path is empty, expected a file or -");
    }
    check_one(flags, *arguments);
  });
}

}  // namespace octet::cli
