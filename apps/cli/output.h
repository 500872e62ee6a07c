// What the commands share: tables, sizes, JSON to a file or to standard output.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace octet::cli {

// Columns as wide as their longest cell; the first `left` columns are aligned left, the rest right.
class Table {
 public:
  Table(std::vector<std::string> header, size_t left);
  void add(std::vector<std::string> row);
  void print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  size_t left_;
};

// Text from a file, safe for a terminal: control characters become \xNN.
std::string printable(const std::string& text);

std::string human_bytes(uint64_t bytes);  // "9.58 GB"

// Writes to `where`: a path, or "-" for standard output.
void write_json(const nlohmann::ordered_json& json, const std::string& where);

}  // namespace octet::cli
