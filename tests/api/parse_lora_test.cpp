// FILE[:STRENGTH[:NETWORKS]] as users write it, and as they should not.
#include <gtest/gtest.h>

#include "formats/error_message.h"
#include "octet/model_options.h"

namespace octet::test {
namespace {

using Networks = std::vector<std::string>;

void expect_lora(const std::string& text, const std::string& file, float strength,
                 const Networks& networks = {}) {
  SCOPED_TRACE(text);
  EXPECT_EQ(parse_lora(text), (Lora{.file = file, .strength = strength, .networks = networks}));
}

TEST(ParseLora, StrengthAndNetworksAreOptional) {
  const std::string file = "dir/a.safetensors";
  expect_lora(file, file, 1);
  expect_lora(file + ":0.75", file, 0.75f);
  expect_lora(file + ":0", file, 0);
  expect_lora(file + ":-1.5", file, -1.5f);
  expect_lora(file + ":+2e-1", file, 0.2f);
  expect_lora(file + ":100", file, 100);
  expect_lora(file + ":0.5:cond", file, 0.5f, {"cond"});
  expect_lora(file + ":0.5:uncond", file, 0.5f, {"uncond"});
  expect_lora(file + ":1:both", file, 1, {"all"});
  expect_lora(file + ":both", file, 1, {"all"});
  expect_lora(file + ":2:all", file, 2, {"all"});
  expect_lora(file + ":unconditional", file, 1, {"unconditional"});
  expect_lora(file + ":0.5:conditional", file, 0.5f, {"conditional"});
}

TEST(ParseLora, PathsMayHaveColons) {
  expect_lora("C:\\loras\\a.safetensors", "C:\\loras\\a.safetensors", 1);
  expect_lora("C:\\loras\\a:0.5", "C:\\loras\\a", 0.5f);
  expect_lora("C:/a.safetensors:2:uncond", "C:/a.safetensors", 2, {"uncond"});
  expect_lora("run:1/a.safetensors", "run:1/a.safetensors", 1);
  expect_lora("style:v2.safetensors", "style:v2.safetensors", 1);
  expect_lora("style:2:1", "style:2", 1);
}

TEST(ParseLora, WhatIsNoStrength) {
  for (const char* strength : {"nan", "-nan", "inf", "-inf", "1e99", "1e999", "100.5", "-101"}) {
    EXPECT_ERROR_WITH(parse_lora(std::string("a.safetensors:") + strength),
                      "is not a number from -100 to 100");
  }
  for (const char* rest : {"", "0.5x", "1,5", "every", "0.5:third", ":cond"}) {
    EXPECT_ERROR_WITH(parse_lora(std::string("a.safetensors:") + rest),
                      "expected FILE[:STRENGTH[:cond|uncond|both]]");
  }
  for (const char* text : {"", ":1", ":1:both", ":cond"}) {
    EXPECT_ERROR_WITH(parse_lora(text), "the file name is empty");
  }
  EXPECT_ERROR_WITH(parse_lora("a.safetensors:\x1b[2J"), "\\u001b");
}

}  // namespace
}  // namespace octet::test
