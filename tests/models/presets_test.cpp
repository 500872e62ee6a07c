// A model's own presets: what its file says, and every way in which it can be wrong.
#include "models/presets.h"

#include <gtest/gtest.h>

#include "formats/error_message.h"
#include "formats/temporary_folder.h"

namespace octet::test {
namespace {

using models::Preset;

class PresetsFile : public testing::Test {
 protected:
  models::PictureDefaults read() const {
    return models::defaults_of(models::family_named("ideogram4"), {folder_.path()});
  }
  std::string write(const std::string& text) const {
    return folder_.write("octet_presets.json", text);
  }
  // The sentence about a file, without its path.
  std::string refusal(const std::string& text) const {
    const std::string path = write(text), sentence = error_of([&] { read(); });
    EXPECT_TRUE(sentence.starts_with(path + ": ")) << sentence;
    return sentence.substr(std::min(sentence.size(), path.size() + 2));
  }
  // The same of one preset among whose keys one is another, or absent.
  std::string refusal_with(const std::string& key, const std::string& value) const {
    const std::vector<std::pair<std::string, std::string>> usual = {
        {"name", "\"fine\""},  {"steps", "20"}, {"guidance", "3.0"}, {"polish_guidance", "1.5"},
        {"polish_steps", "2"}, {"mu", "0.5"},   {"std", "1.2"}};
    std::string keys;
    for (const auto& [name, text] : usual) {
      const std::string& written = name == key ? value : text;
      if (!written.empty()) keys += (keys.empty() ? "\"" : ",\"") + name + "\":" + written;
    }
    return refusal("{\"presets\":[{" + keys + "}]}");
  }

  TemporaryFolder folder_;
};

TEST_F(PresetsFile, TakesThePlaceOfTheFamilys) {
  EXPECT_EQ(read().presets.size(), 3u);
  EXPECT_EQ(read().presets.front().name, "quality");
  EXPECT_EQ(read().size, (PictureSize{1024, 1024}));
  EXPECT_EQ(read().path, "");
  const std::string path = write(
      R"({"presets":[{"name":"default","steps":20,"guidance":3.0,"polish_guidance":1.5,
          "polish_steps":2,"mu":0.5,"std":1.2},{"name":"turbo_8","steps":8,"guidance":1,"mu":-1,
          "std":1}],"size":[256,128]})");
  const models::PictureDefaults own = read();
  EXPECT_EQ(own.path, path);
  EXPECT_EQ(own.size, (PictureSize{256, 128}));
  ASSERT_EQ(own.presets.size(), 2u);
  const Preset &first = own.presets[0], &second = own.presets[1];
  EXPECT_EQ(first.name, "default");
  EXPECT_EQ(first.official_name, "");
  EXPECT_EQ(first.steps, 20);
  EXPECT_EQ(first.phases, (std::vector<models::GuidancePhase>{{18, 3.0f}, {2, 1.5f}}));
  EXPECT_EQ(first.parameters.at("mu"), 0.5);
  EXPECT_EQ(first.parameters.at("std"), 1.2);
  EXPECT_EQ(second.name, "turbo_8");
  EXPECT_EQ(second.phases, (std::vector<models::GuidancePhase>{{8, 1.0f}}));
  EXPECT_EQ(&preset_named(own.presets, ""), &first);
  EXPECT_ERROR_WITH(preset_named(own.presets, "quality"),
                    "\"quality\" is unknown, expected default or turbo_8");
}

TEST_F(PresetsFile, NamesNoSizeWhereItIsTheFamilys) {
  write(R"({"presets":[{"name":"a","steps":1,"guidance":1,"mu":0,"std":1}]})");
  EXPECT_EQ(read().size, (PictureSize{1024, 1024}));
  EXPECT_EQ(models::size_or_default({}, read()), (PictureSize{1024, 1024}));
  EXPECT_EQ(models::size_or_default({16, 32}, read()), (PictureSize{16, 32}));
}

// A family reads its own keys, and no other family's.
TEST_F(PresetsFile, HasTheKeysOfItsFamily) {
  models::Family plain = models::family_named("ideogram4");
  plain.preset_keys = {};
  write(R"({"presets":[{"name":"a","steps":4,"guidance":2}]})");
  const auto own = models::defaults_of(plain, {folder_.path()});
  EXPECT_EQ(own.presets.front().phases, (std::vector<models::GuidancePhase>{{4, 2.0f}}));
  EXPECT_TRUE(own.presets.front().parameters.empty());
  EXPECT_ERROR_WITH(read(), "has no \"mu\"");
  write(R"({"presets":[{"name":"a","steps":4,"guidance":2,"mu":1}]})");
  EXPECT_ERROR_WITH(models::defaults_of(plain, {folder_.path()}),
                    "unknown key \"mu\", expected guidance, name, steps");
}

TEST_F(PresetsFile, IsLookedForInTurn) {
  const models::Family& family = models::family_named("ideogram4");
  const TemporaryFolder base;
  const std::string file = folder_.write("transformer.safetensors", "");
  const std::string preset = R"({"presets":[{"name":"a","steps":1,"guidance":1,"mu":0,"std":1}]})";
  base.write("octet_presets.json", preset);
  for (const std::string& model : {folder_.path(), file, std::string(), std::string("no/such")}) {
    EXPECT_EQ(models::defaults_of(family, {model, base.path()}).presets.front().name, "a");
    EXPECT_EQ(models::defaults_of(family, {model}).path, "");
  }
  const std::string own = write(preset);
  EXPECT_EQ(models::defaults_of(family, {folder_.path(), base.path()}).path, own);
}

TEST_F(PresetsFile, AsAWholeIsRefused) {
  EXPECT_EQ(refusal("[]"), "is an array of 0, expected an object");
  EXPECT_EQ(refusal("{}"), "has no \"presets\"");
  EXPECT_EQ(refusal(R"({"presets":{}})"),
            "presets is an object, expected an array of 1 to 100 objects");
  EXPECT_TRUE(contains(refusal(R"({"presets":[]})"), "presets is an array of 0"));
  EXPECT_EQ(refusal(R"({"presets":[7]})"), "preset 1: is 7, expected an object");
  EXPECT_TRUE(contains(refusal(R"({"presets":[],"presets":[]})"), "presets"));  // twice
  EXPECT_FALSE(refusal("{").empty());
  const std::string one = R"("presets":[{"name":"a","steps":1,"guidance":1,"mu":0,"std":1}])";
  EXPECT_EQ(refusal("{" + one + R"(,"sizes":[1,1]})"),
            "unknown key \"sizes\", expected presets, size");
  for (const char* size : {"256", "[256]", "[256,256,3]", "[256.5,256]", "[0,256]", "[16384,256]",
                           "[\"256\",256]", "null"}) {
    EXPECT_TRUE(contains(refusal("{" + one + ",\"size\":" + size + "}"), "size")) << size;
  }
  EXPECT_EQ(refusal("{" + one + R"(,"size":[8192,4096]})"),
            "size is 8192 x 4096, expected at most 16777216 pixels in all");
  EXPECT_EQ(refusal(R"({"presets":[{"name":"a","steps":1,"guidance":1,"mu":0,"std":1},
                                   {"name":"a","steps":2,"guidance":1,"mu":0,"std":1}]})"),
            "two presets have the name \"a\", expected one");
}

TEST_F(PresetsFile, EveryKeyOfAPresetIsChecked) {
  for (const char* key : {"name", "steps", "guidance", "mu", "std"}) {
    EXPECT_EQ(refusal_with(key, ""), "preset 1: has no \"" + std::string(key) + "\"");
    EXPECT_EQ(refusal_with(key, "null"), "preset 1: has no \"" + std::string(key) + "\"");
    EXPECT_TRUE(refusal_with(key, "[1]").starts_with("preset 1: " + std::string(key) + " is "));
  }
  for (const char* name : {"\"\"", "\"two words\"", "7", "\"caf\u00e9\""}) {
    EXPECT_TRUE(contains(refusal_with("name", name), "letters, digits, - and _")) << name;
  }
  EXPECT_FALSE(refusal_with("name", "\"" + std::string(65, 'a') + "\"").empty());
  EXPECT_EQ(refusal_with("steps", "0"), "preset 1: steps is 0, expected an integer from 1 to 1000");
  for (const char* steps : {"1001", "-1", "20.0", "\"20\"", "99999999999999999999"}) {
    EXPECT_TRUE(contains(refusal_with("steps", steps), "preset 1: steps is ")) << steps;
  }
  for (const char* number : {"101", "-101", "\"3\"", "true"}) {
    EXPECT_TRUE(contains(refusal_with("guidance", number), "preset 1: guidance is ")) << number;
    EXPECT_TRUE(contains(refusal_with("polish_guidance", number), "polish_guidance is "));
    EXPECT_TRUE(contains(refusal_with("mu", number), "preset 1: mu is ")) << number;
    EXPECT_TRUE(contains(refusal_with("std", number), "preset 1: std is ")) << number;
  }
  EXPECT_TRUE(contains(refusal_with("guidance", "-1"), "from 0 to 100"));
  EXPECT_TRUE(contains(refusal_with("std", "0"), "preset 1: std is 0"));
  EXPECT_EQ(refusal_with("polish_steps", "21"),
            "preset 1: polish_steps is 21, expected an integer from 0 to 20");
  EXPECT_EQ(refusal_with("polish_steps", ""),
            "preset 1: has one of polish_guidance and polish_steps, expected both or neither");
  EXPECT_TRUE(contains(refusal_with("polish_guidance", "null"), "null"));
  EXPECT_TRUE(contains(refusal_with("std", "1,\"sigma\":2"),
                       "unknown key \"sigma\", expected guidance, mu, name, "));
}

}  // namespace
}  // namespace octet::test
