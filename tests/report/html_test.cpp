// Text that strangers chose is text on a page, and nothing else.
#include "report/page.h"

#include <gtest/gtest.h>

#include <vector>

#include "octet/tools/certify.h"

namespace octet::test {
namespace {

using report::html_text;
using report::png_uri;

TEST(Html, MarkupIsText) {
  EXPECT_EQ(html_text("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
  EXPECT_EQ(html_text("plain ü 日本"), "plain ü 日本");
  EXPECT_EQ(html_text(std::string("a\nb\x1b[0m\xff")).find_first_of("\n\x1b\xff"),
            std::string::npos);
}

TEST(Html, DataUris) {
  const auto uri = [](std::string_view text) { return png_uri(std::as_bytes(std::span(text))); };
  EXPECT_EQ(uri(""), "data:image/png;base64,");
  EXPECT_EQ(uri("f"), "data:image/png;base64,Zg==");
  EXPECT_EQ(uri("fo"), "data:image/png;base64,Zm8=");
  EXPECT_EQ(uri("foo"), "data:image/png;base64,Zm9v");
  EXPECT_EQ(uri("foobar"), "data:image/png;base64,Zm9vYmFy");
  EXPECT_EQ(uri("\xff\xfe\xfd"), "data:image/png;base64,//79");
}

// Everything that a page shows comes from somewhere: names, captions, devices, paths, sentences.
TEST(Html, PagesOfHostileWords) {
  const std::string bad = "\"><script>alert('x')</script>";
  Certificate certificate;
  certificate.request.model.model = bad;
  certificate.request.reference = bad;
  certificate.files = {{.path = bad}};
  certificate.reasons = {bad};
  certificate.warnings = {bad};
  CompareReport& report = certificate.report;
  report.captions = {{.name = bad, .text = bad}};
  report.prompts = {bad};
  report.images.resize(1);
  report.steps.resize(2);
  for (RenderReport* side : {&report.a, &report.b}) {
    side->device = bad;
    side->checkpoint = bad;
    side->kernels = {{.layer = bad, .path = bad, .kernel = bad}};
  }
  certificate.pictures.resize(1);
  const std::string page = certificate_page(certificate);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("alert('"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
  EXPECT_TRUE(page.starts_with("<!doctype html>"));  // as check_outputs() knows pages
}

}  // namespace
}  // namespace octet::test
