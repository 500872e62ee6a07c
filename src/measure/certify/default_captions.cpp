// The captions of a certificate for which none were given.
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/folder.h"
#include "formats/boundary.h"
#include "hub/cache.h"
#include "models/family.h"
#include "octet/caption.h"
#include "octet/tools/certify.h"
#include "octet_captions.h"

namespace octet {
namespace {

constexpr size_t kMostCaptions = 8;

std::vector<std::string> caption_files(const std::filesystem::path& folder,
                                       std::string_view suffix) {
  std::vector<std::string> files;
  std::error_code error;
  for (const std::string& name : names_in(folder.string(), error)) {
    const std::filesystem::path path = folder / name;
    if (path.extension() == suffix) files.push_back(path.string());
  }
  const bool is_none =
      error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
  check(!error || is_none, "{}: cannot be read: {}", folder.string(), error.message());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<CaptionText> default_captions(const std::string& model) try {
  const std::string path = hub::find_model(model);
  const std::vector<std::string> files = caption_files(std::filesystem::path(path) / "captions",
                                                       models::family_of(path).prompt_suffix);
  std::vector<CaptionText> captions;
  const size_t count = std::min(files.size(), kMostCaptions);
  for (size_t i = 0; i < count; ++i) {
    const std::string& file = files[i * files.size() / count];
    captions.push_back({.name = std::filesystem::path(file).stem().string(),
                        .where = file,
                        .text = read_caption(file),
                        .is_default = true});
  }
  if (!captions.empty()) return captions;
  for (const auto& bundled : kBundledCaptions) {
    captions.push_back(
        {.name = bundled.name, .where = bundled.name, .text = bundled.text, .is_default = true});
  }
  return captions;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
