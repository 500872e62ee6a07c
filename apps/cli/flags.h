// Flags that several commands take, and how the words of a user become values.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

// --json, -v and -q: every command takes them.
void add_output_flags(CLI::App& command, CommonFlags& flags);

// --device and --threads: for commands that compute.
void add_device_flags(CLI::App& command, CommonFlags& flags);

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

// One whole number from `least` to `most`.
void add_whole_number(CLI::App& command, const std::string& flag, int64_t& value, int64_t least,
                      int64_t most, const std::string& help);

// A size in bytes: "4G", "800M", "1.5GiB", "1000000". Other words are wrong usage.
uint64_t bytes_from(const std::string& text);

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

}  // namespace octet::cli
