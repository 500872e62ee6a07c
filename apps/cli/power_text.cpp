#include "power_text.h"

#include <fmt/format.h>

#include "output.h"

namespace octet::cli {

nlohmann::ordered_json power_json(const PowerUse& power) {
  if (!power.is_known()) return nullptr;
  return {{"samples", power.samples},
          {"mean_w", known(power.mean_w)},
          {"max_w", known(power.max_w)},
          {"limit_w", known(power.limit_w)},
          {"joules", known(power.joules)},
          {"mean_mhz", known(power.mean_mhz)},
          {"max_celsius", known(power.max_celsius)},
          {"power_capped", power.power_capped},
          {"too_hot", power.too_hot}};
}

std::string power_line(const PowerUse& power) {
  if (!power.is_known()) return "";
  const std::string limit = power.limit_w > 0 ? fmt::format(" of {:.0f}", power.limit_w) : "";
  const std::string hot =
      power.too_hot > 0 ? fmt::format(", heat {:.0f} %", 100 * power.too_hot) : "";
  return fmt::format(
      "Power {:.0f} W{}, clock {:.0f} MHz, up to {:.0f} C; the power limit lowered the clock "
      "{:.0f} %\nof the time{}.\n",
      power.mean_w, limit, power.mean_mhz, power.max_celsius, 100 * power.power_capped, hot);
}

}  // namespace octet::cli
