#include "picture_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

#include "octet/error.h"
#include "octet/picture_files.h"
#include "usage_errors.h"

namespace octet::cli {
namespace {

const std::vector<std::string> kPlaceholders = {"{name}", "{index}", "{image}", "{seed}"};

constexpr int kUsualQuality = 95;

using Values = std::map<std::string, std::string, std::less<>>;

// The placeholders of a pattern: lower-case words in braces. Other braces are part of a name.
std::set<std::string, std::less<>> placeholders_in(std::string_view pattern) {
  std::set<std::string, std::less<>> found;
  for (size_t open = pattern.find('{'); open != pattern.npos; open = pattern.find('{', open + 1)) {
    size_t end = open + 1;
    while (end < pattern.size() && std::islower(static_cast<unsigned char>(pattern[end]))) ++end;
    if (end == open + 1 || end == pattern.size() || pattern[end] != '}') continue;
    found.emplace(pattern.substr(open, end + 1 - open));
  }
  return found;
}

void check_placeholders(const std::string& pattern, const std::string& flag, bool has_seed) {
  for (const std::string& placeholder : placeholders_in(pattern)) {
    if (std::find(kPlaceholders.begin(), kPlaceholders.end(), placeholder) == kPlaceholders.end()) {
      throw CLI::ValidationError(
          fmt::format("{} has {}, expected {}", flag, placeholder, list_of(kPlaceholders)));
    }
    if (placeholder == "{seed}" && !has_seed) {
      throw CLI::ValidationError(flag + " has {seed}, but with --noise there is none");
    }
  }
}

// In one pass: a name may hold what looks like a placeholder.
std::string filled(std::string_view pattern, const Values& values) {
  std::string path;
  while (!pattern.empty()) {
    const size_t close = pattern.front() == '{' ? pattern.find('}') : pattern.npos;
    const auto value =
        close == pattern.npos ? values.end() : values.find(pattern.substr(0, close + 1));
    if (value == values.end()) {
      path += pattern.front();
      pattern.remove_prefix(1);
    } else {
      path += value->second;
      pattern.remove_prefix(close + 1);
    }
  }
  return path;
}

// Part of a file's name: no way to another folder, nothing that drives a terminal, not hidden.
std::string safe_name(std::string name) {
  for (char& c : name) {
    if (c == '/' || c == '\\' || std::iscntrl(static_cast<unsigned char>(c))) c = '_';
  }
  if (name.empty() || name.front() == '.') name.insert(0, "_");
  return name;
}

std::string with_suffix(const std::string& path, const std::string& suffix) {
  const std::filesystem::path whole(path);
  const std::string name =
      fmt::format("{}-{}{}", whole.stem().string(), suffix, whole.extension().string());
  return (whole.parent_path() / name).string();
}

// What a user typed, with .png where no format is named. A folder, and a format that is not
// written, are wrong usage; the name of a pipe or a device stays as it is.
std::string picture_path_from(const std::string& given) {
  if (given.empty()) throw CLI::ValidationError("the path is empty, expected a picture's file");
  if (given == "-") {
    throw CLI::ValidationError(
        "'-' is no file, expected a picture's file; standard output is /dev/stdout");
  }
  std::error_code error;
  const auto status = std::filesystem::status(given, error);
  if (given.back() == '/' || std::filesystem::is_directory(status)) {
    throw CLI::ValidationError(
        fmt::format("'{}' is a folder, expected a picture's file, such as '{}picture.png'", given,
                    given.back() == '/' ? given : given + "/"));
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) return given;
  try {
    check_picture_name(given);
  } catch (const InvalidRequest& wrong) {
    throw CLI::ValidationError(wrong.what());
  }
  return has_picture_name(given) ? given : given + ".png";
}

}  // namespace

CLI::Option* add_picture_path(CLI::App& command, const std::string& flag, std::string& path,
                              const std::string& help) {
  const auto read = [&path](const std::string& given) { path = picture_path_from(given); };
  return add_text(command, flag, "FILE", help, read)->default_str(path);
}

void add_quality(CLI::App& command, std::optional<int>& quality) {
  const auto read = [&quality](const std::string& text) {
    quality = static_cast<int>(whole_number_from("--quality", text, 1, 100));
  };
  add_text(command, "--quality", "INT",
           "Quality of a JPEG or WebP file, 1 to 100; a WebP of 100 loses nothing", read)
      ->default_str(std::to_string(kUsualQuality));
}

int quality_for(const std::string& out, const std::optional<int>& quality) {
  if (quality && !is_lossy_name(out)) {
    throw CLI::ValidationError(
        "--quality is for JPEG and WebP, and the picture is a PNG; name it .jpg or .webp, or leave "
        "--quality out");
  }
  return quality.value_or(kUsualQuality);
}

PicturePaths::PicturePaths(const std::string& pattern, const Pictures& pictures)
    : images_(pictures.images) {
  const bool has_seeds = pictures.captions.empty() || pictures.captions.front().seed.has_value();
  check_placeholders(pattern, pictures.flag, has_seeds);
  const auto found = placeholders_in(pattern);
  const auto has = [&](std::string_view placeholder) { return found.contains(placeholder); };
  const bool lacks_name = pictures.is_list && !has("{name}") && !has("{index}");
  const bool lacks_image = !has("{image}") && !has("{index}") && !has("{seed}");
  std::map<std::string, std::string> taken;  // by which caption
  for (const Pictures::Caption& caption : pictures.captions) {
    const std::string name = safe_name(caption.name);
    for (int image = 0; image < images_; ++image) {
      Values values = {{"{name}", name},
                       {"{index}", std::to_string(paths_.size() + 1)},
                       {"{image}", std::to_string(image + 1)}};
      if (caption.seed) {
        values["{seed}"] = std::to_string(*caption.seed + static_cast<uint64_t>(image));
      }
      std::string path = filled(pattern, values);
      if (lacks_name) path = with_suffix(path, name);
      if (lacks_image && images_ > 1) path = with_suffix(path, std::to_string(image + 1));
      if (const auto [other, is_new] = taken.emplace(path, caption.name); !is_new) {
        throw CLI::ValidationError(
            fmt::format("two pictures would be {}, those of the captions {} and {}; put "
                        "{{index}} into {}",
                        path, other->second, caption.name, pictures.flag));
      }
      paths_.push_back(std::move(path));
    }
  }
}

PicturePaths::Pictures pictures_of(const Captions& captions, const PictureRequest& request,
                                   const std::string& flag) {
  PicturePaths::Pictures pictures{
      .is_list = captions.is_list, .images = request.images, .flag = flag};
  for (const NamedCaption& caption : captions.all) {
    auto& made = pictures.captions.emplace_back();
    made.name = caption.name;
    if (request.noise.empty()) made.seed = caption.seed.value_or(request.seed);
  }
  return pictures;
}

}  // namespace octet::cli
