#include "model_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "octet/model_options.h"
#include "usage_errors.h"

namespace octet::cli {
namespace {

// "device", "text_encoder=host"
KeepRule keep_rule_from(const std::string& text) {
  const size_t equals = text.find('=');
  KeepRule rule;
  if (equals != std::string::npos) rule.part = text.substr(0, equals);
  std::replace(rule.part.begin(), rule.part.end(), '-', '_');  // as flags spell it
  const std::string where = equals == std::string::npos ? text : text.substr(equals + 1);
  if (const auto residency = from_word<Residency>(where); residency && equals != 0) {
    rule.where = *residency;
    return rule;
  }
  throw CLI::ValidationError(
      fmt::format("--keep is '{}', expected {}, optionally after PART=, such as text_encoder=host",
                  text, list_of(word_list<Residency>())));
}

}  // namespace

void add_part_flags(CLI::App& command, ModelOptions& options) {
  add_value(command, "--base", "MODEL", options.base,
            "A complete model that supplies parts and weights the model lacks");
  const auto add = [&](const char* flag, const char* part, const char* help) {
    add_text(command, flag, "FILE|FOLDER", help,
             [&options, part](const std::string& path) { options.parts[part] = path; });
  };
  add("--uncond", "unconditional_transformer",
      "The unconditional network; not needed with --guidance 1");
  add("--text-encoder", "text_encoder", "The text encoder");
  add("--vae", "vae", "The VAE");
  add("--tokenizer", "tokenizer",
      "tokenizer.json, or a folder with it (default: in the model's folder, or next to the text "
      "encoder)");
  set_group(command, kModelOptions,
            {"--base", "--uncond", "--text-encoder", "--vae", "--tokenizer"});
}

void add_memory_flags(CLI::App& command, ModelOptions& options) {
  constexpr const char* kMemory = "Memory";
  command
      .add_option_function<std::vector<std::string>>(
          "--keep",
          [&options](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) options.keep.push_back(keep_rule_from(text));
          },
          "Where weights are kept between uses: in device memory, in host memory, or in their "
          "files; PART=... for one part, such as text_encoder=host (default: by what is free)")
      ->type_name(fmt::format("{}", fmt::join(word_list<Residency>(), "|")))
      ->delimiter(',')
      ->allow_extra_args(false);
  add_max_memory(command, options.max_memory,
                 "Device memory to use at most, such as 16GB (default: what is free)");
  set_group(command, kMemory, {"--keep", "--max-memory"});
}

void add_linears_flags(CLI::App& command, Linears& linears, const std::string& whose) {
  add_choice(command, "--linears", linears, whose);
  const auto set_path = [&linears](const std::string& path) {
    linears = from_word<Linears>(path).value_or(Linears::floating);
  };
  CLI::Option* path = command.add_option_function<std::string>(
      "--path", set_path,
      "The same, under the names octet map uses; auto: INT8, except where octet tune or octet "
      "map found bf16 to be faster");
  choose_from(path, {"auto", "int8", "bf16"},
              linears == Linears::floating ? "bf16" : word_of(linears));
  path->excludes(command.get_option("--linears"));
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

std::vector<Lora> loras_from(const std::vector<std::string>& texts) {
  std::vector<Lora> loras;
  for (const std::string& text : texts) loras.push_back(parse_lora(text));
  return loras;
}

std::vector<std::string> files_of(const ModelOptions& options) {
  std::vector<std::string> files = {options.model, options.base, options.fallback};
  for (const auto& [part, path] : options.parts) files.push_back(path);
  for (const Lora& lora : options.loras) files.push_back(lora.file);
  return files;
}

}  // namespace octet::cli
