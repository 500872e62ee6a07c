// Writes the files of the tests as the fuzzers' first inputs: write_seeds FOLDER fills
// FOLDER/safetensors, FOLDER/index, FOLDER/caption and FOLDER/tokenizer.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "formats/broken_files.h"
#include "models/tokenizer_json.h"
#include "pipeline/sample_captions.h"

namespace {

void write(const std::filesystem::path& path, const std::string& content) {
  // Inputs of a hundred kilobytes only slow the fuzzer down.
  if (content.size() > 4096) return;
  std::ofstream(path, std::ios::binary) << content;
}

// The tests' tokenizer with a vocabulary of a few bytes.
std::string tokenizer_and_text(const std::string& text) {
  nlohmann::json json = octet::test::small_tokenizer();
  nlohmann::json vocab = nlohmann::json::object();
  for (const char* token : {"a", "b", "c", "ab", "bc", "abc", "\u0120", "\u0120a"}) {
    vocab[token] = json["model"]["vocab"][token];
  }
  json["model"]["vocab"] = vocab;
  return json.dump() + '\0' + text;
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
  std::filesystem::create_directories(folder / "tokenizer");
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
  for (const std::string text : {"abc abab<x>y", "e\u0301 a\n\n 'LL don't 12", "\xff"}) {
    write(folder / "tokenizer" / std::to_string(text.size()), tokenizer_and_text(text));
  }
  return 0;
}
