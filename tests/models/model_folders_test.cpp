// Where the parts of a model are found, in all ways in which they may be named.
#include <gtest/gtest.h>

#include <set>

#include "formats/error_message.h"
#include "formats/temporary_folder.h"
#include "models/ideogram4/files.h"
#include "weights/written_tensors.h"

namespace octet::test {
namespace {

namespace fs = std::filesystem;

models::PartFiles DitFiles(const std::string& path, const std::string& base = "") {
  return {path, base};
}

// The choices and the parts of Ideogram 4 under names of their own.
struct Choices {
  std::string model, unconditional, text_encoder, vae, tokenizer, base, fallback;
  bool guided = true;
};

struct ModelFolders {
  models::PartFiles transformer, unconditional;
  std::string text_encoder, vae, tokenizer;
};

ModelFolders find_folders(const Choices& choices) {
  models::FileChoices asked{
      .model = choices.model, .base = choices.base, .fallback = choices.fallback};
  asked.guided = choices.guided;
  asked.parts = {{"unconditional_transformer", choices.unconditional},
                 {"text_encoder", choices.text_encoder},
                 {"vae", choices.vae},
                 {"tokenizer", choices.tokenizer}};
  std::erase_if(asked.parts, [](const auto& part) { return part.second.empty(); });
  models::ModelFiles found = ideogram4::find_files(asked);
  return {found["transformer"], found["unconditional_transformer"], found["text_encoder"].path,
          found["vae"].path, found["tokenizer"].path};
}

struct Transformers {
  models::PartFiles conditional, unconditional;
};

Transformers find_transformers(const std::string& model, const std::string& base,
                               bool single_is_unconditional) {
  Transformers found;
  for (const auto& [network, files] :
       ideogram4::find_networks(model, base, single_is_unconditional ? "unconditional" : "")) {
    (network == 0 ? found.conditional : found.unconditional) = files;
  }
  return found;
}

class ModelFoldersTest : public testing::Test {
 protected:
  // A file with one tensor of each prefix.
  std::string file(const std::string& name, const std::vector<std::string>& prefixes = {""}) {
    std::vector<WrittenTensor> tensors;
    for (const std::string& prefix : prefixes) {
      tensors.push_back(written(prefix + "layers.0.x.weight", {1}, {1.0f}));
    }
    fs::create_directories(fs::path(path(name)).parent_path());
    write_tensors(path(name), tensors);
    return path(name);
  }
  void config(const std::string& folder) {
    fs::create_directories(path(folder));
    folder_.write(folder + "/config.json", "{}");
  }
  std::string path(const std::string& name) const { return folder_.file(name); }

  // As Hugging Face lays it out, without some of the parts.
  std::string model(const std::string& name, const std::set<std::string>& without = {}) {
    fs::create_directories(path(name));
    for (const char* part : {"transformer", "unconditional_transformer"}) {
      if (without.contains(part)) continue;
      config(name + "/" + part);
      file(name + "/" + part + "/model.safetensors");
    }
    for (const char* part : {"text_encoder", "vae"}) {
      if (!without.contains(part)) config(name + "/" + part);
    }
    fs::create_directories(path(name + "/tokenizer"));
    if (!without.contains("tokenizer")) folder_.write(name + "/tokenizer/tokenizer.json", "{}");
    return path(name);
  }

  TemporaryFolder folder_;
};

TEST_F(ModelFoldersTest, AWholeModel) {
  const ModelFolders found = find_folders({.model = model("m")});
  EXPECT_EQ(found.transformer, DitFiles(path("m/transformer")));
  EXPECT_EQ(found.unconditional, DitFiles(path("m/unconditional_transformer")));
  EXPECT_EQ(found.text_encoder, path("m/text_encoder"));
  EXPECT_EQ(found.vae, path("m/vae"));
  EXPECT_EQ(found.tokenizer, path("m/tokenizer/tokenizer.json"));
}

TEST_F(ModelFoldersTest, AWholeModelOverABase) {
  const ModelFolders found = find_folders({.model = model("m"), .base = model("b")});
  EXPECT_EQ(found.transformer, DitFiles(path("m/transformer"), path("b/transformer")));
  EXPECT_EQ(found.unconditional,
            DitFiles(path("m/unconditional_transformer"), path("b/unconditional_transformer")));
  EXPECT_EQ(found.vae, path("m/vae"));
}

TEST_F(ModelFoldersTest, PartsComeFromTheBaseWhereTheModelHasNone) {
  model("m", {"unconditional_transformer", "vae", "tokenizer"});
  const ModelFolders found = find_folders({.model = path("m"), .base = model("b")});
  EXPECT_EQ(found.unconditional, DitFiles(path("b/unconditional_transformer")));
  EXPECT_EQ(found.text_encoder, path("m/text_encoder"));
  EXPECT_EQ(found.vae, path("b/vae"));
  EXPECT_EQ(found.tokenizer, path("b/tokenizer/tokenizer.json"));
  EXPECT_ERROR_WITH(find_folders({.model = path("m")}), "m: there is no unconditional_transformer");
}

TEST_F(ModelFoldersTest, AFile) {
  const std::string one = file("one.safetensors"), other = file("other.safetensors");
  model("b");
  ModelFolders found = find_folders({.model = one, .unconditional = other, .base = path("b")});
  EXPECT_EQ(found.transformer, DitFiles(one, path("b/transformer")));
  EXPECT_EQ(found.unconditional, DitFiles(other, path("b/unconditional_transformer")));
  EXPECT_EQ(found.vae, path("b/vae"));
  EXPECT_EQ(found.tokenizer, path("b/tokenizer/tokenizer.json"));
  // The base's own other transformer, where none is named.
  found = find_folders({.model = one, .base = path("b")});
  EXPECT_EQ(found.unconditional, DitFiles(path("b/unconditional_transformer")));
  // Everything named.
  found = find_folders({.model = one,
                        .unconditional = path("b"),
                        .text_encoder = path("b/text_encoder"),
                        .vae = path("b")});
  EXPECT_EQ(found.unconditional, DitFiles(path("b/unconditional_transformer")));
  EXPECT_ERROR_WITH(find_folders({.model = one, .unconditional = other}), "`base`");
}

TEST_F(ModelFoldersTest, AFolderWithNothingButAFile) {
  file("folder/one.gguf");  // its content does not matter here
  file("folder/unread/x.safetensors");
  model("b");
  const ModelFolders found = find_folders(
      {.model = path("folder"), .unconditional = file("o.safetensors"), .base = path("b")});
  EXPECT_EQ(found.transformer, DitFiles(path("folder"), path("b/transformer")));
}

TEST_F(ModelFoldersTest, AFileWithBothBranches) {
  const std::string both = file("both.safetensors", {"conditional.", "unconditional."});
  const ModelFolders found = find_folders({.model = both, .base = model("b")});
  EXPECT_EQ(found.transformer, DitFiles(both, path("b/transformer")));
  EXPECT_EQ(found.unconditional, DitFiles(both, path("b/unconditional_transformer")));
  EXPECT_EQ(find_folders({.model = both, .unconditional = both, .base = path("b")}).unconditional,
            found.unconditional);
  // A base with one transformer gives nothing to the other.
  const std::string single = file("single.safetensors");
  const ModelFolders over_one =
      find_folders({.model = both, .text_encoder = path("b"), .vae = path("b"), .base = single});
  EXPECT_EQ(over_one.transformer, DitFiles(both, single));
  EXPECT_EQ(over_one.unconditional, DitFiles(both));
  // Nor does one without transformers.
  model("rest", {"transformer", "unconditional_transformer"});
  EXPECT_EQ(find_folders({.model = both, .base = path("rest")}).transformer, DitFiles(both));
}

TEST_F(ModelFoldersTest, OneTransformerIsNotTwo) {
  const std::string one = file("one.safetensors");
  fs::create_symlink(one, path("link.safetensors"));
  model("b");
  for (const std::string& other : {one, path("link.safetensors"), path("./one.safetensors")}) {
    EXPECT_ERROR_WITH(find_folders({.model = one, .unconditional = other, .base = path("b")}),
                      "was taken for both networks, but contains one");
  }
  EXPECT_ERROR_WITH(
      find_folders({.model = one, .text_encoder = path("b"), .vae = path("b"), .base = one}),
      "needs two");
  model("half", {"unconditional_transformer"});
  EXPECT_ERROR_WITH(find_folders({.model = one, .base = path("half")}), "needs two");
  // A file of the wrong branch was given: nobody says that none was.
  const std::string wrong = file("wrong.safetensors", {"conditional."});
  EXPECT_ERROR_WITH(find_folders({.model = one, .unconditional = wrong, .base = path("b")}),
                    "wrong.safetensors: was taken for the unconditional network");
}

TEST_F(ModelFoldersTest, WithoutGuidanceOneTransformerWillDo) {
  const std::string one = file("one.safetensors");
  model("half", {"unconditional_transformer"});
  for (const std::string& source : {one, path("half")}) {
    const ModelFolders found =
        find_folders({.model = source, .base = path("half"), .guided = false});
    EXPECT_EQ(found.unconditional.path, "");
    EXPECT_EQ(found.vae, path("half/vae"));
  }
  // Nobody looks at the other, broken as it may be.
  EXPECT_NO_THROW(find_folders({.model = path("half"), .unconditional = "no", .guided = false}));
}

TEST_F(ModelFoldersTest, TheFallbackComesLast) {
  const std::string one = file("one.safetensors");
  model("f");
  ModelFolders found = find_folders({.model = one, .fallback = path("f")});
  EXPECT_EQ(found.transformer, DitFiles(one));  // no weight of the other model
  EXPECT_EQ(found.unconditional, DitFiles(path("f/unconditional_transformer")));
  EXPECT_EQ(found.vae, path("f/vae"));
  found = find_folders({.model = one, .base = model("b"), .fallback = path("f")});
  EXPECT_EQ(found.unconditional, DitFiles(path("b/unconditional_transformer")));
  EXPECT_EQ(found.vae, path("b/vae"));
  const std::string both = file("both.safetensors", {"cond.", "uncond."});
  found =
      find_folders({.model = one, .text_encoder = path("f"), .vae = path("f"), .fallback = both});
  EXPECT_EQ(found.unconditional, DitFiles(both));
  EXPECT_ERROR_WITH(find_folders({.model = one,
                                  .text_encoder = path("f"),
                                  .vae = path("f"),
                                  .fallback = file("single.safetensors")}),
                    "needs two");
}

TEST_F(ModelFoldersTest, WhatIsNotThere) {
  model("m");
  EXPECT_ERROR_WITH(find_folders({.model = ""}), "empty");
  EXPECT_ERROR_WITH(find_folders({.model = path("no")}), "no: there is no such file or folder");
  EXPECT_ERROR_WITH(find_folders({.model = path("m"), .fallback = path("no")}),
                    "no: there is no such file or folder");
  EXPECT_ERROR_WITH(find_folders({.model = path("m"), .unconditional = path("no")}), "no: ");
  EXPECT_ERROR_WITH(find_folders({.model = path("m"), .base = path("no")}), "no: ");
  EXPECT_ERROR_WITH(find_folders({.model = path("m"), .vae = path("no")}), "no: ");
  fs::create_directory(path("empty"));
  EXPECT_ERROR_WITH(find_folders({.model = path("empty")}), "transformer/config.json");
  folder_.write("m/model_index.json", R"({"_class_name": "FluxPipeline"})");
  EXPECT_ERROR_WITH(find_folders({.model = path("m")}), "FluxPipeline");
  EXPECT_ERROR_WITH(find_folders({.model = file("x.safetensors"), .base = path("m")}),
                    "FluxPipeline");
}

TEST_F(ModelFoldersTest, TransformersOfAModel) {
  Transformers found = find_transformers(model("m"), "", false);
  EXPECT_EQ(found.conditional, DitFiles(path("m/transformer")));
  EXPECT_EQ(found.unconditional, DitFiles(path("m/unconditional_transformer")));
  found = find_transformers(path("m"), model("b"), true);  // it has both: nothing is single
  EXPECT_EQ(found.conditional, DitFiles(path("m/transformer"), path("b/transformer")));
  EXPECT_EQ(found.unconditional,
            DitFiles(path("m/unconditional_transformer"), path("b/unconditional_transformer")));
  model("half", {"unconditional_transformer"});
  EXPECT_EQ(find_transformers(path("half"), "", false).unconditional.path, "");
}

TEST_F(ModelFoldersTest, TransformersOfAFile) {
  const std::string one = file("one.safetensors"), base = file("base.safetensors");
  Transformers found = find_transformers(one, base, false);
  EXPECT_EQ(found.conditional, DitFiles(one, base));
  EXPECT_EQ(found.unconditional.path, "");
  found = find_transformers(one, base, /*single_is_unconditional=*/true);
  EXPECT_EQ(found.conditional.path, "");
  EXPECT_EQ(found.unconditional, DitFiles(one, base));
  const std::string both = file("both.safetensors", {"cond.", "uncond."});
  found = find_transformers(both, model("b"), true);
  EXPECT_EQ(found.conditional, DitFiles(both, path("b/transformer")));
  EXPECT_EQ(found.unconditional, DitFiles(both, path("b/unconditional_transformer")));
  EXPECT_EQ(find_transformers(both, one, false).unconditional, DitFiles(both));
  const std::string other = file("other.safetensors", {"uncond."});
  EXPECT_EQ(find_transformers(other, "", true).conditional.path, "");
  EXPECT_EQ(find_transformers(other, "", true).unconditional, DitFiles(other));
}

}  // namespace
}  // namespace octet::test
