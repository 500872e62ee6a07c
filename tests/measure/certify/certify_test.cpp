// octet::certify() on the small model of tests/golden: files that become others while they run.
#include "octet/tools/certify.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "formats/error_message.h"
#include "formats/temporary_folder.h"
#include "models/golden_run.h"

namespace octet::test {
namespace {

namespace fs = std::filesystem;

const std::string kNetworkFile = "model/transformer/diffusion_pytorch_model.safetensors";

class CertifyTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!tokenizer::has_unicode_tables()) GTEST_SKIP() << "this build has no utf8proc";
    fs::copy(golden_path("model"), folder_.file("model"), fs::copy_options::recursive);
    request_.model.model = folder_.file("model");
    request_.model.convention = Convention::diffusers;
    request_.model.device = "cpu";
    request_.model.threads = 1;
    request_.model.tuning = Tuning::off;
    request_.picture.size = {16, 16};
    request_.picture.steps = 1;
    request_.captions = {{.name = "cat",
                          .where = "cat",
                          .text = R"({"high_level_description":"a cat",)"
                                  R"("compositional_deconstruction":)"
                                  R"({"background":"a wall","elements":[]}})"}};
    request_.min_psnr_db = request_.min_snr_db = -1000;  // files are what this is about
  }

  // With `meanwhile` called when the first picture is there.
  Certificate certify_and(const std::function<void()>& meanwhile) const {
    return certify(request_, {.picture = [&](const std::string& name, size_t, const Picture&) {
                     if (name == "a") meanwhile();
                   }});
  }

  TemporaryFolder folder_;
  CertifyRequest request_;
};

TEST_F(CertifyTest, AFileThatIsReplacedMeanwhileIsNotCertified) {
  const auto replace = [&] {
    std::string content = folder_.read(kNetworkFile);
    content.back() = static_cast<char>(content.back() ^ 1);
    fs::rename(folder_.write("other", content), folder_.file(kNetworkFile));
  };
  EXPECT_ERROR_WITH(certify_and(replace), kNetworkFile + ": changed while it was certified");
}

TEST_F(CertifyTest, TheSameTensorsInAnotherFileAreCertified) {
  const Certificate undisturbed = certify_and([] {});
  const Certificate certificate = certify_and([&] {
    const std::string content = folder_.read(kNetworkFile);
    fs::rename(folder_.write("other", content), folder_.file(kNetworkFile));
  });
  ASSERT_EQ(certificate.files.size(), 2u);
  EXPECT_EQ(certificate.files[0].tensors_sha256, undisturbed.files[0].tensors_sha256);
}

TEST_F(CertifyTest, AnInterruptionIsSaidInItsWords) {
  for (const auto& [side, name] : {std::pair{ComparedSide::a, "the reference"},
                                   std::pair{ComparedSide::b, "the checkpoint"}}) {
    const auto stops = [side = side](ComparedSide at, size_t, const RenderProgress&) {
      return at != side;
    };
    EXPECT_ERROR_WITH(certify(request_, {.progress = stops}),
                      fmt::format("certify: stopped on request while {} ran; a certificate", name));
  }
}

TEST_F(CertifyTest, FloatingPointNeedsAReference) {
  request_.model.linears = Linears::floating;
  EXPECT_ERROR_WITH(certify(request_), "`reference`");
  request_.reference = golden_path("model");
  EXPECT_TRUE(certify(request_).report.psnr_db.count == 0);  // equal
}

}  // namespace
}  // namespace octet::test
