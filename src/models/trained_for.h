// What a model was trained for, where its folder says so: captions that leave it are warned about.
//
//   octet_trained_for.json
//   {"summary": "flat pictures of shapes and words", "objects": ["circle", "house"],
//    "characters": "abc...", "most_letters": 8, "most_elements": 4, "line_breaks": false,
//    "boxes": true, "sizes": [[256, 256]], "plain_text": "octet demo --prompt TEXT",
//    "words": ["a", "red", "background"]}
//
// All but the summary may be left out: the model then knows no such limit.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "octet/picture.h"

namespace octet::models {

inline constexpr std::string_view kTrainedForFile = "octet_trained_for.json";

struct TrainedFor {
  std::string summary;                       // completes "it was trained on"
  std::vector<std::string> objects;          // one of which each object is described as; lower case
  std::set<std::string, std::less<>> words;  // besides, of descriptions; none: any
  std::string characters;                    // ASCII, of texts to paint; empty: any
  int most_letters = 0;                      // of such a text; 0: any number, here and below
  int most_elements = 0;
  bool line_breaks = true;         // texts may have some
  bool boxes = false;              // each element needs one
  std::vector<PictureSize> sizes;  // empty: any
  std::string plain_text;          // what makes captions of plain text; empty: it takes that

  bool knows(std::string_view description) const;  // it names one of the objects
  // Of a description, those that the model has never seen; numbers and #RRGGBB apart.
  std::vector<std::string> unknown_words(std::string_view description) const;
};

// Of the first of these places that is a folder with such a file. Throws Error for one that is
// wrong in anything.
std::optional<TrainedFor> trained_for(std::initializer_list<std::string> models);

}  // namespace octet::models
