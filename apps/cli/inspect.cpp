// octet inspect FILE
#include "octet/inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "commands.h"
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

void print(const CheckpointSummary& summary, bool quiet) {
  if (!quiet) {
    Table tensors({"tensor", "dtype", "shape", "bytes"}, 3);
    for (const auto& tensor : summary.tensors) {
      tensors.add({printable(tensor.name), tensor.dtype,
                   fmt::format("[{}]", fmt::join(tensor.shape, ", ")), human_bytes(tensor.bytes)});
    }
    tensors.print();
    fmt::print("\n");
  }
  for (const auto& [key, value] : summary.metadata) {
    fmt::print("metadata {}: {}\n", printable(key), printable(value));
  }
  Table dtypes({"dtype", "tensors", "bytes"}, 1);
  for (const auto& [name, dtype] : summary.dtypes) {
    dtypes.add({name, std::to_string(dtype.tensors), human_bytes(dtype.bytes)});
  }
  dtypes.print();
  fmt::print("{} tensors, {} elements, {} in {} file{}\n", summary.tensors.size(),
             summary.parameters, human_bytes(summary.total_bytes), summary.files.size(),
             summary.files.size() == 1 ? "" : "s");
}

}  // namespace

void add_inspect(CLI::App& program, CommonFlags& flags) {
  CLI::App* command = program.add_subcommand("inspect", "List the tensors of a checkpoint");
  add_common_flags(*command, flags);
  const auto path = std::make_shared<std::string>();
  command
      ->add_option("file", *path,
                   "A .safetensors file, a .safetensors.index.json, or a folder with one of them")
      ->required();
  command->callback([&flags, path] {
    const CheckpointSummary summary = inspect_checkpoint(*path);
    if (!flags.json.empty()) write_json(to_json(summary), flags.json);
    if (flags.json != "-") print(summary, flags.quiet);
  });
}

}  // namespace octet::cli
