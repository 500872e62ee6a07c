// octet inspect FILE

#include <memory>

#include "commands.h"
#include "octet/tools/report.h"
#include "output.h"

namespace octet::cli {

void add_inspect(CLI::App& program, CommonFlags& flags) {
  CLI::App& command = add_command(
      program, flags, "inspect", "List a checkpoint's tensors, and how a model's linears will run");
  const auto path = std::make_shared<std::string>();
  add_value(command, "file", "FILE|FOLDER", *path,
            "A .safetensors or .gguf file, a .safetensors.index.json, a folder with one of "
            "them, or a model's folder")
      ->required();
  const auto base = std::make_shared<std::string>();
  add_value(command, "--base", "MODEL", *base, "A model that supplies what the file lacks");
  set_examples(command, {"octet inspect model.safetensors",
                         "octet inspect ideogram-ai/ideogram-4-fp8 --json model.json"});
  command.callback([&flags, path, base] {
    if (path->empty()) throw CLI::ValidationError("the path is empty, expected a file or a folder");
    check_outputs(flags, {}, {*path, *base});
    Inspection inspection{.model = inspect_model(*path, *base)};
    if (inspection.model.is_checkpoint) inspection.checkpoint = inspect_checkpoint(*path);
    inspection.stamps = find_stamps(*path);
    show(flags, to_text(inspection, detail_of(flags)), json_of(flags, inspection));
  });
}

}  // namespace octet::cli
