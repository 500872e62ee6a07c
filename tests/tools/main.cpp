// The program with seven names; see tools.h.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>

#include "tools/tools.h"

int main(int argc, char** argv) {
  const std::map<std::string, void (*)(const octet::test::Words&)> tools = {
      {"print_schedule", octet::test::print_schedule},
      {"record_latents", octet::test::record_latents},
      {"run_gemm", octet::test::run_gemm},
      {"run_model", octet::test::run_model},
      {"ship_plans", octet::test::ship_plans},
      {"tokenize", octet::test::tokenize},
      {"write_sample", octet::test::write_sample}};
  const std::string name = std::filesystem::path(argv[0]).filename().string();
  const auto tool = tools.find(name);
  if (tool == tools.end()) {
    std::fprintf(stderr, "%s: not a name of this program; they are in tests/tools/tools.h\n",
                 name.c_str());
    return 2;
  }
  try {
    tool->second({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
    return 1;
  }
}
