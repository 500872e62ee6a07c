// An audit as JSON and as a page, from reports made by hand.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "octet/tools/report.h"
#include "report/page.h"

namespace octet::test {
namespace {

AuditReport fake_report() {
  AuditReport report;
  report.files = {"run.json.gz"};
  report.formats = {"PyTorch profiler trace"};
  report.device = "NVIDIA H200";
  report.verdict = AuditVerdict::fake_int8;
  report.headline = "204 of 204 linears ran as bf16 after dequantization: this is fake INT8.";
  report.notes = {"The trace has no shapes."};
  report.linears = report.fake = 204;
  report.total_us = 8000;
  report.wall_us = 9000;
  report.classes = {{"bf16 or fp16 GEMM", "half_gemm", 204, 6000, 0.75},
                    {"weight dequantization", "dequantize_weight", 204, 2000, 0.25}};
  AuditLinear linear;
  linear.layer = "layers.0.qkv";
  linear.m = 4096, linear.n = 13824, linear.k = 4608;
  linear.verdict = AuditVerdict::fake_int8;
  linear.how = "int8 weight dequantized to bf16, then a bf16 GEMM";
  linear.kernel = "nvjet_tst";
  linear.gemm_key = "half_gemm";
  linear.calls = 6, linear.gemm_us = 600, linear.dequantize_us = 200;
  report.layers = {linear};
  AuditKernel kernel;
  kernel.name = "nvjet_tst", kernel.op = "aten::mm", kernel.work = "bf16 or fp16 GEMM";
  kernel.key = "half_gemm", kernel.library = "cuBLASLt", kernel.evidence = "dtypes";
  kernel.calls = 204, kernel.us = 6000, kernel.share = 0.75;
  report.kernels = {kernel};
  kernel.name = "mystery", kernel.key = "unknown", kernel.op = "";
  report.unknown = {kernel};
  AuditPair pair;
  pair.text = "int8[13824,4608] -> bf16, then mm with k = 4608, in 34 layers";
  report.pairs = {pair};
  report.saving = {8000, 1.0, 4.0, 2.5, 2.0, "measured on an H200"};
  report.timeline = {100, 10, {"half_gemm", "dequantize_weight"}, {{10, 0, 5}, {0, 10, 5}}};
  report.log = {{"lowvram patches: 0", "Nothing was patched.", 3}};
  return report;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++count;
  return count;
}

TEST(AuditJson, HasAllThatIsKnown) {
  const auto json = nlohmann::json::parse(to_json(fake_report()));
  EXPECT_EQ(json["schema"], "octet.audit/1");
  EXPECT_EQ(json["verdict"], "fake_int8");
  EXPECT_EQ(json["linears"]["fake"], 204);
  EXPECT_EQ(json["classes"][1]["class"], "dequantize_weight");
  EXPECT_EQ(json["classes"][1]["us"], 2000);
  EXPECT_EQ(json["layers"][0]["verdict"], "fake_int8");
  EXPECT_EQ(json["layers"][0]["n"], 13824);
  EXPECT_EQ(json["kernels"][0]["op"], "aten::mm");
  EXPECT_TRUE(json["unknown"][0]["op"].is_null());
  EXPECT_EQ(json["saving"]["expected"], 2.0);
  EXPECT_EQ(json["timeline"]["us"][0], nlohmann::json({10, 0, 5}));
  EXPECT_EQ(json["log"][0]["count"], 3);
}

TEST(AuditJson, NullStandsForWhatWasNotTold) {
  const auto json = nlohmann::json::parse(to_json(AuditReport{}));
  EXPECT_EQ(json["verdict"], "unclear");
  for (const char* field : {"device", "wall_us", "timeline"}) {
    EXPECT_TRUE(json[field].is_null()) << field;
  }
  EXPECT_TRUE(json["saving"]["expected"].is_null());
  EXPECT_EQ(json["saving"]["at_most"], 1.0);
  for (const char* field : {"layers", "kernels", "unknown", "log", "notes"}) {
    EXPECT_EQ(json[field], nlohmann::json::array()) << field;
  }
}

TEST(AuditJson, BytesOfAnyKindAreJson) {
  AuditReport report = fake_report();
  report.kernels[0].name = "void k<\xff\xfe>(\"\x01)";
  report.total_us = std::numeric_limits<double>::quiet_NaN();
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_TRUE(json["kernels"][0]["name"].is_string());
  EXPECT_TRUE(json["total_us"].is_null());
}

TEST(AuditPage, SaysWhatTheReportSays) {
  std::string page = audit_page(fake_report());
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_NE(page.find("verdict fail"), page.npos);
  // Names may go on in the next line behind these, and nowhere else.
  EXPECT_NE(page.find("layers.<wbr>0.<wbr>qkv"), page.npos);
  EXPECT_EQ(page.find("overflow-wrap:anywhere"), page.npos);
  const std::string_view place = "<wbr>";
  for (size_t at = 0; (at = page.find(place)) != page.npos;) page.erase(at, place.size());
  EXPECT_NE(page.find("<strong>fake INT8</strong>"), page.npos);
  for (const char* part : {"204 of 204 linears", "layers.0.qkv", "4096 x 13824 x 4608", "mystery",
                           "75.0 %", "4.00 times", "measured on an H200", "The trace has no shapes",
                           "lowvram patches", "NVIDIA H200", "run.json.gz", "Nothing was patched",
                           "int8[13824,4608] -&gt; bf16, then mm with k = 4608, in 34 layers"}) {
    EXPECT_NE(page.find(part), page.npos) << part;
  }
  EXPECT_EQ(page.find("<script"), page.npos);
  EXPECT_EQ(page.find("http"), page.npos);  // needs no other file
}

TEST(AuditPage, TimelineIsAPathForEachClass) {
  const std::string page = audit_page(fake_report());
  EXPECT_EQ(count_of(page, "<path class=\"k-half_gemm\""), 1);
  EXPECT_EQ(count_of(page, "<path class=\"k-dequantize_weight\""), 1);
  // Two pieces of each are not empty; in the third both stand on each other.
  const size_t begin = page.find("<path class=\"k-half_gemm\"");
  EXPECT_EQ(count_of(page.substr(begin, page.find("<title>", begin) - begin), "M"), 2);
  AuditReport report = fake_report();
  report.timeline = {};
  EXPECT_EQ(audit_page(report).find("What ran when"), std::string::npos);
  report.timeline = {0, 10, {"half_gemm"}, {}};  // does not fit together
  EXPECT_EQ(audit_page(report).find("What ran when"), std::string::npos);
}

TEST(AuditPage, ColoursGoWithTheVerdict) {
  AuditReport report = fake_report();
  const auto has_colour = [&](AuditVerdict verdict, const std::string& kind) {
    report.verdict = verdict;
    return audit_page(report).find("class=\"verdict " + kind + "\"") != std::string::npos;
  };
  EXPECT_TRUE(has_colour(AuditVerdict::native_int8, "pass"));
  EXPECT_TRUE(has_colour(AuditVerdict::fallback, "fail"));
  EXPECT_TRUE(has_colour(AuditVerdict::fake_fp8, "fail"));
  EXPECT_TRUE(has_colour(AuditVerdict::weight_only, "part"));
  EXPECT_TRUE(has_colour(AuditVerdict::unclear, "part"));
}

TEST(AuditPage, EmptyReportIsAPage) {
  const std::string page = audit_page({});
  EXPECT_NE(page.find("<strong>unclear</strong>"), page.npos);
  EXPECT_TRUE(page.ends_with("</html>\n"));
}

TEST(AuditPage, ManyRowsAreCutAndCounted) {
  AuditReport report = fake_report();
  report.layers.resize(1500, report.layers.front());
  report.unknown.resize(1201, report.unknown.front());
  const std::string page = audit_page(report);
  EXPECT_NE(page.find("All linears (1500)"), page.npos);
  EXPECT_NE(page.find("... and 500 more"), page.npos);
  EXPECT_NE(page.find("... and 201 more"), page.npos);
  report.pairs.resize(20, report.pairs.front());
  EXPECT_NE(audit_page(report).find("... and 12 more"), page.npos);
}

// The verdict is that of the first model; what is uncertain is not said to be certain.
TEST(AuditPage, ModelsAndPairsAreToldAsTheTextTellsThem) {
  AuditReport report = fake_report();
  EXPECT_NE(audit_page(report).find("<li>perhaps int8["), std::string::npos);
  report.pairs[0].certain = true;
  EXPECT_NE(audit_page(report).find("<li>int8["), std::string::npos);
  AuditModel model;
  model.name = "text_encoder";
  model.headline = "4 of 4 linears ran in bf16.";
  report.models = {model, model};
  EXPECT_EQ(count_of(audit_page(report), "<p>text_<wbr>encoder: 4 of 4 linears ran in bf16."), 2);
}

// On a phone a row of eight columns is a card: its numbers need their headings.
TEST(AuditPage, NarrowPagesKeepAllColumns) {
  const std::string page = audit_page(fake_report());
  EXPECT_NE(page.find("<div class=\"wide linears\">"), page.npos);
  EXPECT_NE(page.find("<div class=\"wide kernels\">"), page.npos);
  EXPECT_NE(page.find(".linears td:nth-child(7)::before{content:\"dequantize ms \"}"), page.npos);
  EXPECT_NE(page.find(".kernels td:nth-child(8)::before{content:\"share \"}"), page.npos);
}

// Names in traces are chosen by strangers.
TEST(AuditPage, HostileWordsAreText) {
  const std::string bad = "\"><script>alert('x')</script>";
  AuditReport report = fake_report();
  report.files = report.formats = report.notes = {bad};
  report.device = report.headline = bad;
  report.classes[0].work = report.classes[0].key = bad;
  report.layers[0].layer = report.layers[0].how = report.layers[0].kernel = bad;
  for (auto* list : {&report.kernels, &report.unknown}) {
    AuditKernel& kernel = list->front();
    kernel.name = kernel.op = kernel.work = kernel.key = kernel.library = bad;
    kernel.evidence = kernel.shapes = bad;
  }
  report.saving.source = report.pairs[0].text = bad;
  AuditModel model;
  model.name = model.headline = bad;
  report.models = {model};
  report.timeline.keys[0] = bad;
  report.log = {{bad, bad, 1}};
  const std::string page = audit_page(report);
  EXPECT_EQ(page.find("<script"), page.npos);
  EXPECT_NE(page.find("&lt;script&gt;"), page.npos);
}

TEST(Svg, TextIsText) {
  EXPECT_EQ(report::svg_text(1, 2, "end", "a<b"),
            "<text class=\"tick\" x=\"1.0\" y=\"2.0\" text-anchor=\"end\">a&lt;b</text>");
  EXPECT_EQ(report::svg_box(0, 0, 1, 2, "k", "\""),
            "<rect class=\"k\" x=\"0.0\" y=\"0.0\" width=\"1.0\" height=\"2.0\">"
            "<title>&quot;</title></rect>");
}

TEST(Page, TitleIsText) {
  EXPECT_NE(report::page_head("a</title><b>", "").find("<title>a&lt;/title&gt;&lt;b&gt;</title>"),
            std::string::npos);
}

}  // namespace
}  // namespace octet::test
