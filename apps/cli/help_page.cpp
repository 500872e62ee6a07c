#include "help_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "command_tree.h"
#include "flags.h"

namespace octet::cli {
namespace {

constexpr size_t kWidth = 88;
constexpr size_t kIndent = 2;
constexpr size_t kOptionColumn = 28;
constexpr size_t kCommandColumn = 14;

// `text` in lines that end before kWidth, all but the first indented to column `begin`.
std::string wrapped(const std::string& text, size_t begin) {
  std::istringstream words(text);
  std::string lines;
  size_t column = begin;
  for (std::string word; words >> word;) {
    const bool is_first = column == begin;
    if (!is_first && column + 1 + word.size() > kWidth) {
      lines += "\n" + std::string(begin, ' ');
      column = begin;
    } else if (!is_first) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines;
}

// A name on the left, what it is on the right, below a name that is too long.
std::string entry(const std::string& left, const std::string& right, size_t column) {
  std::string line = std::string(kIndent, ' ') + left;
  if (line.size() + 2 > column) {
    line += "\n" + std::string(column, ' ');
  } else {
    line.resize(column, ' ');
  }
  line += wrapped(right, column);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string entry(const Argument& argument) {
  if (argument.is_positional) return entry(argument.usage(), argument.help, kOptionColumn);
  std::string left = fmt::format("{}", fmt::join(argument.names, ", "));
  if (!argument.value.empty()) left += " " + argument.value;
  std::string right = argument.help;
  if (argument.is_required) right += " (required)";
  if (!argument.default_value.empty()) right += " [" + argument.default_value + "]";
  return entry(left, right, kOptionColumn);
}

// The groups of `items` in the order in which they appear, `last` at the end.
template <class Item>
std::vector<std::string> groups_of(const std::vector<Item>& items, const std::string& last) {
  std::vector<std::string> groups;
  for (const Item& item : items) {
    if (std::find(groups.begin(), groups.end(), item.group) == groups.end()) {
      groups.push_back(item.group);
    }
  }
  std::stable_partition(groups.begin(), groups.end(),
                        [&](const std::string& group) { return group != last; });
  return groups;
}

}  // namespace

std::string HelpPage::make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const {
  const Command command = describe(*app);
  std::string page = fmt::format("{}\n\nUsage: {}\n", command.summary, command.usage());
  std::vector<Argument> positionals, options;
  for (const Argument& argument : command.arguments) {
    (argument.is_positional ? positionals : options).push_back(argument);
  }
  if (!positionals.empty()) page += "\n";
  for (const Argument& argument : positionals) page += entry(argument);
  for (const std::string& group : groups_of(command.commands, "Other")) {
    page += fmt::format("\n{}:\n", group);
    for (const Command& sub : command.commands) {
      if (sub.group == group) page += entry(sub.last_word(), sub.summary, kCommandColumn);
    }
  }
  for (const std::string& group : groups_of(options, kCommonOptions)) {
    page += fmt::format("\n{}:\n", group);
    for (const Argument& option : options) {
      if (option.group == group) page += entry(option);
    }
  }
  if (!command.footer.empty()) page += "\n" + command.footer + "\n";
  return page;
}

}  // namespace octet::cli
