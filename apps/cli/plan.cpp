// octet plan
#include "octet/tools/plan.h"

#include <memory>

#include "commands.h"
#include "octet/tools/report.h"
#include "output.h"
#include "picture_flags.h"

namespace octet::cli {

void add_plan(CLI::App& program, CommonFlags& flags) {
  CLI::App& command =
      add_command(program, flags, "plan",
                  "Show where a model's weights go by a GPU's memory, and how long a step takes");
  const auto request = std::make_shared<PlanRequest>();
  ModelOptions& model = request->model;
  add_value(command, "--model", "MODEL", model.model,
            "A model's folder, owner/name of a pulled one, or its network (default: the published "
            "Ideogram 4 in INT8, of which no file is needed)");
  add_part_flags(command, model);
  add_image_size(command, request->size.width, request->size.height);
  command.get_option("--size")->default_str("")->description(
      "Pixels: <width>x<height>, or the side of a square (default: the model's)");
  add_whole_number(command, "--text-tokens", request->text_tokens, 0, 8192,
                   "Text tokens in a step");
  CLI::Option* card =
      add_value(command, "--card", "CARD", request->card,
                "Predict times for this card: 3090 (default: the GPU that is here)");
  add_value(command, "--card-file", "FILE", request->card_file,
            "The same for a card that this JSON file describes (docs/deployment-map.md)")
      ->excludes(card);
  add_memory_flags(command, model);
  command.get_option("--max-memory")
      ->description("A single budget, such as 8GB (default: those of usual cards)");
  add_choice(command, "--linears", model.linears, "Precision of the networks' large linears");
  add_choice(command, "--text-encoder-linears", model.text_encoder_linears,
             "Precision of the text encoder's linears",
             {Linears::int8, Linears::floating, Linears::fake});
  set_group(command, kModelOptions, {"--model"});
  set_examples(command, {"octet plan --card 3060", "octet plan --card 4070 --size 2048x1024 -v",
                         "octet plan --max-memory 8GB --json plan.json"});
  command.callback([&flags, request] {
    std::vector<std::string> inputs = files_of(request->model);
    inputs.push_back(request->card_file);
    check_outputs(flags, {}, inputs);
    const MemoryPlans plans = plan_memory(*request);
    show(flags, to_text(plans, detail_of(flags)), json_of(flags, plans));
  });
}

}  // namespace octet::cli
