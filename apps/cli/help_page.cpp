#include "help_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "command_tree.h"
#include "commands.h"
#include "octet/version.h"

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

struct ManEntry {
  const char* name;
  const char* text;
};

constexpr ManEntry kExitCodes[] = {
    {"0", "Done."},
    {"1", "Failed; one sentence on standard error says why."},
    {"2", "Wrong usage; one sentence on standard error says what was expected."},
    {"3", "octet audit --fail-on found what it was looking for."},
    {"130, 143, 129", "Stopped by Ctrl-C, SIGTERM or SIGHUP; what was finished is kept."},
};

// docs/environment.md says more of each.
constexpr ManEntry kVariables[] = {
    {"OCTET_CACHE_DIR", "Folder of plan files and converted weights."},
    {"OCTET_CACHE_MAX_GB", "Limit on the total size of the converted weights."},
    {"OCTET_CONFIG", "The configuration file; empty: none."},
    {"OCTET_DEMO_MODEL", "Folder of another model for octet demo."},
    {"OCTET_FORCE_KERNEL", "Name of the only INT8 GEMM kernel that may run."},
    {"OCTET_GRAPH", "0: run every step op by op instead of replaying recorded steps."},
    {"OCTET_LOG", "Verbosity: debug, info or quiet; -v and -q take precedence."},
    {"OCTET_PINNED", "0: weights that wait in host memory for a GPU are not pinned."},
    {"OCTET_TRACE", "Topics to trace; gemm prints each problem and the kernel chosen for it."},
    {"HF_ENDPOINT", "Address of the hub, for a mirror."},
    {"HF_HOME, HF_HUB_CACHE", "Where the hub's cache is."},
    {"HF_HUB_DOWNLOAD_TIMEOUT", "Seconds without a byte after which a connection is dropped."},
    {"HF_HUB_OFFLINE", "1: use only the cache."},
    {"HF_TOKEN, HF_TOKEN_PATH", "The access token, or the file that contains it."},
    {"XDG_CACHE_HOME", "Parent folder of both caches, unless set above."},
};

// Text that roff prints as it is: a hyphen is a hyphen, and no line is taken for a request.
std::string escaped(const std::string& text) {
  std::string out;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    begins_line = c == '\n';
  }
  return out;
}

std::string bold(const std::string& text) { return "\\fB" + escaped(text) + "\\fR"; }

std::string section(const char* title) { return fmt::format(".SH {}\n", title); }

std::string paragraph(const std::string& tag, const std::string& text) {
  return fmt::format(".TP\n{}\n{}\n", tag, text.empty() ? "\\&" : escaped(text));
}

// Lines that stay as they are.
std::string literal(const std::string& lines) {
  return fmt::format(".PP\n.nf\n.RS 2\n{}\n.RE\n.fi\n", escaped(lines));
}

std::string argument_paragraph(const Argument& argument) {
  std::string tag;
  if (argument.is_positional) {
    tag = "\\fI" + escaped(argument.usage()) + "\\fR";
  } else {
    for (const std::string& name : argument.names) tag += (tag.empty() ? "" : ", ") + bold(name);
    if (!argument.value.empty()) tag += " \\fI" + escaped(argument.value) + "\\fR";
  }
  std::string text = argument.help;
  if (!argument.default_value.empty()) text += " (default: " + argument.default_value + ")";
  if (argument.is_required && !argument.is_positional) text += " (required)";
  return paragraph(tag, text);
}

std::string command_page(const Command& command) {
  std::string page =
      fmt::format(".SS {}\n{}.\n", escaped(command.usage()), escaped(command.summary));
  for (const Argument& argument : command.arguments) page += argument_paragraph(argument);
  const size_t first_line = command.footer.find('\n');
  if (first_line != std::string::npos) {
    page += fmt::format(".PP\n{}\n{}", escaped(command.footer.substr(0, first_line)),
                        literal(command.footer.substr(first_line + 1)));
  }
  return page;
}

std::string man_page(const Command& root) {
  std::string page = fmt::format(".TH OCTET 1 \"\" \"octet {}\" \"User Commands\"\n", version());
  page += section("NAME") + "octet \\- " + escaped(root.summary) + "\n";
  page += section("SYNOPSIS") + bold("octet") + " \\fICOMMAND\\fR [options]\n";
  page += section("OPTIONS");
  for (const Argument& argument : root.arguments) page += argument_paragraph(argument);
  page += section("COMMANDS");
  for (const Command* command : all_commands(root)) {
    if (command != &root) page += command_page(*command);
  }
  page += section("EXIT STATUS");
  for (const ManEntry& code : kExitCodes) page += paragraph(bold(code.name), code.text);
  page += section("ENVIRONMENT");
  for (const ManEntry& variable : kVariables) page += paragraph(bold(variable.name), variable.text);
  return page;
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

// octet man: the program's manual as man(1) reads it.
void add_man(CLI::App& program, CommonFlags&) {
  CLI::App* command = program.add_subcommand("man", "Print the manual page, for man -l -");
  command->callback([&program] { std::fputs(man_page(describe(program)).c_str(), stdout); });
}

}  // namespace octet::cli
