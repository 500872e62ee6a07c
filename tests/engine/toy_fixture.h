// What the tests of the toy family share.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/toy_family.h"
#include "engine/toy_parts.h"
#include "formats/error_message.h"
#include "formats/temporary_folder.h"
#include "octet/engine.h"
#include "octet/error.h"

namespace octet::test {

// Modules of a block that become INT8, linears of a block that they are, and linears beside them.
inline constexpr int kModules = 5, kLinears = 4, kKept = 4;
inline constexpr int kBlocks = ToyShape::kBlocks;

struct Rendered {
  std::vector<Picture> pictures;
  std::vector<float> latent;  // of the last step
  RenderReport report;
};

inline bool same(const Rendered& a, const Rendered& b) {
  return a.latent == b.latent && a.pictures.front().rgb == b.pictures.front().rgb;
}

// Norms, attention and unquantized linears are summed in any order, so that whole pictures of two
// backends differ by roundings.
inline constexpr double kSameInBf16 = 0.9999, kSameInF32 = 0.9999999;

inline double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

// A model of the toy family, and caches that are nobody else's.
class ToyFamily : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    models::add_family(toy_family());
    folder_ = std::make_unique<TemporaryFolder>();
    model_ = folder_->file("model");
    write_toy_model(model_);
    for (const char* name : {"OCTET_CACHE_DIR", "HF_HUB_CACHE"}) {
      const char* value = ::getenv(name);
      before_[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
      ::setenv(name, folder_->file(name).c_str(), 1);
    }
  }
  static void TearDownTestSuite() {
    for (const auto& [name, value] : before_) {
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    }
    folder_.reset();
  }

  static ModelOptions options(const std::string& model = model_) {
    ModelOptions made;
    made.model = model;
    made.device = "cpu";
    made.threads = 1;
    made.tuning = Tuning::off;
    return made;
  }

  static PictureRequest request(const std::string& text = "a red house") {
    PictureRequest made;
    made.caption = text;
    made.size = {16, 12};
    made.seed = 5;
    return made;
  }

  static RenderCallbacks into(Rendered& made) {
    return {.latent =
                [&](const LatentStep& step) {
                  made.latent.assign(step.latent.begin(), step.latent.end());
                },
            .picture = [&](const Picture& picture) { made.pictures.push_back(picture); }};
  }
  static Rendered render(Engine& engine, const PictureRequest& asked = request()) {
    Rendered made;
    made.report = engine.render(asked, into(made));
    return made;
  }
  static Rendered render(const ModelOptions& model, const PictureRequest& asked = request()) {
    Engine engine(model);
    return render(engine, asked);
  }

  // The field that is wrong; the sentence is this family's alone.
  template <class Call>
  static std::string wrong_field(Call&& call) {
    try {
      call();
    } catch (const InvalidRequest& error) {
      EXPECT_FALSE(contains(error.what(), "Ideogram")) << error.what();
      return error.field();
    }
    return "nothing";
  }

  static inline std::unique_ptr<TemporaryFolder> folder_;
  static inline std::string model_;
  static inline std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace octet::test
