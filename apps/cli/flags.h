// Flags that several commands take, and how the words of a user become values.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/model_options.h"
#include "octet/tools/shapes.h"
#include "octet/words.h"

namespace octet::cli {

struct CommonFlags {
  std::string command;            // that was chosen: "bench gemm"
  const CLI::App* app = nullptr;  // its definition
  std::string device = "auto";
  std::string json;  // path, "-" or empty
  int threads = 0;   // 0: one per physical core
  bool verbose = false;
  bool quiet = false;
};

// A command below `parent`, with --json, -v and -q.
CLI::App& add_command(CLI::App& parent, CommonFlags& flags, const std::string& name,
                      const std::string& summary);

// The same with --device and --threads, for one that computes.
CLI::App& add_computing_command(CLI::App& parent, CommonFlags& flags, const std::string& name,
                                const std::string& summary);

// Options that all commands share stand last in the help, under this heading.
inline constexpr const char* kCommonOptions = "Common options";

// Puts options under a heading of their own; others stand under "Options".
void set_group(CLI::App& command, const std::string& heading,
               const std::vector<std::string>& options);

// The last lines of a command's help: commands that work as they stand.
void set_examples(CLI::App& command, const std::vector<std::string>& lines);

// An option; the help shows `kind` in the place of its value.
template <class Value>
CLI::Option* add_value(CLI::App& command, const std::string& flag, const std::string& kind,
                       Value& value, const std::string& help) {
  return command.add_option(flag, value, help)->type_name(kind);
}

// The same with a text that `read` makes a value of.
CLI::Option* add_text(CLI::App& command, const std::string& flag, const std::string& kind,
                      const std::string& help, const std::function<void(const std::string&)>& read);

// An empty word never stands for a file, a name or a list of shapes: every option below `program`
// that takes such a value refuses it. To be called when all commands are there.
void refuse_empty_values(CLI::App& program);

// For Option::check, where more is to be said about what is expected.
std::function<std::string(const std::string&)> no_empty_path(const std::string& expected);

// As --device takes it: one, or several with commas between them.
bool is_device(const std::string& name);

// --device and its like.
void add_device(CLI::App& command, const std::string& flag, std::string& device,
                const std::string& help);

// A number from `least` to `most`; nothing when it is not given.
void add_number(CLI::App& command, const std::string& flag, std::optional<double>& value,
                double least, double most, const std::string& help);

// A number of seconds from 0 to `most`.
void add_seconds(CLI::App& command, const std::string& flag, double& seconds, double most,
                 const std::string& help);

// The option takes one of these words.
void choose_from(CLI::Option* option, const std::vector<std::string>& words,
                 const std::string& default_word);

// One of several words.
void add_choice(CLI::App& command, const std::string& flag, std::string& value,
                const std::vector<std::string>& words, const std::string& help);

// The same for an enum: its words, or those of some values.
template <class Enum>
void add_choice(CLI::App& command, const std::string& flag, Enum& value, const std::string& help,
                std::initializer_list<Enum> chosen = {}) {
  const auto set = [&value](const std::string& given) { value = *from_word<Enum>(given); };
  choose_from(command.add_option_function<std::string>(flag, set, help), word_list(chosen),
              word_of(value));
}

// Whole numbers from 1 to `most`, separated by commas; at most `count` of them.
void add_whole_numbers(CLI::App& command, const std::string& flag, std::vector<int64_t>& values,
                       size_t count, int64_t most, const std::string& help);

// A whole number within limits. Other words are wrong usage of the flag.
int64_t whole_number_from(const std::string& flag, std::string_view text, int64_t least,
                          int64_t most);

template <class Whole>
CLI::Option* add_whole_number(CLI::App& command, const std::string& flag, Whole& value,
                              int64_t least, int64_t most, const std::string& help) {
  const auto read = [=, &value](const std::string& text) {
    value = static_cast<Whole>(whole_number_from(flag, text, least, most));
  };
  return add_text(command, flag, "INT", help, read)->default_str(std::to_string(value));
}

// --max-memory, in bytes.
void add_max_memory(CLI::App& command, uint64_t& bytes, const std::string& help);

// --size: pixels of an image, <width>x<height> or the side of a square.
void add_image_size(CLI::App& command, int& width, int& height);

// --shapes; `text` holds the default.
void add_shapes(CLI::App& command, std::string& text);

// What --shapes means. A wrong list is wrong usage, not a failure of the work.
std::vector<GemmShape> shapes_from(const std::string& text);

// The same for a flag that takes one.
GemmShape one_shape_from(const std::string& flag, const std::string& text);

void add_require_int8(CLI::App& command, bool& required);

// --tune of commands that measure.
void add_first_tuning(CLI::App& command, Tuning& tuning);

}  // namespace octet::cli
