// Renders a caption: picture MODEL CAPTION.json OUT.png
#include <iostream>

#include "octet/caption.h"
#include "octet/devices.h"
#include "octet/error.h"
#include "octet/generate.h"
#include "octet/version.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: picture MODEL CAPTION.json OUT.png\n";
    return 2;
  }
  try {
    std::cout << "Octet " << octet::version() << " on\n";
    for (const octet::DeviceInfo& device : octet::list_devices()) {
      if (device.unavailable.empty()) std::cout << "  " << device.description << "\n";
    }

    const octet::CaptionReport caption = octet::check_caption(octet::read_caption(argv[2]));
    for (const octet::CaptionFinding& finding : caption.findings) {
      std::cerr << finding.path << ": " << finding.rule << "\n";
    }
    if (!caption.valid()) return 1;

    octet::GenerateRequest request;
    request.model = argv[1];
    request.caption = caption.canonical;
    request.size = "512x512";
    request.preset = "turbo";
    request.seed = 7;
    const auto on_step = [](const octet::GenerateStep& step) {
      std::cerr << step.stage << " " << step.done << "/" << step.total << " " << step.unit << "\n";
      return true;  // false ends the work
    };
    octet::generate(request, on_step,
                    [&](const octet::Picture& picture) { octet::write_picture(argv[3], picture); });
  } catch (const octet::Error& error) {
    std::cerr << "picture: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
