// octet list, octet rm

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <memory>

#include "commands.h"
#include "demo/demo.h"
#include "octet/tools/report.h"
#include "octet/tools/text.h"
#include "output.h"

namespace octet::cli {
namespace {

// Nothing where it is not installed.
std::optional<LocalModel> small_model() {
  try {
    const std::string folder = demo_request("{}").model.model;
    std::vector<LocalModel> found =
        list_models({.pulled = false, .cache_dir = {}, .folders = {folder}});
    if (found.empty()) return std::nullopt;
    found.front().kind = "small";
    return found.front();
  } catch (const Error&) {
    return std::nullopt;
  }
}

void list_all(const CommonFlags& flags, const ListRequest& request) {
  check_outputs(flags, {}, request.folders);
  ModelList list{.models = list_models(request), .small = small_model()};
  list.cache_dir = cache_of_pulled(request.cache_dir);
  show(flags, to_text(list, detail_of(flags)), json_of(flags, list));
}

struct RemoveArguments {
  std::string repo, cache_dir;
  bool yes = false;
};

// On a terminal. Anything but yes is no.
bool is_agreed(const RemovedModel& found) {
  std::fputs(fmt::format("Remove {} of {} in {}? [y/N] ", human_bytes(found.bytes), found.repo,
                         printable(found.folder))
                 .c_str(),
             stderr);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

void remove_one(const CommonFlags& flags, const RemoveArguments& arguments) {
  check_outputs(flags);
  const RemovedModel found = find_pulled(arguments.repo, arguments.cache_dir);
  if (!arguments.yes) {
    if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1) {
      throw CLI::ValidationError(
          fmt::format("would remove {} in {}, and there is no terminal to ask on; give --yes",
                      human_bytes(found.bytes), printable(found.folder)));
    }
    if (!is_agreed(found)) throw Error("nothing was removed");
  }
  const RemovedModel removed = remove_model(arguments.repo, arguments.cache_dir);
  show(flags, to_text(removed, detail_of(flags)), json_of(flags, removed));
}

constexpr const char* kCacheHelp =
    "Cache folder (default: the Hub's, as set by HF_HUB_CACHE or HF_HOME)";

}  // namespace

void add_list(CLI::App& program, CommonFlags& flags) {
  CLI::App& command =
      add_command(program, flags, "list", "List the models here, their sizes and how they run");
  const auto request = std::make_shared<ListRequest>();
  add_value(command, "folder", "FOLDER", request->folders,
            "Also models in these folders, such as those that octet quantize made");
  add_value(command, "--cache-dir", "FOLDER", request->cache_dir, kCacheHelp)
      ->check(no_empty_path("a folder"));
  set_examples(command, {"octet list", "octet list models/ --json models.json"});
  command.callback([&flags, request] { list_all(flags, *request); });
}

void add_rm(CLI::App& program, CommonFlags& flags) {
  CLI::App& command =
      add_command(program, flags, "rm", "Remove a pulled model from the cache; asks first");
  const auto arguments = std::make_shared<RemoveArguments>();
  add_value(command, "repo", "REPO", arguments->repo, "owner/name, as octet list shows it")
      ->required();
  command.add_flag("--yes,-y", arguments->yes, "Do not ask");
  add_value(command, "--cache-dir", "FOLDER", arguments->cache_dir, kCacheHelp)
      ->check(no_empty_path("a folder"));
  set_examples(command, {"octet rm ideogram-ai/ideogram-4-fp8"});
  command.callback([&flags, arguments] { remove_one(flags, *arguments); });
}

}  // namespace octet::cli
