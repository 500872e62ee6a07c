// octet completion: what a shell needs to complete the program's commands, flags and values.
//
// The scripts hold words only and never call the program, so that a completion costs nothing and
// works for a program that is not on the PATH.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>

#include "command_tree.h"
#include "commands.h"

namespace octet::cli {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// One word of bash and zsh.
std::string quoted(const std::string& text) { return "'" + replaced(text, "'", R"('\'')") + "'"; }

// "'octet bench'|'octet bench gemm'": all commands below the program, as a shell's pattern.
std::string command_pattern(const Command& root, const char* separator) {
  std::vector<std::string> names;
  for (const Command* command : all_commands(root)) {
    if (command != &root) names.push_back(quoted(command->name));
  }
  return fmt::format("{}", fmt::join(names, separator));
}

std::string words_of(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.last_word());
  return fmt::format("{}", fmt::join(names, " "));
}

std::string flags_of(const Command& command) {
  std::vector<std::string> names;
  for (const Argument& argument : command.arguments) {
    if (argument.is_positional) continue;
    names.insert(names.end(), argument.names.begin(), argument.names.end());
  }
  return fmt::format("{}", fmt::join(names, " "));
}

// The assignments of the variables that _octet below reads.
std::string bash_case(const Command& command) {
  std::string values, positional;
  for (const Argument& argument : command.arguments) {
    if (argument.value.empty()) continue;
    const auto choices = argument.choices();
    const std::string what = !choices.empty()
                                 ? "words=" + quoted(fmt::format("{}", fmt::join(choices, " ")))
                             : argument.takes_path() ? "files=yes"
                                                     : "words=' '";
    if (argument.is_positional) {
      if (positional.empty()) positional = "      " + what + "\n";
    } else {
      // In place of what a positional argument would be.
      values += fmt::format("        {}) flags='' files='' {} ;;\n", fmt::join(argument.names, "|"),
                            what);
    }
  }
  if (!command.commands.empty()) {
    positional = "      words=" + quoted(words_of(command.commands)) + "\n";
  }
  return fmt::format("    {})\n      flags={}\n{}{}      ;;\n", quoted(command.name),
                     quoted(flags_of(command)), positional,
                     values.empty() ? "" : "      case $previous in\n" + values + "      esac\n");
}

std::string bash_script(const Command& root) {
  std::string cases;
  for (const Command* command : all_commands(root)) cases += bash_case(*command);
  // readline takes --flag=value for three words.
  return fmt::format(R"(# bash completion for octet, made by: octet completion bash
_octet() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command=octet flags='' words='' files='' i
  if [[ $current == '=' ]]; then current=''; fi
  if [[ $previous == '=' ]]; then previous=${{COMP_WORDS[COMP_CWORD - 2]}}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command ${{COMP_WORDS[i]}}" in
      {}) command="$command ${{COMP_WORDS[i]}}" ;;
    esac
  done
  case $command in
{}  esac
  COMPREPLY=()
  if [[ $current == -* && -n $flags ]]; then
    words=$flags
  elif [[ -n $files ]]; then
    compopt -o default
    return
  elif [[ -z $words ]]; then
    words=$flags
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -F _octet octet
)",
                     command_pattern(root, "|"), cases);
}

// "--device=[Where it runs]:DEVICE:(cpu cuda)", as zsh's _arguments reads it.
std::string zsh_spec(const Argument& argument) {
  const auto escaped = [](std::string text) {
    for (const char* special : {"\\", "[", "]", ":"}) {
      text = replaced(text, special, std::string("\\") + special);
    }
    return text;
  };
  const auto choices = argument.choices();
  const std::string action = !choices.empty()        ? fmt::format("({})", fmt::join(choices, " "))
                             : argument.takes_path() ? "_files"
                                                     : " ";
  const std::string value = fmt::format(":{}:{}", escaped(argument.value), action);
  if (argument.is_positional) {
    return "        " + quoted((argument.repeats ? "*" : "") + value) + " \\\n";
  }
  // All names of a flag exclude each other, unless it may be given again.
  const std::string before =
      argument.repeats ? "*" : fmt::format("({})", fmt::join(argument.names, " "));
  std::string specs;
  for (const std::string& name : argument.names) {
    const char* joint = argument.value.empty() ? "" : name.starts_with("--") ? "=" : "+";
    specs += "        " +
             quoted(fmt::format("{}{}{}[{}]{}", before, name, joint, escaped(argument.help),
                                argument.value.empty() ? "" : value)) +
             " \\\n";
  }
  return specs;
}

std::string zsh_case(const Command& command) {
  std::string specs;
  for (const Argument& argument : command.arguments) specs += zsh_spec(argument);
  if (!command.commands.empty()) {
    std::string list;
    for (const Command& sub : command.commands) {
      list += fmt::format(" {}", quoted(sub.last_word() + ":" + sub.summary));
    }
    specs += "        '1:command:{ local -a list; list=(" + replaced(list.substr(1), "'", "\"") +
             "); _describe command list }' \\\n";
  }
  return fmt::format("    ({})\n      _arguments -s \\\n{}        && return 0\n      ;;\n",
                     quoted(command.name), specs);
}

std::string zsh_script(const Command& root) {
  std::string cases;
  for (const Command* command : all_commands(root)) cases += zsh_case(*command);
  return fmt::format(R"(#compdef octet
# zsh completion for octet, made by: octet completion zsh
_octet() {{
  local command=octet word
  for word in ${{words[2,CURRENT-1]}}; do
    case "$command $word" in
      ({})
        command="$command $word"
        # _arguments looks at what follows the command.
        shift words
        (( CURRENT-- ))
        ;;
    esac
  done
  case $command in
{}  esac
  return 1
}}
if [[ $funcstack[1] == _octet ]]; then
  _octet "$@"
else
  compdef _octet octet
fi
)",
                     command_pattern(root, "|"), cases);
}

std::string fish_lines(const Command& command) {
  // Within '', fish reads \\ and \' only.
  const auto word = [](const std::string& text) {
    return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
  };
  const std::string here =
      fmt::format("complete -c octet -n 'test (__octet_command) = \"{}\"'", command.name);
  std::string lines;
  for (const Command& sub : command.commands) {
    lines += fmt::format("{} -a {} -d {}\n", here, sub.last_word(), word(sub.summary));
  }
  for (const Argument& argument : command.arguments) {
    std::string line = here;
    for (const std::string& name : argument.names) {
      if (argument.is_positional) continue;
      line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    const auto choices = argument.choices();
    if (!choices.empty()) {
      line += fmt::format(" -x -a {}", word(fmt::format("{}", fmt::join(choices, " "))));
    } else if (argument.takes_path()) {
      line += " -r -F";
    } else if (!argument.value.empty()) {
      line += " -x";
    }
    lines += fmt::format("{} -d {}\n", line, word(argument.help));
  }
  return lines;
}

std::string fish_script(const Command& root) {
  std::string lines;
  for (const Command* command : all_commands(root)) lines += fish_lines(*command);
  return fmt::format(R"(# fish completion for octet, made by: octet completion fish
function __octet_command
    set -l command octet
    for word in (commandline -opc)[2..-1]
        switch "$command $word"
            case {}
                set command "$command $word"
        end
    end
    echo $command
end
complete -c octet -f
{})",
                     command_pattern(root, " "), lines);
}

}  // namespace

void add_completion(CLI::App& program, CommonFlags&) {
  CLI::App* command =
      program.add_subcommand("completion", "Print the completion script for a shell");
  const auto shell = std::make_shared<std::string>();
  add_choice(*command, "shell", *shell, {"bash", "zsh", "fish"},
             "The shell that will read it: bash, zsh or fish");
  command->get_option("shell")->required();
  set_examples(*command,
               {"octet completion bash > ~/.local/share/bash-completion/completions/octet",
                "octet completion zsh > ~/.zfunc/_octet",
                "octet completion fish > ~/.config/fish/completions/octet.fish"});
  command->callback([&program, shell] {
    const Command root = describe(program);
    const std::string script = *shell == "bash"  ? bash_script(root)
                               : *shell == "zsh" ? zsh_script(root)
                                                 : fish_script(root);
    std::fputs(script.c_str(), stdout);
  });
}

}  // namespace octet::cli
