// The devices of a machine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "report/json.h"
#include "report/text.h"

namespace octet {

using namespace report;

OCTET_JSON(DeviceInfo, name, description, int8_kernel, features, unavailable)

std::string to_json(const std::vector<DeviceInfo>& devices) try {
  return document("octet.devices/1", {{"devices", devices}});
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
