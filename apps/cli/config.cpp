// octet config, and its use by other commands
#include "config.h"

#include <fmt/format.h>

#include <filesystem>

#include "commands.h"
#include "octet/error.h"
#include "octet/local_models.h"
#include "octet/tools/report.h"
#include "output.h"

namespace octet::cli {
namespace {

void say_default(const CommonFlags& flags, const char* what, const std::string& value,
                 const Config& config) {
  if (!flags.quiet) say(flags, fmt::format("{}: {} (from {})", what, value, config.file));
}

// A relative path would mean another folder in each: what is neither here nor pulled is told as the
// configuration's slip, not as a model to be fetched.
void check_configured(const Config& config, const char* key, const std::string& model) {
  std::error_code ignored;
  const std::filesystem::path path = model;
  if (path.is_absolute() || std::filesystem::exists(path, ignored)) return;
  try {
    find_pulled(model);
  } catch (const Error&) {
    throw Error(
        fmt::format("{}: {} is '{}', and nothing of this name was pulled; octet pull fetches "
                    "models of the Hub, and a folder needs its absolute path or ~/...",
                    config.file, key, model));
  }
}

}  // namespace

void use_configured_device(CommonFlags& flags) {
  const CLI::Option* option = flags.app->get_option_no_throw("--device");
  if (option == nullptr || option->count() > 0) return;
  const Config config = read_config();
  if (!config.device) return;
  if (!is_device(*config.device)) {
    throw Error(fmt::format("{}: device is '{}', expected auto, ref, cpu, cuda or cuda:<number>",
                            config.file, *config.device));
  }
  flags.device = *config.device;
  say_default(flags, "device", flags.device, config);
}

void use_configured_model(const CommonFlags& flags, ModelOptions& options) {
  const Config config = read_config();
  if (options.model.empty() && config.model) {
    check_configured(config, "model", *config.model);
    options.model = *config.model;
    say_default(flags, "model", options.model, config);
  }
  if (options.base.empty() && config.base) {
    check_configured(config, "base", *config.base);
    options.base = *config.base;
    say_default(flags, "base", options.base, config);
  }
  if (options.model.empty()) {
    throw CLI::ValidationError(
        config.file.empty()
            ? "--model MODEL is missing; octet list shows the models here"
            : fmt::format("--model MODEL is missing; octet list shows the models here, and a line "
                          "model = \"MODEL\" in {} sets a default",
                          config.file));
  }
}

void add_config(CLI::App& program, CommonFlags& flags) {
  CLI::App& command = add_command(program, flags, "config",
                                  "Print where the configuration file is and what it sets");
  set_examples(command, {"octet config"});
  command.callback([&flags] {
    check_outputs(flags);
    const Config config = read_config();
    show(flags, to_text(config), json_of(flags, config));
  });
}

}  // namespace octet::cli
