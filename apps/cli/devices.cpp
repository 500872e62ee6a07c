// octet devices
#include "octet/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "commands.h"
#include "help_page.h"
#include "output.h"
#include "output_files.h"

namespace octet::cli {
namespace {

nlohmann::ordered_json to_json(const DeviceInfo& device) {
  return {{"name", device.name},
          {"description", device.description},
          {"int8_kernel", device.int8_kernel},
          {"features", device.features},
          {"unavailable", device.unavailable}};
}

nlohmann::ordered_json to_json(const std::vector<DeviceInfo>& devices) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& device : devices) list.push_back(to_json(device));
  return {{"devices", list}};
}

std::string to_text(const std::vector<DeviceInfo>& devices) {
  Table table({"device", "INT8 kernel", "features", "what it is"}, 4);
  for (const auto& device : devices) {
    std::string what = device.description;
    if (!device.unavailable.empty()) {
      what += (what.empty() ? "" : ": ") + device.unavailable;
    }
    table.add({device.name, device.int8_kernel.empty() ? "-" : device.int8_kernel,
               fmt::format("{}", fmt::join(device.features, " ")), what});
  }
  return table.text();
}

}  // namespace

void add_devices(CLI::App& program, CommonFlags& flags) {
  CLI::App* command = program.add_subcommand("devices", "List the devices of this machine");
  add_output_flags(*command, flags);
  set_examples(*command, {"octet devices"});
  command->callback([&flags] {
    check_outputs(flags);
    const auto devices = list_devices();
    show(flags, to_text(devices), to_json(devices));
  });
}

}  // namespace octet::cli
