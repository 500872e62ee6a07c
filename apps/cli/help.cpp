// octet help COMMAND

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "commands.h"
#include "usage_errors.h"

namespace octet::cli {

void add_help(CLI::App& program, CommonFlags&) {
  CLI::App* command = program.add_subcommand("help", "Explain a command, as its --help does");
  const auto words = std::make_shared<std::vector<std::string>>();
  add_value(*command, "command", "COMMAND", *words, "Such as generate, or bench step");
  set_examples(*command, {"octet help generate", "octet help bench step"});
  command->callback([&program, words] {
    const CLI::App* chosen = &program;
    for (const std::string& word : *words) {
      const auto found = chosen->get_subcommands(
          [&word](const CLI::App* each) { return each->get_name() == word; });
      if (found.empty()) {
        std::vector<std::string> names;
        for (const CLI::App* each : chosen->get_subcommands([](const CLI::App*) { return true; })) {
          names.push_back(each->get_name());
        }
        throw CLI::ValidationError(fmt::format(
            "'{}' is not a command{}", word, names.empty() ? "" : ", expected " + list_of(names)));
      }
      chosen = found.front();
    }
    // Not App::help(), which for the program itself describes the command that was given: this one.
    const auto page = program.get_formatter();
    const std::string text =
        page->make_help(chosen, chosen->get_name(), CLI::AppFormatMode::Normal);
    std::fputs(text.c_str(), stdout);
  });
}

}  // namespace octet::cli
