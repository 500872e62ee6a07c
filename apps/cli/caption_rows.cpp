#include "caption_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "formats/json_value.h"
#include "octet/error.h"
#include "octet/picture_files.h"
#include "octet/tools/text.h"
#include "usage_errors.h"

namespace octet::cli {
namespace {

constexpr uintmax_t kMostRowFileBytes = 256 << 20;
const std::vector<std::string> kColumns = {"caption", "prompt", "seed", "size",
                                           "width",   "height", "name"};

using RowJson = nlohmann::ordered_json;
// What a row says, by column: texts as they are, everything else as JSON text.
using RowCells = std::map<std::string, std::string, std::less<>>;

std::string read_whole(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::is_regular_file(status)) {
    throw Error(path +
                ": is a pipe, a device or a folder, expected a file; - reads one caption "
                "from standard input");
  }
  if (fs::file_size(path, error) > kMostRowFileBytes) {
    throw Error(fmt::format("{}: is longer than {} MB, expected a list of captions", path,
                            kMostRowFileBytes >> 20));
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text.exceptions(std::ios::badbit);  // without memory a stream would just end
  text << file.rdbuf();
  if (!file.is_open() || file.bad()) throw Error(path + ": cannot be read");
  return std::move(text).str();
}

uint64_t row_seed(const std::string& text) {
  uint64_t seed = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, status] = std::from_chars(text.data(), end, seed);
  if (status != std::errc() || stopped != end) {
    throw Error(fmt::format("seed is '{}', expected a whole number from 0 to {}", printable(text),
                            UINT64_MAX));
  }
  return seed;
}

PictureSize row_size(const RowCells& cells) {
  const auto cell = [&](const char* name) {
    const auto found = cells.find(name);
    return found == cells.end() ? std::string() : found->second;
  };
  const std::string size = cell("size"), width = cell("width"), height = cell("height");
  if (!size.empty() && width.empty() && height.empty()) return parse_size(size);
  if (!size.empty() || width.empty() || height.empty()) {
    throw Error("expected size, or width and height");
  }
  return parse_size(width + "x" + height);
}

// Throws Error for what is wrong with the cells.
void fill(CaptionRow& row, const RowCells& cells) {
  for (const auto& [name, text] : cells) {
    if (std::find(kColumns.begin(), kColumns.end(), name) != kColumns.end()) continue;
    throw Error(fmt::format("'{}' is not known, expected {}{}", printable(name), list_of(kColumns),
                            did_you_mean(name, kColumns)));
  }
  const bool has_caption = cells.contains("caption"), has_prompt = cells.contains("prompt");
  if (has_caption == has_prompt) {
    throw Error("has both caption and prompt or neither of them, expected one");
  }
  row.is_prompt = has_prompt;
  row.text = cells.find(has_prompt ? "prompt" : "caption")->second;
  if (const auto seed = cells.find("seed"); seed != cells.end()) row.seed = row_seed(seed->second);
  if (cells.contains("size") || cells.contains("width") || cells.contains("height")) {
    row.size = row_size(cells);
  }
  if (const auto name = cells.find("name"); name != cells.end()) row.name = name->second;
}

CaptionRow row_of(const std::string& path, int64_t line,
                  const std::function<void(CaptionRow&)>& read) {
  CaptionRow row{.name = fmt::format("line-{}", line),
                 .where = fmt::format("{}, line {}", path, line)};
  try {
    read(row);
  } catch (const Error& error) {
    row.error = fmt::format("{}: {}", row.where, error.what());
  }
  return row;
}

// A caption has other keys, so an object with one of these is a row.
bool is_row(const RowJson& json) {
  return json.is_object() && (json.contains("prompt") || json.contains("caption"));
}

// A key that an object has twice, also within a row's caption; readers would differ about which of
// the two counts.
class KeysTwice {
 public:
  bool operator()(int, RowJson::parse_event_t event, const RowJson& parsed) {
    using Event = RowJson::parse_event_t;
    if (event == Event::object_start) open_.emplace_back();
    if (event == Event::object_end) open_.pop_back();
    if (event == Event::key && !open_.back().insert(parsed.get<std::string>()).second && !found_) {
      found_ = parsed.get<std::string>();
    }
    return true;
  }
  void check() const {
    if (!found_) return;
    throw Error(fmt::format("has the key '{}' twice", printable(*found_)));
  }

 private:
  std::vector<std::set<std::string>> open_;
  std::optional<std::string> found_;
};

RowCells cells_of(const RowJson& json) {
  RowCells cells;
  for (const auto& [name, value] : json.items()) {
    if (value.is_null()) continue;
    if (name == "prompt" && !value.is_string()) {
      throw Error(fmt::format("prompt is {}, expected text in quotes", printable(value.dump())));
    }
    cells[name] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return cells;
}

std::vector<CaptionRow> read_jsonl(const std::string& path, const std::string& text) {
  std::vector<CaptionRow> rows;
  std::istringstream lines(text);
  lines.exceptions(std::ios::badbit);  // as above
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (line.back() == '\r') line.pop_back();
    rows.push_back(row_of(path, number, [&](CaptionRow& row) {
      // A line that is no JSON may be plain text, or is told by whoever reads captions.
      KeysTwice twice;
      const RowJson json = RowJson::parse(line, std::ref(twice), /*allow_exceptions=*/false);
      if (is_row(json)) {
        twice.check();
        fill(row, cells_of(json));
      } else {
        row.text = line;
      }
    }));
  }
  return rows;
}

// The rows of comma-separated values (RFC 4180): a cell in quotes may hold commas, line breaks and
// doubled quotes.
class CsvReader {
 public:
  CsvReader(const std::string& path, std::string_view text) : path_(path), rest_(text) {
    if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);  // a byte order mark
  }

  // False at the end. `line` is that of its beginning. Throws Error for a quote without its second.
  bool next(std::vector<std::string>& cells, int64_t& line) {
    cells.assign(1, "");
    if (rest_.empty()) return false;
    line = line_;
    bool in_quotes = false;
    while (!rest_.empty()) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '\n') ++line_;
      if (in_quotes) {
        if (c != '"') {
          cells.back() += c;
        } else if (rest_.starts_with('"')) {
          cells.back() += c;
          rest_.remove_prefix(1);
        } else {
          in_quotes = false;
        }
      } else if (c == '"' && cells.back().empty()) {
        in_quotes = true;
      } else if (c == ',') {
        cells.emplace_back();
      } else if (c == '\n') {
        return true;
      } else if (c != '\r') {
        cells.back() += c;
      }
    }
    if (in_quotes) {
      throw Error(fmt::format("{}, line {}: has a quote that is not closed", path_, line));
    }
    return true;
  }

 private:
  const std::string& path_;
  std::string_view rest_;
  int64_t line_ = 1;
};

std::vector<CaptionRow> read_csv(const std::string& path, const std::string& text) {
  std::vector<CaptionRow> rows;
  CsvReader reader(path, text);
  std::vector<std::string> columns, cells;
  int64_t line = 0;
  if (!reader.next(columns, line)) return rows;
  for (const std::string& column : columns) {
    if (std::count(columns.begin(), columns.end(), column) > 1) {
      throw Error(
          fmt::format("{}: its first line has the column '{}' twice", path, printable(column)));
    }
    if (std::find(kColumns.begin(), kColumns.end(), column) != kColumns.end()) continue;
    const bool is_apart = column.find_first_of(";\t") != std::string::npos;
    throw Error(
        fmt::format("{}: its first line has the column '{}', expected {}{}", path,
                    printable(column), list_of(kColumns),
                    is_apart ? ", with commas between them" : did_you_mean(column, kColumns)));
  }
  while (reader.next(cells, line)) {
    if (cells.size() == 1 && cells.front().empty()) continue;  // a blank line
    rows.push_back(row_of(path, line, [&](CaptionRow& row) {
      if (cells.size() != columns.size()) {
        throw Error(fmt::format("has {} cells, expected {} as in the first line", cells.size(),
                                columns.size()));
      }
      RowCells named;
      for (size_t i = 0; i < cells.size(); ++i) {
        if (!cells[i].empty()) named[columns[i]] = cells[i];
      }
      fill(row, named);
    }));
  }
  return rows;
}

}  // namespace

bool is_row_file(const std::string& path) {
  return path.ends_with(".jsonl") || path.ends_with(".csv");
}

std::vector<CaptionRow> read_caption_rows(const std::string& path) {
  const std::string text = read_whole(path);
  const bool is_csv = path.ends_with(".csv");
  std::vector<CaptionRow> rows = is_csv ? read_csv(path, text) : read_jsonl(path, text);
  if (rows.empty()) {
    throw Error(fmt::format("{}: contains no captions, expected one per {}", path,
                            is_csv ? "row, below a line with the columns' names" : "line"));
  }
  return rows;
}

}  // namespace octet::cli
