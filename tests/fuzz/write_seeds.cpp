// Writes the files of the tests as the fuzzers' first inputs: write_seeds FOLDER fills
// FOLDER/safetensors, FOLDER/index and FOLDER/caption.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "formats/broken_files.h"
#include "pipeline/sample_captions.h"

namespace {

void write(const std::filesystem::path& path, const std::string& content) {
  // Inputs of a hundred kilobytes only slow the fuzzer down.
  if (content.size() > 4096) return;
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 2) {
    std::cerr << "usage: write_seeds FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = arguments[1];
  std::filesystem::create_directories(folder / "safetensors");
  std::filesystem::create_directories(folder / "index");
  std::filesystem::create_directories(folder / "caption");
  write(folder / "safetensors" / "sound", octet::test::sound_file());
  for (const auto& file : octet::test::broken_safetensors()) {
    write(folder / "safetensors" / file.label, file.content);
  }
  for (const auto& file : octet::test::broken_indexes()) {
    write(folder / "index" / file.label, file.content);
  }
  for (const auto& caption : octet::test::valid_captions()) {
    write(folder / "caption" / caption.label, caption.text);
  }
  for (const auto& caption : octet::test::faulty_captions()) {
    write(folder / "caption" / caption.label, caption.text);
  }
  return 0;
}
