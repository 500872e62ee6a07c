// The devices of a machine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "report/json.h"
#include "report/text.h"

namespace octet {
namespace {

using namespace report;

Json json_of(const DeviceInfo& device) {
  return OCTET_FIELDS(device, name, description, int8_kernel, features, unavailable);
}

}  // namespace

std::string to_json(const std::vector<DeviceInfo>& devices) try {
  return document("octet.devices/1", {{"devices", list_of(devices, json_of)}});
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const std::vector<DeviceInfo>& devices) try {
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
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
