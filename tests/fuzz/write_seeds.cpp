// Writes the files of the tests as the fuzzers' first inputs: write_seeds FOLDER fills
// FOLDER/safetensors, FOLDER/index, FOLDER/caption, FOLDER/tokenizer, FOLDER/gguf, FOLDER/dialect
// and FOLDER/recipe.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "formats/broken_files.h"
#include "formats/gguf_bytes.h"
#include "models/sample_captions.h"
#include "models/tokenizer_json.h"

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

// Of layers, by ComfyUI and by bitsandbytes.
constexpr const char* kDescriptions[] = {
    R"({"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 256})",
    R"({"format": "float8_e4m3fn", "full_precision_matrix_mult": true})",
    R"({"format": "int8_tensorwise", "params": {"convrot": true, "convrot_groupsize": 16}})",
    R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [6, 64]})",
    R"({"quant_type": "fp4", "blocksize": 64, "dtype": "float32", "shape": [6, 64],
        "nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 2.5})"};

constexpr const char* kRecipes[] = {
    R"({"format": "octet-w8a8", "alpha": 0.5, "smooth": "divide", "protected": ["a.b", "c"]})",
    R"({"smooth": true, "alpha": "half", "protected": {"a": 17}})"};

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 2) {
    std::cerr << "usage: write_seeds FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = arguments[1];
  for (const char* target :
       {"safetensors", "index", "caption", "tokenizer", "gguf", "dialect", "recipe"}) {
    std::filesystem::create_directories(folder / target);
  }
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
  write(folder / "gguf" / "sound", octet::test::sound_gguf().bytes());
  for (const auto& file : octet::test::broken_ggufs()) {
    write(folder / "gguf" / file.label, file.content);
  }
  for (const std::string text : kDescriptions) {
    write(folder / "dialect" / std::to_string(text.size()), text);
  }
  for (const std::string text : kRecipes) {
    write(folder / "recipe" / std::to_string(text.size()), text);
  }
  return 0;
}
