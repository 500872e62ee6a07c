// Prints a sampling schedule as JSON, for the Python tests:
//   print_schedule official|diffusers PRESET WIDTHxHEIGHT STEPS [GUIDANCE...]
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/ideogram4/schedule.h"
#include "models/image_size.h"
#include "tools/tools.h"

namespace octet::test {

void print_schedule(const Words& words) {
  check(words.size() >= 4,
        "usage: print_schedule CONVENTION PRESET WIDTHxHEIGHT STEPS [GUIDANCE...]");
  models::ScheduleRequest request;
  request.convention = words[0] == "official" ? Convention::official : Convention::diffusers;
  request.preset = models::preset_named(ideogram4::presets(), words[1]);
  request.size = models::parse_image_size(words[2]);
  request.steps = std::stoi(words[3]);
  for (size_t i = 4; i < words.size(); ++i) request.guidance.push_back(std::stof(words[i]));
  const models::Schedule schedule = ideogram4::make_schedule(request);
  std::cout << nlohmann::ordered_json{{"times", schedule.times},
                                      {"deltas", schedule.deltas},
                                      {"guidance", schedule.guidance}}
            << "\n";
}

}  // namespace octet::test
