// Where pictures are written.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "caption_flags.h"
#include "octet/picture.h"

namespace octet::cli {

// A flag such as -o: .png is added to a name without a picture's ending; the endings of formats
// that are not written are wrong usage.
CLI::Option* add_picture_path(CLI::App& command, const std::string& flag, std::string& path,
                              const std::string& help);

void add_quality(CLI::App& command, std::optional<int>& quality);

// What write_picture() takes; --quality with a PNG is wrong usage.
int quality_for(const std::string& out, const std::optional<int>& quality);

// Names by a pattern with {name}, {index}, {image} and {seed}. Captions that it does not tell apart
// get their names at the end, images of a caption their numbers.
class PicturePaths {
 public:
  struct Pictures {
    struct Caption {
      std::string name;
      std::optional<uint64_t> seed;  // of the first picture; none with noise
    };
    std::vector<Caption> captions;
    bool is_list = false;  // though it may have one caption
    int images = 1;        // of each
    std::string flag;      // that the pattern is from
  };

  // An unknown placeholder, and two pictures of the same name, are wrong usage.
  PicturePaths(const std::string& pattern, const Pictures& pictures);

  const std::string& of(size_t caption, int image) const {
    return paths_[caption * static_cast<size_t>(images_) + static_cast<size_t>(image)];
  }
  const std::vector<std::string>& all() const { return paths_; }

 private:
  int images_;
  std::vector<std::string> paths_;
};

// Those of a request for each of the captions.
PicturePaths::Pictures pictures_of(const Captions& captions, const PictureRequest& request,
                                   const std::string& flag);

}  // namespace octet::cli
