// octet inspect FILE
#include "octet/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <memory>

#include "commands.h"
#include "octet/text.h"
#include "output.h"

namespace octet::cli {
namespace {

nlohmann::ordered_json to_json(const CheckpointSummary& summary) {
  auto tensors = nlohmann::ordered_json::array();
  for (const auto& tensor : summary.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"dtype", tensor.dtype},
                       {"shape", tensor.shape},
                       {"bytes", tensor.bytes},
                       {"file", tensor.file}});
  }
  auto dtypes = nlohmann::ordered_json::object();
  for (const auto& [name, dtype] : summary.dtypes) {
    dtypes[name] = {{"tensors", dtype.tensors}, {"bytes", dtype.bytes}};
  }
  return {{"path", summary.path},
          {"files", summary.files},
          {"metadata", summary.metadata},
          {"tensors", tensors},
          {"total_bytes", summary.total_bytes},
          {"parameters", summary.parameters},
          {"dtypes", dtypes}};
}

// For the table: a stranger chose the text and its length. JSON has all of it.
std::string shortened(const std::string& text) {
  constexpr size_t kMostCharacters = 200;
  size_t characters = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<uint8_t>(text[i]) & 0xc0) != 0x80;  // a UTF-8 sequence
    if (begins && characters++ == kMostCharacters) {
      return fmt::format("{}… ({} bytes)", printable(text.substr(0, i)), text.size());
    }
  }
  return printable(text);
}

std::string shortened(const std::vector<int64_t>& shape) {
  constexpr size_t kMostExtents = 8;
  const auto shown = static_cast<std::ptrdiff_t>(std::min(shape.size(), kMostExtents));
  return fmt::format("[{}{}]", fmt::join(shape.begin(), shape.begin() + shown, ", "),
                     shape.size() > kMostExtents ? ", …" : "");
}

std::string to_text(const CheckpointSummary& summary, bool quiet) {
  std::string text;
  if (!quiet) {
    Table tensors({"tensor", "dtype", "shape", "bytes"}, 3);
    for (const auto& tensor : summary.tensors) {
      tensors.add({shortened(tensor.name), tensor.dtype, shortened(tensor.shape),
                   human_bytes(tensor.bytes)});
    }
    text += tensors.text() + "\n";
  }
  for (const auto& [key, value] : summary.metadata) {
    text += fmt::format("metadata {}: {}\n", shortened(key), shortened(value));
  }
  Table dtypes({"dtype", "tensors", "bytes"}, 1);
  for (const auto& [name, dtype] : summary.dtypes) {
    dtypes.add({name, std::to_string(dtype.tensors), human_bytes(dtype.bytes)});
  }
  text += dtypes.text();
  return text + fmt::format("{} tensors, {} elements, {} in {} file{}\n", summary.tensors.size(),
                            summary.parameters, human_bytes(summary.total_bytes),
                            summary.files.size(), summary.files.size() == 1 ? "" : "s");
}

}  // namespace

void add_inspect(CLI::App& program, CommonFlags& flags) {
  CLI::App* command = program.add_subcommand("inspect", "List the tensors of a checkpoint");
  add_output_flags(*command, flags);
  const auto path = std::make_shared<std::string>();
  command
      ->add_option("file", *path,
                   "A .safetensors file, a .safetensors.index.json, or a folder with one of them")
      ->required();
  command->callback([&flags, path] {
    if (path->empty()) throw CLI::ValidationError("the path is empty, expected a file or a folder");
    check_json_target(flags);
    const CheckpointSummary summary = inspect_checkpoint(*path);
    show(flags, to_text(summary, flags.quiet), to_json(summary));
  });
}

}  // namespace octet::cli
