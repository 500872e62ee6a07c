#include "usage_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <optional>
#include <sstream>
#include <string_view>

#include "command_tree.h"
#include "foreign_words.h"

namespace octet::cli {
namespace {

// The fewest insertions, deletions, replacements and swaps of neighbours that make one word the
// other.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({row[j - 1] + 1, last[j] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swap) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

// The nearest of `words`, when so much of it is right that it was probably meant.
std::optional<std::string> nearest(std::string_view given, const std::vector<std::string>& words) {
  const auto letters = [](std::string_view word) {
    return word.substr(std::min(word.find_first_not_of('-'), word.size()));
  };
  const std::string_view typed = letters(given);
  constexpr size_t kShortest = 3;  // below it everything is near everything
  if (typed.size() < kShortest) return std::nullopt;
  std::optional<std::string> best;
  size_t least = typed.size() / 3 + 1;
  for (const std::string& word : words) {
    if (letters(word).size() < kShortest) continue;
    const bool is_beginning = letters(word).starts_with(typed);
    const size_t distance = is_beginning ? 1 : edit_distance(typed, letters(word));
    if (distance >= least) continue;
    least = distance;
    best = word;
  }
  return best;
}

struct Words {
  std::string name;  // of the command
  std::vector<std::string> flags, commands;

  explicit Words(const Command& command) : name(command.name) {
    for (const Argument& argument : command.arguments) {
      if (argument.is_positional) continue;
      flags.insert(flags.end(), argument.names.begin(), argument.names.end());
    }
    for (const Command& sub : command.commands) commands.push_back(sub.last_word());
  }
};

std::string remedy_for(const std::string& given, const Words& words) {
  const auto is_one_of = [](const std::vector<std::string>& list, std::string_view word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  std::string typed = given.substr(0, given.find('='));
  std::replace(typed.begin(), typed.end(), '_', '-');  // as Python spells flags
  std::vector<std::string> foreign_flags;
  for (const ForeignWords& foreign : foreign_words()) {
    const bool is_ours = is_one_of(words.flags, foreign.ours) ||
                         is_one_of(words.commands, foreign.ours) || words.name == foreign.ours;
    if (!is_ours) continue;
    std::istringstream list(foreign.words);
    for (std::string word; list >> word;) {
      if (typed == word) return std::string(foreign.remedy);
      if (word.starts_with('-')) foreign_flags.push_back(word);
    }
  }
  if (!typed.starts_with('-') && is_one_of(words.flags, "--prompt")) {
    return "describe the picture with --prompt TEXT";
  }
  const bool is_flag = typed.starts_with('-');
  const auto meant = nearest(typed, is_flag ? words.flags : words.commands);
  if (meant) return fmt::format("did you mean {}?", *meant);
  // A word of other programs, misspelt.
  const auto foreign = is_flag ? nearest(typed, foreign_flags) : std::nullopt;
  if (foreign) return remedy_for(*foreign, words);
  const bool records = is_flag && is_one_of(words.flags, "--record");
  return records ? "put the flags of a recorded command after --" : "";
}

// What CLI11 says of an argument that is missing, lacks its value or was given again, in our words;
// else its own.
std::string what_of(const CLI::App& command, const Command& words, const CLI::ParseError& error) {
  const std::string what = error.what();
  for (const Argument& argument : words.arguments) {
    if (!argument.is_positional || what != argument.names.front() + " is required") continue;
    return argument.usage() + " is missing";  // as the help calls it
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return what;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (!what.starts_with(name + ": ")) continue;
    // Counted here: CLI11's own number has its separators in it.
    const auto order = command.parse_order();
    const auto times = std::count(order.begin(), order.end(), option);
    if (times < 2 || option->get_expected_max() > 1) {
      return fmt::format("{} has no value, expected {}", name, option->get_type_name());
    }
    const std::string often = times == 2 ? "twice" : fmt::format("{} times", times);
    return fmt::format("{} was given {}, expected once", name, often);
  }
  return what;
}

}  // namespace

std::string did_you_mean(const std::string& given, const std::vector<std::string>& words) {
  std::string typed = given;
  for (char& c : typed) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto meant = nearest(typed, words);
  return meant ? fmt::format(", did you mean {}?", *meant) : "";
}

std::string list_of(const std::vector<std::string>& words) {
  std::string list;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) list += i + 1 == words.size() ? " or " : ", ";
    list += words[i];
  }
  return list;
}

std::string usage_sentence(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App* chosen = &program;
  while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
  const Command command = describe(*chosen);
  const Words words(command);
  std::string what = what_of(*chosen, command, error), remedy;
  // CLI11 says only that "a subcommand is required", even where a misspelt one was given.
  auto extra = program.remaining(true);
  std::erase(extra, "--");  // noted there, and not an argument
  if (!extra.empty()) {
    const std::string& given = extra.front();
    remedy =
        given == "help" ? fmt::format("use {} --help", command.name) : remedy_for(given, words);
    if (words.commands.empty() || given.starts_with('-')) {
      what = fmt::format("the argument '{}' was not expected", given);
    } else {
      what = fmt::format("'{}' is not a command", given);
      if (remedy.empty()) what += ", expected " + list_of(words.commands);
    }
  } else if (!words.commands.empty()) {
    what = fmt::format("a command is missing, expected {}", list_of(words.commands));
  }
  if (remedy.empty()) remedy = fmt::format("see {} --help", command.name);
  const std::string where =
      chosen == &program ? "" : command.name.substr(command.name.find(' ') + 1) + ": ";
  return fmt::format("{}{}; {}", where, what, remedy);
}

}  // namespace octet::cli
