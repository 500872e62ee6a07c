#include "octet/demo.h"

#include <algorithm>
#include <filesystem>

#include "api/boundary.h"
#include "api/demo_prompt/caption.h"
#include "base/env.h"
#include "base/error.h"
#include "base/own_file.h"
#include "base/regular_file.h"
#include "octet/caption.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDemoCaption = "demo.json";
constexpr const char* kDemoWords = "words.json";

bool holds_model(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder, ignored) && is_file_there((folder / "model_index.json").string());
}

bool lies_in(const fs::path& file, const fs::path& folder) {
  const auto [end, ignored] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return end == folder.end();
}

// Where it may be when nobody names it. The first two are from the folder of programs and from that
// of libraries to the installed data.
std::vector<fs::path> usual_places() {
  std::vector<fs::path> places;
  const auto own = own_file();
  if (!own) return places;
  for (const char* data : {OCTET_DATA_FROM_PROGRAMS, OCTET_DATA_FROM_LIBRARIES}) {
    const fs::path place = (own->parent_path() / data / "demo").lexically_normal();
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
  }
  std::error_code ignored;
  if (lies_in(*own, fs::weakly_canonical(OCTET_BUILD_FOLDER, ignored))) {
    places.push_back(fs::path(OCTET_SOURCE_FOLDER) / "models" / "demo");
  }
  return places;
}

std::string find_demo_model() {
  if (const auto named = env::demo_model()) {
    check(holds_model(*named),
          "OCTET_DEMO_MODEL: is {}, where there is no model_index.json; expected the folder of the "
          "demo's model",
          named->string());
    return named->string();
  }
  std::string tried;
  for (const fs::path& place : usual_places()) {
    if (holds_model(place)) return place.string();
    tried += (tried.empty() ? "" : " or ") + place.string();
  }
  fail(
      "demo: its model was not found, expected a model_index.json in {}; set OCTET_DEMO_MODEL to "
      "the folder that contains it",
      tried.empty() ? "share/octet/demo of the installation" : tried);
}

}  // namespace

GenerateRequest demo_request(const std::string& caption) try {
  GenerateRequest request;
  request.model.model = find_demo_model();
  request.picture.caption = caption;
  if (caption.empty()) {
    const std::string file = (fs::path(request.model.model) / kDemoCaption).string();
    request.picture.caption = read_caption(file);
    request.picture.caption_name = file;
  }
  request.picture.seed = kDemoSeed;
  return request;
} catch (...) {
  api::rethrow_as_error();
}

// What is wrong with a text by itself is found by wrapping it.
std::string demo_caption(const std::string& text) try {
  const std::string wrapped = wrap_plain_text(text);
  const std::string words = (fs::path(find_demo_model()) / kDemoWords).string();
  return is_file_there(words) ? demo::caption_from_text(text, demo::read_words(words)) : wrapped;
} catch (...) {
  api::rethrow_as_error();
}

}  // namespace octet
