// octet devices
#include "octet/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "commands.h"
#include "output.h"

namespace octet::cli {
namespace {

nlohmann::ordered_json to_json(const DeviceInfo& device) {
  return {{"name", device.name},
          {"description", device.description},
          {"int8_kernel", device.int8_kernel},
          {"features", device.features},
          {"unavailable", device.unavailable}};
}

void run(const CommonFlags& flags) {
  const auto devices = list_devices();
  if (!flags.json.empty()) {
    auto list = nlohmann::ordered_json::array();
    for (const auto& device : devices) list.push_back(to_json(device));
    write_json({{"devices", list}}, flags.json);
    if (flags.json == "-") return;
  }
  Table table({"device", "INT8 kernel", "features", "what it is"}, 4);
  for (const auto& device : devices) {
    std::string what = device.description;
    if (!device.unavailable.empty()) {
      what += (what.empty() ? "" : ": ") + device.unavailable;
    }
    table.add({device.name, device.int8_kernel.empty() ? "-" : device.int8_kernel,
               fmt::format("{}", fmt::join(device.features, " ")), what});
  }
  table.print();
}

}  // namespace

void add_devices(CLI::App& program, CommonFlags& flags) {
  CLI::App* command = program.add_subcommand("devices", "List what this machine can compute on");
  add_common_flags(*command, flags);
  command->callback([&flags] { run(flags); });
}

}  // namespace octet::cli
