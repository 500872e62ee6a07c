// octet inspect FILE

#include <memory>

#include "commands.h"
#include "help_page.h"
#include "octet/tools/report.h"
#include "output.h"
#include "output_files.h"

namespace octet::cli {

void add_inspect(CLI::App& program, CommonFlags& flags) {
  CLI::App* command = program.add_subcommand(
      "inspect", "List a checkpoint's tensors, and how a model's linears will run");
  add_output_flags(*command, flags);
  const auto path = std::make_shared<std::string>();
  command
      ->add_option("file", *path,
                   "A .safetensors or .gguf file, a .safetensors.index.json, a folder with one of "
                   "them, or a model's folder")
      ->type_name("FILE|FOLDER")
      ->required();
  const auto base = std::make_shared<std::string>();
  command->add_option("--base", *base, "A model that supplies what the file lacks")
      ->type_name("MODEL");
  set_examples(*command, {"octet inspect model.safetensors",
                          "octet inspect ideogram-ai/ideogram-4-fp8 --json model.json"});
  command->callback([&flags, path, base] {
    if (path->empty()) throw CLI::ValidationError("the path is empty, expected a file or a folder");
    check_outputs(flags, {}, {*path, *base});
    Inspection inspection{.model = inspect_model(*path, *base)};
    if (inspection.model.is_checkpoint) inspection.checkpoint = inspect_checkpoint(*path);
    inspection.stamps = find_stamps(*path);
    show(flags, to_text(inspection, detail_of(flags)), to_json(inspection));
  });
}

}  // namespace octet::cli
