// FILE[:STRENGTH[:NETWORKS]] as users write it, and as they should not.
#include "weights/lora/lora_request.h"

#include <gtest/gtest.h>

#include "formats/error_message.h"

namespace octet::test {
namespace {

using weights::LoraNetworks;
using weights::parse_lora_request;

void expect_request(const std::string& text, const std::string& path, float strength,
                    LoraNetworks networks) {
  SCOPED_TRACE(text);
  const weights::LoraRequest request = parse_lora_request(text);
  EXPECT_EQ(request.path, path);
  EXPECT_EQ(request.strength, strength);
  EXPECT_EQ(request.networks, networks);
}

TEST(LoraRequest, StrengthAndNetworksAreOptional) {
  const std::string file = "dir/a.safetensors";
  expect_request(file, file, 1, LoraNetworks::as_named);
  expect_request(file + ":0.75", file, 0.75f, LoraNetworks::as_named);
  expect_request(file + ":0", file, 0, LoraNetworks::as_named);
  expect_request(file + ":-1.5", file, -1.5f, LoraNetworks::as_named);
  expect_request(file + ":+2e-1", file, 0.2f, LoraNetworks::as_named);
  expect_request(file + ":100", file, 100, LoraNetworks::as_named);
  expect_request(file + ":0.5:cond", file, 0.5f, LoraNetworks::conditional);
  expect_request(file + ":0.5:uncond", file, 0.5f, LoraNetworks::unconditional);
  expect_request(file + ":1:both", file, 1, LoraNetworks::both);
  expect_request(file + ":both", file, 1, LoraNetworks::both);
}

TEST(LoraRequest, PathsMayHaveColons) {
  expect_request("C:\\loras\\a.safetensors", "C:\\loras\\a.safetensors", 1, LoraNetworks::as_named);
  expect_request("C:\\loras\\a:0.5", "C:\\loras\\a", 0.5f, LoraNetworks::as_named);
  expect_request("C:/a.safetensors:2:uncond", "C:/a.safetensors", 2, LoraNetworks::unconditional);
  expect_request("run:1/a.safetensors", "run:1/a.safetensors", 1, LoraNetworks::as_named);
  expect_request("style:v2.safetensors", "style:v2.safetensors", 1, LoraNetworks::as_named);
  expect_request("style:2:1", "style:2", 1, LoraNetworks::as_named);
}

TEST(LoraRequest, WhatIsNoStrength) {
  for (const char* strength : {"nan", "-nan", "inf", "-inf", "1e99", "1e999", "100.5", "-101"}) {
    EXPECT_ERROR_WITH(parse_lora_request(std::string("a.safetensors:") + strength),
                      "is not a number from -100 to 100");
  }
  for (const char* rest : {"", "0.5x", "1,5", "all", "0.5:conditional", ":cond"}) {
    EXPECT_ERROR_WITH(parse_lora_request(std::string("a.safetensors:") + rest),
                      "expected FILE[:STRENGTH[:cond|uncond|both]]");
  }
  for (const char* text : {"", ":1", ":1:both", ":cond"}) {
    EXPECT_ERROR_WITH(parse_lora_request(text), "the file name is empty");
  }
  EXPECT_ERROR_WITH(parse_lora_request("a.safetensors:\x1b[2J"), "\\u001b");
}

}  // namespace
}  // namespace octet::test
