// Writes the demo model, for tests that read it with other libraries: write_demo_model FOLDER.
#include <exception>
#include <iostream>

#include "demo/demo_model.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_demo_model FOLDER\n";
    return 2;
  }
  try {
    octet::demo::write_demo_model(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "write_demo_model: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
