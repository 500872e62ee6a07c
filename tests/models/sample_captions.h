// Captions for the tests and the fuzzer: valid ones, and faulty ones with what is to be found.
#pragma once

#include <string>
#include <vector>

namespace octet::test {

struct ValidCaption {
  std::string label;
  std::string text;  // canonical: the model gets these very bytes
};

struct FaultyCaption {
  std::string label;
  std::string text;
  std::string path;  // of the first error
  std::string rule;  // a part of it
  bool fixable = false;
};

std::vector<ValidCaption> valid_captions();
std::vector<FaultyCaption> faulty_captions();

// A caption with these elements, and one with this style.
std::string with_elements(const std::string& elements);
std::string with_style(const std::string& style);

}  // namespace octet::test
