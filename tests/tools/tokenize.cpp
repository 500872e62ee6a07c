// tokenize TOKENIZER.json TEXTS.json OUT.json: encodes each string of the array in TEXTS and writes
// an array of arrays of ids. For comparisons with other libraries from Python.
// tokenize --make OUT.json: writes Octet's own small tokenizer.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "formats/json.h"
#include "models/byte_tokenizer.h"
#include "models/tokenizer/tokenizer.h"

namespace octet {
namespace {

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  check(!file.fail(), "{}: could not be written", path);
}

void run(const std::string& tokenizer_path, const std::string& in, const std::string& out) {
  const tokenizer::Tokenizer tokenizer(tokenizer_path);
  nlohmann::json ids = nlohmann::json::array();
  for (const nlohmann::json& text : read_json_file(in)) {
    ids.push_back(tokenizer.encode(text.get<std::string>()));
  }
  write(out, ids.dump());
}

}  // namespace
}  // namespace octet

int main(int argc, char** argv) {
  try {
    if (argc == 3 && std::string(argv[1]) == "--make") {
      octet::write(argv[2], octet::test::make_byte_tokenizer_json());
      return 0;
    }
    octet::check(argc == 4, "usage: tokenize TOKENIZER TEXTS OUT, or tokenize --make OUT");
    octet::run(argv[1], argv[2], argv[3]);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tokenize: {}\n", error.what());
    return 1;
  }
}
