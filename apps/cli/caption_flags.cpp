#include "caption_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "caption_rows.h"
#include "octet/caption.h"
#include "octet/error.h"
#include "octet/tools/text.h"
#include "output.h"

namespace octet::cli {
namespace {

namespace fs = std::filesystem;

bool is_json(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && text[first] == '{';
}

// One word of the command line, as it was given.
struct GivenCaption {
  bool is_prompt = false;
  std::string text;
};

// Each option alone keeps its order; the command knows that of both.
std::vector<GivenCaption> in_order(const CaptionWords& words) {
  std::vector<GivenCaption> given;
  size_t captions = 0, prompts = 0;
  for (const CLI::Option* option : words.command->parse_order()) {
    if (option->check_lname("caption")) given.push_back({false, words.captions[captions++]});
    if (option->check_lname("prompt")) given.push_back({true, words.prompts[prompts++]});
  }
  return given;
}

void check_given(const std::vector<GivenCaption>& given) {
  if (given.empty()) throw CLI::ValidationError("--caption FILE or --prompt TEXT is missing");
  int inputs = 0;
  for (const GivenCaption& each : given) {
    if (each.text.empty()) {
      throw CLI::ValidationError(each.is_prompt ? "--prompt is empty, expected a description"
                                                : "--caption is empty, expected a file or -");
    }
    if (!each.is_prompt && each.text == "-" && ++inputs > 1) {
      throw CLI::ValidationError("--caption - was given twice, but standard input is read once");
    }
  }
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// What is missing, or which may not be looked at, is left to the reader to complain about.
bool is_there(const std::string& path) {
  std::error_code error;
  return path == "-" || fs::exists(path, error) || error == std::errc::permission_denied;
}

// Reads the words of one command line into a list.
class CaptionReader {
 public:
  CaptionReader(bool wrap_text, bool is_list, const CaptionOfText& caption_of_text)
      : wrap_text_(wrap_text), is_list_(is_list), caption_of_text_(caption_of_text) {}

  void read(const GivenCaption& given) {
    if (given.is_prompt) {
      const std::string name = numbered("prompt");
      // A caption instead of plain text, as other programs take it.
      add(name, is_list_ ? name : "the prompt",
          [&] { return is_json(given.text) ? given.text : caption_of_text_(given.text); });
    } else if (is_list_ && is_folder(given.text)) {
      read_folder(given.text);
    } else if (!is_there(given.text) && is_json(given.text)) {
      const std::string name = numbered("caption");
      add(name, is_list_ ? name : "the caption", [&] { return given.text; });
    } else if (is_list_ && is_row_file(given.text)) {
      read_rows(given.text);
    } else {
      read_file(given.text);
    }
  }

  std::vector<NamedCaption> captions() { return std::move(captions_); }

 private:
  // An error belongs to one caption of a list, and ends a command that has no list.
  template <class Read>
  void add(const std::string& name, const std::string& where, const Read& read) {
    NamedCaption caption{.name = name, .where = where};
    try {
      caption.text = read();
    } catch (const Error& error) {
      if (!is_list_) throw;
      caption.error = naming(where, error.sentence());
    }
    captions_.push_back(std::move(caption));
  }

  void refuse(const std::string& path, const std::string& why) {
    add(fs::path(path).stem().string(), path,
        [&]() -> std::string { throw Error(fmt::format("{}: {}", path, why)); });
  }

  void read_file(const std::string& path) {
    const bool is_input = path == "-";
    Sentence warning;
    add(is_input ? "stdin" : fs::path(path).stem().string(), is_input ? "standard input" : path,
        [&] {
          if (!is_there(path)) {
            throw Error(fmt::format(
                "'{}': there is no such file; --caption takes a file with JSON, and --prompt the "
                "description itself",
                path));
          }
          const std::string text = octet::read_caption(path);
          if (wrap_text_) warning = warning_of_lines(is_input ? "standard input" : path, text);
          return wrapped(text);
        });
    captions_.back().warning = warning;
  }

  void read_folder(const std::string& folder) {
    std::vector<std::string> files;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      if (it->path().extension() == ".json") files.push_back(it->path().string());
    }
    if (error || files.empty()) {
      refuse(folder, error ? "cannot be read: " + error.message()
                           : "contains no .json files, expected captions");
    }
    std::sort(files.begin(), files.end());
    for (const std::string& file : files) read_file(file);
  }

  void read_rows(const std::string& path) {
    std::vector<CaptionRow> rows;
    try {
      rows = read_caption_rows(path);
    } catch (const Error& error) {
      add(fs::path(path).stem().string(), path, [&]() -> std::string { throw error; });
    }
    for (const CaptionRow& row : rows) {
      add(row.name, row.where, [&] {
        if (!row.error.empty()) throw Error(row.error);
        return row.is_prompt ? caption_of_text_(row.text) : wrapped(row.text);
      });
      captions_.back().seed = row.seed;
      captions_.back().size = row.size;
    }
  }

  std::string wrapped(const std::string& text) const {
    return wrap_text_ ? caption_of_text_(text) : text;
  }

  // "prompt-2"
  std::string numbered(const std::string& kind) {
    return fmt::format("{}-{}", kind, ++numbers_[kind]);
  }

  bool wrap_text_, is_list_;
  const CaptionOfText& caption_of_text_;
  std::map<std::string, int> numbers_;
  std::vector<NamedCaption> captions_;
};

}  // namespace

void add_caption_flags(CLI::App& command, CaptionWords& words) {
  words.command = &command;
  add_value(command, "--caption", "FILE|FOLDER", words.captions,
            "JSON captions: a file, a folder of .json files, a .jsonl or .csv file with one per "
            "row, - for stdin, or the JSON itself; may be repeated")
      ->allow_extra_args(false);
  add_value(command, "-p,--prompt", "TEXT", words.prompts,
            "Plain text, wrapped into a caption; may be repeated")
      ->allow_extra_args(false);
  command.add_flag("--wrap-text", words.wrap_text, "The captions are plain text: wrap them");
}

Sentence warning_of_lines(const std::string& where, const std::string& text) {
  size_t lines = 0;
  std::istringstream stream(text);
  stream.exceptions(std::ios::badbit);  // without memory it would just end
  for (std::string line; std::getline(stream, line);) {
    if (line.find_first_not_of(" \t\r") != line.npos) ++lines;
  }
  if (lines < 2) return {};
  return fmt::format(
      "warning: {}: its {} lines become one caption; a picture for each takes a "
      ".jsonl or .csv list as --caption, or a --prompt for each",
      short_path(where), lines);
}

void say_warnings(const CommonFlags& flags, const Captions& captions) {
  for (const NamedCaption& caption : captions.all) {
    if (!caption.warning.text().empty()) say(flags, caption.warning);
  }
}

Sentence naming(const std::string& where, const Sentence& sentence) {
  const std::string shorter = short_path(where);
  for (const std::string& name : {where, shorter}) {
    if (sentence.text().find(name) != std::string::npos) return sentence;
  }
  std::vector<Sentence::Segment> segments = sentence.segments();
  segments.insert(segments.begin(), {shorter + ": "});
  return Sentence(std::move(segments));
}

bool are_given(const CaptionWords& words) {
  return !words.captions.empty() || !words.prompts.empty();
}

Captions read_captions(const CaptionWords& words, const CaptionOfText& caption_of_text) {
  const std::vector<GivenCaption> given = in_order(words);
  check_given(given);
  const GivenCaption& first = given.front();
  const bool is_list_file =
      is_folder(first.text) || (is_row_file(first.text) && is_there(first.text));
  Captions captions;
  captions.is_list = given.size() > 1 || (!first.is_prompt && is_list_file);
  CaptionReader reader(words.wrap_text, captions.is_list, caption_of_text);
  for (const GivenCaption& each : given) reader.read(each);
  captions.all = reader.captions();
  return captions;
}

std::vector<CaptionText> texts_of(const Captions& captions) {
  std::vector<CaptionText> texts;
  for (const NamedCaption& caption : captions.all) {
    if (!caption.error.empty()) throw Error(caption.error);
    if (caption.seed || caption.size) {
      throw Error(caption.where +
                  ": has a seed or a size of its own, which only octet generate takes; leave them "
                  "out and give --seed and --size");
    }
    texts.push_back({.name = caption.name, .where = caption.where, .text = caption.text});
  }
  return texts;
}

std::string title_of(const Captions& captions, size_t caption) {
  if (!captions.is_list) return "";
  return fmt::format("{}/{} {}: ", caption + 1, captions.all.size(),
                     printable(captions.all[caption].name));
}

}  // namespace octet::cli
