// What the commands share: tables, sizes, results as text and as JSON.
//
// Nothing here throws because standard output is full: what could not be written is noticed once,
// by main(), when the command has finished.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "flags.h"

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

std::string human_bytes(uint64_t bytes);  // "9.58 GB"

// Fails now where show() would fail to write the JSON file; called before the work.
void check_json_target(const CommonFlags& flags);

// The result of a command: `text` on standard output, or the JSON there for `--json -`. A JSON file
// is written after the text, so that a full disk does not cost the user the result as well.
void show(const CommonFlags& flags, const std::string& text, const nlohmann::ordered_json& json);

}  // namespace octet::cli
