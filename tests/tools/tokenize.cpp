// tokenize TOKENIZER.json TEXTS.json OUT.json: encodes each string of the array in TEXTS and writes
// an array of arrays of ids. For comparisons with other libraries from Python.
// tokenize --make OUT.json: writes Octet's own small tokenizer.
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "formats/json.h"
#include "models/byte_tokenizer.h"
#include "models/tokenizer/tokenizer.h"
#include "tools/tools.h"

namespace octet::test {
namespace {

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  check(!file.fail(), "{}: could not be written", path);
}

}  // namespace

void tokenize(const Words& words) {
  if (words.size() == 2 && words[0] == "--make") {
    write_text(words[1], make_byte_tokenizer_json());
    return;
  }
  check(words.size() == 3, "usage: tokenize TOKENIZER TEXTS OUT, or tokenize --make OUT");
  const tokenizer::Tokenizer tokenizer(words[0]);
  nlohmann::json ids = nlohmann::json::array();
  for (const nlohmann::json& text : read_json_file(words[1])) {
    ids.push_back(tokenizer.encode(text.get<std::string>()));
  }
  write_text(words[2], ids.dump());
}

}  // namespace octet::test
