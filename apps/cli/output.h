// What the commands share: tables, sizes, results as text and as JSON.
//
// Nothing here throws because standard output is full: what could not be written is noticed once,
// by main(), when the command has finished.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "flags.h"
#include "octet/tools/progress.h"
#include "octet/sentence.h"

namespace octet::cli {

// Columns as wide as their longest cell; the first `left` columns are aligned left, the rest right.
class Table {
 public:
  Table(std::vector<std::string> header, size_t left);
  void add(std::vector<std::string> row);
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  size_t left_;
};

// A bar of a chart in text; a share of 1 is its full length, and nothing is too short to be seen.
std::string bar(double share);

std::string human_bytes(uint64_t bytes);  // "9.58 GB"

std::string counted(size_t count, const std::string& thing);  // "1 picture", "8 pictures"

// A measured number for a table, never rounded to nothing: "0.042", "9.42", "41.9", "1284"; "-" for
// 0, which stands for what was not measured.
std::string short_number(double value);
std::string short_percent(double share);  // "0.42 %", "87 %"

// The same for JSON: null for what was not measured.
nlohmann::ordered_json known(double value);
nlohmann::ordered_json known(const std::string& text);

// A progress bar of the command's work, or nothing for --quiet. It begins with the first report, so
// that a device that is absent gives its sentence alone.
class ProgressReports {
 public:
  ProgressReports(const CommonFlags& flags, std::string title, std::string unit);
  void operator()(int done, int total);

 private:
  bool quiet_;
  std::string title_;
  std::string unit_;
  std::optional<Progress> progress_;
};

// A bar for each phase of a command, one after the other.
class PhaseReports {
 public:
  PhaseReports(const CommonFlags& flags, std::string title)
      : flags_(flags), title_(std::move(title)) {}
  void operator()(const std::string& phase, int done, int total);

 private:
  const CommonFlags& flags_;
  std::string title_, phase_;
  std::optional<ProgressReports> progress_;
};

// A sentence on standard error, with flags for the fields that it names.
void say(const CommonFlags& flags, const Sentence& sentence);

// The result of a command: `text` on standard output, or the JSON there for `--json -`, with the
// name and version of its schema as the first field (docs/json.md). A JSON file
// is written after the text, so that a full disk does not cost the user the result as well.
void show(const CommonFlags& flags, const std::string& text, const nlohmann::ordered_json& json);

}  // namespace octet::cli
