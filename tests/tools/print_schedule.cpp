// Prints a sampling schedule as JSON, for the Python tests:
//   print_schedule official|diffusers PRESET WIDTHxHEIGHT STEPS [GUIDANCE...]
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "models/ideogram4/schedule.h"
#include "octet/error.h"
#include "models/image_size.h"

int main(int argument_count, char** arguments) {
  if (argument_count < 5) {
    std::cerr << "usage: print_schedule CONVENTION PRESET WIDTHxHEIGHT STEPS [GUIDANCE...]\n";
    return 2;
  }
  try {
    octet::models::ScheduleRequest request;
    request.convention = std::string(arguments[1]) == "official" ? octet::Convention::official
                                                                 : octet::Convention::diffusers;
    request.preset = octet::models::preset_named(octet::ideogram4::presets(), arguments[2]);
    request.size = octet::models::parse_image_size(arguments[3]);
    request.steps = std::atoi(arguments[4]);
    for (int i = 5; i < argument_count; ++i) {
      request.guidance.push_back(std::strtof(arguments[i], nullptr));
    }
    const octet::models::Schedule schedule = octet::ideogram4::make_schedule(request);
    std::cout << nlohmann::ordered_json{{"times", schedule.times},
                                        {"deltas", schedule.deltas},
                                        {"guidance", schedule.guidance}}
              << "\n";
  } catch (const octet::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
