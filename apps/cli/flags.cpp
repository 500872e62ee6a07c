#include "flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "octet/devices.h"
#include "octet/error.h"
#include "usage_errors.h"

namespace octet::cli {
namespace {

std::vector<int64_t> parse_whole_numbers(const std::string& flag, std::string_view text,
                                         size_t count, int64_t most) {
  std::vector<int64_t> values;
  for (std::string_view rest = text;;) {
    const size_t comma = rest.find(',');
    values.push_back(whole_number_from(flag, rest.substr(0, comma), 1, most));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (values.size() > count) {
    throw CLI::ValidationError(
        fmt::format("{} has {} numbers, expected at most {}", flag, values.size(), count));
  }
  return values;
}

double parse_number(const std::string& flag, const std::string& text, double least, double most) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  // Written so that "nan" is refused as well.
  const bool in_range = number >= least && number <= most;
  if (text.empty() || *end != '\0' || !in_range) {
    throw CLI::ValidationError(
        fmt::format("{} is '{}', expected a number from {} to {}", flag, text, least, most));
  }
  return number;
}

// A size in bytes: "4G", "800M", "1.5GiB", "1000000". Other words are wrong usage.
uint64_t bytes_from(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  double factor = 0;
  for (const auto& [letter, power] : {std::pair{'K', 1}, {'M', 2}, {'G', 3}, {'T', 4}}) {
    if (unit.empty() || std::toupper(static_cast<unsigned char>(unit[0])) != letter) continue;
    const std::string rest = unit.substr(1);
    if (rest.empty() || rest == "B") factor = std::pow(1000.0, power);
    if (rest == "iB") factor = std::pow(1024.0, power);
  }
  if (unit.empty() || unit == "B") factor = 1;
  if (factor == 0 || !(number * factor >= 1) || !(number * factor < 1e18)) {
    throw CLI::ValidationError(
        fmt::format("'{}' is not a size in bytes, expected something like 4G or 800M", text));
  }
  return static_cast<uint64_t>(number * factor);
}

void add_output_flags(CLI::App& command, CommonFlags& flags) {
  add_value(command, "--json", "FILE", flags.json, "Write JSON to this file, or to stdout for -")
      ->check(no_empty_path("a file or -"));
  CLI::Option* verbose = command.add_flag("-v,--verbose", flags.verbose, "More output");
  command.add_flag("-q,--quiet", flags.quiet, "No progress, and the result in its shortest form")
      ->excludes(verbose);
  set_group(command, kCommonOptions, {"--json", "--verbose", "--quiet", "--help"});
}

}  // namespace

bool is_device(const std::string& name) {
  const std::string gpu = "cuda:";
  const size_t comma = name.find(',');
  if (comma != name.npos)
    return is_device(name.substr(0, comma)) && is_device(name.substr(comma + 1));
  if (name.starts_with(gpu)) {
    return name.size() > gpu.size() &&
           name.find_first_not_of("0123456789", gpu.size()) == name.npos;
  }
  return name == "auto" || name == "ref" || name == "cpu" || name == "cuda";
}

CLI::App& add_command(CLI::App& parent, CommonFlags& flags, const std::string& name,
                      const std::string& summary) {
  CLI::App& command = *parent.add_subcommand(name, summary);
  add_output_flags(command, flags);
  return command;
}

CLI::App& add_computing_command(CLI::App& parent, CommonFlags& flags, const std::string& name,
                                const std::string& summary) {
  CLI::App& command = *parent.add_subcommand(name, summary);
  add_device(command, "--device", flags.device,
             "Device to run on; auto is a GPU if one can be used, else the CPU");
  add_text(command, "--threads", "INT", "CPU threads (default: one per physical core)",
           [&flags](const std::string& text) {
             flags.threads =
                 static_cast<int>(whole_number_from("--threads", text, 1, max_threads()));
           });
  set_group(command, kCommonOptions, {"--device", "--threads"});
  add_output_flags(command, flags);
  return command;
}

void set_group(CLI::App& command, const std::string& heading,
               const std::vector<std::string>& options) {
  for (const std::string& name : options) command.get_option(name)->group(heading);
}

void set_examples(CLI::App& command, const std::vector<std::string>& lines) {
  command.footer(fmt::format("{}:\n  {}", lines.size() == 1 ? "Example" : "Examples",
                             fmt::join(lines, "\n  ")));
}

CLI::Option* add_text(CLI::App& command, const std::string& flag, const std::string& kind,
                      const std::string& help,
                      const std::function<void(const std::string&)>& read) {
  return command.add_option_function<std::string>(flag, read, help)->type_name(kind);
}

std::function<std::string(const std::string&)> no_empty_path(const std::string& expected) {
  return [expected](const std::string& path) {
    return path.empty() ? "the path is empty, expected " + expected : "";
  };
}

void refuse_empty_values(CLI::App& program) {
  constexpr const char* kPaths[] = {"FILE", "FOLDER", "MODEL", "PREFIX", "CHECKPOINT"};
  constexpr const char* kOthers[] = {"SHAPES",   "CARDS",  "NAME",  "REPO", "PATTERN",
                                     "REVISION", "RECIPE", "m,n,k", "|"};
  for (CLI::Option* option : program.get_options()) {
    const std::string kind = option->get_type_name();
    const auto holds = [&](const char* word) { return kind.find(word) != std::string::npos; };
    const bool is_path = std::any_of(std::begin(kPaths), std::end(kPaths), holds);
    if (!is_path && std::none_of(std::begin(kOthers), std::end(kOthers), holds)) continue;
    option->check([kind, is_path](const std::string& given) {
      if (!given.empty()) return std::string();
      return fmt::format("the {} is empty, expected {}", is_path ? "path" : "value", kind);
    });
  }
  for (CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
    refuse_empty_values(*command);
  }
}

void add_device(CLI::App& command, const std::string& flag, std::string& device,
                const std::string& help) {
  add_value(command, flag, "auto|ref|cpu|cuda|cuda:N", device, help)
      ->capture_default_str()
      ->check([](const std::string& name) {
        if (is_device(name)) return std::string();
        return fmt::format("'{}' is not a device, expected auto, ref, cpu, cuda or cuda:<number>",
                           name);
      });
}

void add_number(CLI::App& command, const std::string& flag, std::optional<double>& value,
                double least, double most, const std::string& help) {
  add_text(command, flag, "FLOAT", help,
           [=, &value](const std::string& text) { value = parse_number(flag, text, least, most); });
}

void add_seconds(CLI::App& command, const std::string& flag, double& seconds, double most,
                 const std::string& help) {
  const auto read = [=, &seconds](const std::string& text) {
    seconds = parse_number(flag, text, 0, most);
  };
  add_text(command, flag, "FLOAT", help, read)->default_str(fmt::format("{}", seconds));
}

void choose_from(CLI::Option* option, const std::vector<std::string>& words,
                 const std::string& default_word) {
  option->type_name(fmt::format("{}", fmt::join(words, "|")))
      ->default_str(default_word)
      ->check([words](const std::string& given) {
        if (std::find(words.begin(), words.end(), given) != words.end()) return std::string();
        return fmt::format("'{}' is not a choice, expected {}", given, list_of(words));
      });
}

void add_choice(CLI::App& command, const std::string& flag, std::string& value,
                const std::vector<std::string>& words, const std::string& help) {
  choose_from(command.add_option(flag, value, help), words, value);
}

void add_whole_numbers(CLI::App& command, const std::string& flag, std::vector<int64_t>& values,
                       size_t count, int64_t most, const std::string& help) {
  const auto read = [=, &values](const std::string& text) {
    values = parse_whole_numbers(flag, text, count, most);
  };
  add_text(command, flag, count == 1 ? "INT" : "INT,...", help, read)
      ->default_str(fmt::format("{}", fmt::join(values, ",")));
}

// Numbers are read here and not by CLI11, whose base 0 takes 010 for eight.
int64_t whole_number_from(const std::string& flag, std::string_view text, int64_t least,
                          int64_t most) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    const std::string name = flag.substr(flag.rfind(',') + 1);  // the long one of two
    throw CLI::ValidationError(
        fmt::format("{} is '{}', expected a whole number from {} to {}", name, text, least, most));
  }
  return value;
}

void add_max_memory(CLI::App& command, uint64_t& bytes, const std::string& help) {
  add_text(command, "--max-memory", "BYTES", help,
           [&bytes](const std::string& text) { bytes = bytes_from(text); });
}

void add_image_size(CLI::App& command, int& width, int& height) {
  const auto parse = [&width, &height](const std::string& text) {
    constexpr int64_t kMostPixels = 1'000'000;
    const size_t cross = text.find('x');
    const auto side = [](const std::string& part) {
      return static_cast<int>(whole_number_from("a side of --size", part, 1, kMostPixels));
    };
    width = side(text.substr(0, cross));
    height = cross == std::string::npos ? width : side(text.substr(cross + 1));
  };
  add_text(command, "--size", "SIZE", "Pixels: <width>x<height>, or the side of a square", parse)
      ->default_str(width == height ? fmt::format("{}", width)
                                    : fmt::format("{}x{}", width, height));
}

void add_shapes(CLI::App& command, std::string& text) {
  add_value(command, "--shapes", "SHAPES", text,
            "m,n,k[;m,n,k...] or " + model_shapes("<pixels>[+<text tokens>][,...]"))
      ->capture_default_str();
}

std::vector<GemmShape> shapes_from(const std::string& text) {
  try {
    return parse_shapes(text);
  } catch (const Error& error) {
    throw CLI::ValidationError(error.what());
  }
}

GemmShape one_shape_from(const std::string& flag, const std::string& text) {
  const std::vector<GemmShape> shapes = shapes_from(text);
  if (shapes.size() == 1) return shapes.front();
  throw CLI::ValidationError(
      fmt::format("{} has {} shapes, expected one m,n,k", flag, shapes.size()));
}

void add_require_int8(CLI::App& command, bool& required) {
  command.add_flag(
      "--require-int8", required,
      "Fail if a large linear that the checkpoint does not protect did not run in native INT8");
}

void add_first_tuning(CLI::App& command, Tuning& tuning) {
  add_choice(command, "--tune", tuning,
             "Measure the kernels first: never, if the plan file lacks a shape, or always");
}

}  // namespace octet::cli
