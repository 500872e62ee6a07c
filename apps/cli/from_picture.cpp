#include "from_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>
#include <utility>

#include "octet/error.h"
#include "octet/picture_files.h"
#include "octet/tools/text.h"
#include "output.h"

namespace octet::cli {
namespace {

// What a file says, by key.
class FileWords {
 public:
  FileWords(const std::string& path, const PictureInfo& info) : path_(path), info_(info) {}

  std::string of(const char* key) const {
    for (const auto& [each, text] : info_.metadata) {
      if (each == key) return text;
    }
    return "";
  }

  template <class Number>
  Number number(const char* key) const {
    return number_in<Number>(key, of(key));
  }

  std::vector<float> numbers(const char* key) const {
    std::vector<float> list;
    std::istringstream words(of(key));
    for (std::string word; std::getline(words, word, ',');) {
      list.push_back(number_in<float>(key, word));
    }
    return list;
  }

  // Leaves the value as it is where the file does not say.
  template <class Enum>
  void read(const char* key, Enum& value) const {
    const std::string word = of(key);
    if (word.empty()) return;
    const auto known = from_word<Enum>(word);
    if (!known) refuse(key, word);
    value = *known;
  }

  [[noreturn]] void refuse(const char* key, const std::string& text) const {
    throw Error(fmt::format("{}: its metadata has {} '{}', which this version does not know", path_,
                            key, text));
  }

 private:
  template <class Number>
  Number number_in(const char* key, const std::string& text) const {
    Number value = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, status] = std::from_chars(text.data(), end, value);
    if (status != std::errc() || stopped != end) refuse(key, text);
    return value;
  }

  const std::string& path_;
  const PictureInfo& info_;
};

// Returns the fields that it filled.
std::set<std::string> read_request(const FileWords& words, const CLI::App& command,
                                   PictureArguments& arguments) {
  const auto is_free = [&](const char* flag) { return command.count(flag) == 0; };
  std::set<std::string> fields;
  PictureRequest& picture = arguments.request.picture;
  ModelOptions& model = arguments.request.model;
  if (is_free("--negative")) {
    picture.negative = words.of("negative");
    fields.insert("negative");
  }
  const bool has_preset = is_free("--preset");
  if (has_preset) {
    picture.preset = words.of("preset");
    fields.insert("preset");
  }
  // Those of the preset that was given instead, otherwise.
  if (has_preset && is_free("--steps") && !words.of("steps").empty()) {
    picture.steps = words.number<int>("steps");
    if (picture.steps == 0) words.refuse("steps", "0");  // in a request it is the preset's number
    fields.insert("steps");
  }
  if (has_preset && is_free("--guidance") && words.of("guidance") != "preset") {
    picture.guidance = words.numbers("guidance");
    fields.insert("guidance");
  }
  if (is_free("--seed") && is_free("--noise")) {
    arguments.seed.seed = words.number<uint64_t>("seed");
  }
  if (is_free("--linears") && is_free("--path")) words.read("linears", model.linears);
  if (is_free("--text-encoder-linears")) {
    words.read("text_encoder_linears", model.text_encoder_linears);
  }
  if (is_free("--attention")) words.read("attention", model.attention);
  if (is_free("--dtype")) words.read("dtype", model.activations);
  if (is_free("--convention")) words.read("convention", model.convention);
  if (!arguments.size) fields.insert("size");
  return fields;
}

}  // namespace

FormerPicture take_from(const CommonFlags& flags, const std::string& path,
                        PictureArguments& arguments) {
  const PictureInfo info = read_picture_info(path);
  const FileWords words(path, info);
  if (words.of("caption").empty() || words.of("checkpoint").empty()) {
    throw Error(fmt::format(
        "{}: has no metadata of Octet, expected a picture that octet generate or demo wrote",
        path));
  }
  const std::string noise = words.of("noise");
  if (!noise.empty() && flags.app->count("--noise") == 0 && flags.app->count("--seed") == 0) {
    throw Error(fmt::format("{}: was made from the noise in '{}'; give that file as --noise", path,
                            printable(noise)));
  }
  std::set<std::string> fields = read_request(words, *flags.app, arguments);
  if (!arguments.size) {
    arguments.size = fmt::format("{}x{}", info.size.width, info.size.height);
  }
  const std::string loras = words.of("loras");
  if (!loras.empty() && loras != "none" && flags.app->count("--lora") == 0) {
    say(flags, fmt::format("warning: {}: was made with the LoRAs {}; without --lora the picture is "
                           "another",
                           path, loras));
  }
  FormerPicture former{
      .path = path, .checkpoint = words.of("checkpoint"), .fields = std::move(fields)};
  former.left_out = words.of(kLeftOut);
  former.caption.name = std::filesystem::path(path).stem().string();
  former.caption.where = path;
  former.caption.text = words.of("caption");
  return former;
}

}  // namespace octet::cli
