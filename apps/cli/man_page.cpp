// octet man: the program's manual as man(1) reads it, made from the definitions of its commands.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "command_tree.h"
#include "commands.h"
#include "octet/version.h"

namespace octet::cli {
namespace {

struct Entry {
  const char* name;
  const char* text;
};

constexpr Entry kExitCodes[] = {
    {"0", "Done."},
    {"1", "Failed; one sentence on standard error says why."},
    {"2", "Wrong usage; one sentence on standard error says what was expected."},
    {"3", "octet audit --fail-on found what it was looking for."},
    {"130, 143, 129", "Stopped by Ctrl-C, SIGTERM or SIGHUP; what was finished is kept."},
};

// docs/environment.md says more of each.
constexpr Entry kVariables[] = {
    {"OCTET_CACHE_DIR", "Folder of plan files and converted weights."},
    {"OCTET_CACHE_MAX_GB", "Limit on the total size of the converted weights."},
    {"OCTET_DEMO_MODEL", "Folder of another model for octet demo."},
    {"OCTET_FORCE_KERNEL", "Name of the only INT8 GEMM kernel that may run."},
    {"OCTET_GRAPH", "0: run every step op by op instead of replaying recorded steps."},
    {"OCTET_LOG", "Verbosity: debug, info or quiet; -v and -q take precedence."},
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
  for (const Entry& code : kExitCodes) page += paragraph(bold(code.name), code.text);
  page += section("ENVIRONMENT");
  for (const Entry& variable : kVariables) page += paragraph(bold(variable.name), variable.text);
  return page;
}

}  // namespace

void add_man(CLI::App& program, CommonFlags&) {
  CLI::App* command = program.add_subcommand("man", "Print the manual page, for man -l -");
  command->callback([&program] { std::fputs(man_page(describe(program)).c_str(), stdout); });
}

}  // namespace octet::cli
