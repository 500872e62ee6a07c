// --caption and --prompt: the user's words, and the captions they become.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "flags.h"
#include "octet/caption.h"
#include "octet/picture.h"
#include "octet/sentence.h"
#include "octet/tools/compare.h"

namespace octet::cli {

struct CaptionWords {
  std::vector<std::string> captions;  // files, folders, -, or the JSON itself
  std::vector<std::string> prompts;   // plain text
  bool wrap_text = false;
  const CLI::App* command = nullptr;  // knows the order in which they came
};

void add_caption_flags(CLI::App& command, CaptionWords& words);

struct NamedCaption {
  std::string name;   // for files: "poster", "prompt-1", "line-3"
  std::string where;  // begins a sentence about it: "poster.json", "list.jsonl, line 3"
  std::string text;   // JSON
  Sentence error;     // why there is no text
  Sentence warning;   // about what the text was made of; empty: none
  // Of this caption alone, instead of those of the flags.
  std::optional<uint64_t> seed = {};
  std::optional<PictureSize> size = {};
};

struct Captions {
  std::vector<NamedCaption> all;  // in the order given
  // They came from a list that may have any length: what is wrong with one does not concern the
  // others, and pictures are named after their captions.
  bool is_list = false;
};

// Of a plain text of several lines, which becomes one caption; empty for others.
Sentence warning_of_lines(const std::string& where, const std::string& text);

// The sentence, with where the caption is before it unless it says so.
Sentence naming(const std::string& where, const Sentence& sentence);

bool are_given(const CaptionWords& words);

// Makes a caption of plain text.
using CaptionOfText = std::function<std::string(const std::string&)>;

// Says the warnings of those that have one.
void say_warnings(const CommonFlags& flags, const Captions& captions);

// Reads them. Throws Error where one that is not of a list cannot be read.
Captions read_captions(const CaptionWords& words,
                       const CaptionOfText& caption_of_text = wrap_plain_text);

// Captions that succeed or fail together. Throws Error for one that cannot be read.
std::vector<CaptionText> texts_of(const Captions& captions);

// "2/8 poster: ", for the progress of a list; empty for a single caption.
std::string title_of(const Captions& captions, size_t caption);

}  // namespace octet::cli
