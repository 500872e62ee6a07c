#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "convert/calibrate.h"
#include "formats/text.h"

namespace octet::convert {
namespace {

namespace fs = std::filesystem;

template <class Use>
void read_text(const std::string& path, const Use& use) {
  MappedFile(path).read([&](std::span<const std::byte> bytes) {
    use(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    return true;  // what read() returns is not needed here
  });
}

std::vector<std::string> files_in(const std::string& folder, std::string_view suffix) {
  std::vector<std::string> files;
  std::error_code error;
  for (const std::string& name : names_in(folder, error)) {
    const fs::path path = fs::path(folder) / name;
    if (path.extension() == suffix) files.push_back(path.string());
  }
  check(!error, "{}: cannot be read: {}", folder, error.message());
  check(!files.empty(), "{}: contains no {} files, expected captions", folder, suffix);
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<std::string> read_captions(const models::Family& family,
                                       const std::vector<std::string>& paths, bool any) {
  std::vector<std::string> captions;
  const auto add = [&](std::string_view text, const std::string& what) {
    models::PromptText prompt = family.read_prompt(std::string(text), what, any);
    for (const Sentence& warning : prompt.warnings) log::warning("{}", warning);
    captions.push_back(std::move(prompt.text));
  };
  const auto add_file = [&](const std::string& path) {
    read_text(path, [&](std::string_view text) { add(text, path); });
  };
  const auto add_lines = [&](std::string_view rest, const std::string& path) {
    const size_t before = captions.size();
    for (int64_t line = 1; !rest.empty(); ++line) {
      const std::string_view text = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(text.size() + 1, rest.size()));
      if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      add(text, fmt::format("{}, line {}", path, line));
    }
    check(captions.size() > before, "{}: contains no captions, expected one per line", path);
  };
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      for (const std::string& file : files_in(path, family.prompt_suffix)) add_file(file);
    } else if (path.ends_with(".jsonl")) {
      read_text(path, [&](std::string_view text) { add_lines(text, path); });
    } else {
      add_file(path);
    }
  }
  check(!captions.empty(), "captions: no file was named, expected one or more");
  return captions;
}

}  // namespace octet::convert
