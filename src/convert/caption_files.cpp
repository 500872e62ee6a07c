#include "convert/caption_files.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/text.h"
#include "models/ideogram4/caption.h"

namespace octet::convert {
namespace {

namespace fs = std::filesystem;

// What `reader` makes of a file's text.
template <class Reader>
auto read_text(const std::string& path, const Reader& reader) {
  return MappedFile(path).read([&](std::span<const std::byte> bytes) {
    return reader(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  });
}

std::string read_caption(std::string_view text, const std::string& what, bool any) {
  std::string caption = ideogram4::caption_for_model(text, what, any);
  ideogram4::log_caption_warnings(text, what, any);
  return caption;
}

std::vector<std::string> captions_in_lines(std::string_view rest, const std::string& path,
                                           bool any) {
  std::vector<std::string> captions;
  for (int64_t line = 1; !rest.empty(); ++line) {
    const std::string_view text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(text.size() + 1, rest.size()));
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    captions.push_back(read_caption(text, fmt::format("{}, line {}", path, line), any));
  }
  check(!captions.empty(), "{}: has no captions, expected one in each line", path);
  return captions;
}

std::vector<std::string> json_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".json") files.push_back(it->path().string());
  }
  check(!error, "{}: cannot be read: {}", folder, error.message());
  check(!files.empty(), "{}: has no files that end with .json, expected captions", folder);
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<std::string> read_captions(const std::vector<std::string>& paths, bool any) {
  std::vector<std::string> captions;
  const auto read_one = [&](const std::string& path) {
    captions.push_back(
        read_text(path, [&](std::string_view text) { return read_caption(text, path, any); }));
  };
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      for (const std::string& file : json_files(path)) read_one(file);
    } else if (path.ends_with(".jsonl")) {
      const auto found = read_text(
          path, [&](std::string_view text) { return captions_in_lines(text, path, any); });
      captions.insert(captions.end(), found.begin(), found.end());
    } else {
      read_one(path);
    }
  }
  check(!captions.empty(), "captions: no file was named, expected one or more");
  return captions;
}

}  // namespace octet::convert
