#include "demo/demo.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "demo/scene.h"
#include "octet/caption.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDemoCaption = "demo.json";
constexpr const char* kDemoWords = "words.json";

bool holds_model(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "model_index.json", ignored);
}

bool lies_in(const fs::path& file, const fs::path& folder) {
  const auto [end, ignored] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return end == folder.end();
}

// Where it may be when the environment does not say. The installed data first.
std::vector<fs::path> usual_places() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (program.empty()) return {};
  std::vector<fs::path> places = {
      (program.parent_path() / OCTET_DATA_FROM_PROGRAMS / "demo").lexically_normal()};
  if (lies_in(program, fs::weakly_canonical(OCTET_BUILD_FOLDER, ignored))) {
    places.push_back(fs::path(OCTET_SOURCE_FOLDER) / "models" / "demo");
  }
  return places;
}

std::string find_demo_model() {
  if (const char* const named = std::getenv("OCTET_DEMO_MODEL"); named != nullptr && *named != 0) {
    if (holds_model(named)) return named;
    demo::refuse(
        "OCTET_DEMO_MODEL: is {}, where there is no model_index.json; expected the folder of the "
        "demo's model",
        named);
  }
  std::string tried;
  for (const fs::path& place : usual_places()) {
    if (holds_model(place)) return place.string();
    tried += (tried.empty() ? "" : " or ") + place.string();
  }
  demo::refuse(
      "demo: its model was not found, expected a model_index.json in {}; set OCTET_DEMO_MODEL to "
      "the folder that contains it",
      tried.empty() ? "share/octet/demo of the installation" : tried);
}

}  // namespace

GenerateRequest demo_request(const std::string& caption) {
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
}

// What is wrong with a text by itself is found by wrapping it.
DemoPrompt demo_prompt(const std::string& text) {
  const std::string wrapped = wrap_plain_text(text);
  const std::string words = (fs::path(find_demo_model()) / kDemoWords).string();
  std::error_code ignored;
  if (!fs::is_regular_file(words, ignored)) return {.caption = wrapped, .summary = text};
  demo::WrittenCaption written = demo::caption_from_text(text, demo::read_words(words));
  return {.caption = std::move(written.caption),
          .summary = std::move(written.summary),
          .left_out = std::move(written.left_out),
          .warnings = std::move(written.warnings)};
}

}  // namespace octet
