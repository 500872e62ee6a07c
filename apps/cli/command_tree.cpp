#include "command_tree.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace octet::cli {
namespace {

bool has_capital(const std::string& word) {
  return std::any_of(word.begin(), word.end(),
                     [](unsigned char c) { return std::isupper(c) != 0; });
}

std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return (parent == nullptr ? "" : full_name(*parent) + " ") + app.get_name();
}

Argument describe(const CLI::Option& option) {
  Argument argument;
  argument.is_positional = option.get_positional();
  if (argument.is_positional) {
    argument.names.push_back(option.get_name(/*positional=*/true));
  } else {
    for (const std::string& name : option.get_snames()) argument.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) argument.names.push_back("--" + name);
  }
  if (option.get_type_size() != 0) argument.value = option.get_type_name();
  argument.help = option.get_description();
  argument.default_value = option.get_default_str();
  argument.group = option.get_group();
  argument.is_required = option.get_required();
  argument.repeats = option.get_expected_max() > 1;
  return argument;
}

}  // namespace

std::vector<std::string> Argument::choices() const {
  std::vector<std::string> words;
  if (value.find('|') == std::string::npos) return words;
  std::istringstream list(value);
  for (std::string word; std::getline(list, word, '|');) {
    if (!has_capital(word)) words.push_back(word);
  }
  return words;
}

bool Argument::takes_path() const {
  const auto holds = [this](const char* word) { return value.find(word) != std::string::npos; };
  return holds("FILE") || holds("FOLDER") || holds("MODEL") || holds("PREFIX");
}

std::string Argument::usage() const {
  std::string word = names.front();
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (repeats) word += "...";
  return is_required ? word : "[" + word + "]";
}

std::string Command::last_word() const { return name.substr(name.rfind(' ') + 1); }

std::string Command::usage() const {
  std::string line = name;
  const bool has_flags = std::any_of(arguments.begin(), arguments.end(),
                                     [](const Argument& each) { return !each.is_positional; });
  if (!commands.empty()) return line + " COMMAND";
  if (has_flags) line += " [options]";
  for (const Argument& argument : arguments) {
    if (argument.is_positional) line += " " + argument.usage();
  }
  return line;
}

Command describe(const CLI::App& app) {
  Command command;
  command.name = full_name(app);
  command.summary = app.get_description();
  command.group = app.get_group();
  command.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    // An option without a group is accepted and not shown.
    if (!option->get_group().empty()) command.arguments.push_back(describe(*option));
  }
  std::stable_partition(command.arguments.begin(), command.arguments.end(),
                        [](const Argument& argument) { return argument.is_positional; });
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    command.commands.push_back(describe(*sub));
  }
  return command;
}

std::vector<const Command*> all_commands(const Command& root) {
  std::vector<const Command*> all = {&root};
  for (const Command& command : root.commands) {
    for (const Command* each : all_commands(command)) all.push_back(each);
  }
  return all;
}

}  // namespace octet::cli
