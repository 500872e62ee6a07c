#include "report/json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "octet/tools/report.h"

namespace octet::report {
namespace {

// As the JSON library lays out the whole.
std::string laid_out(const std::string& text) { return Json::parse(text).dump(2) + "\n"; }

TEST(DocumentText, PiecesAreLaidOutAsTheWhole) {
  const Json fields = {{"a", 1}, {"b", {{"c", {1, 2}}, {"d", Json::array()}}}, {"e", "x\n\"y\""}};
  const std::vector<Json> rows = {{{"m", 1}, {"n", {1.5, nullptr}}}, "text\n", Json::object()};
  DocumentText text("octet.test/1");
  text.add(fields);
  text.add_list("rows", rows);
  text.add_list("none", std::vector<Json>());
  text.add({{"end", true}});
  const std::string whole = text.take();
  EXPECT_EQ(whole, laid_out(whole));
  Json want = joined({field("schema", "octet.test/1"), fields});
  want["rows"] = rows;
  want["none"] = Json::array();
  want["end"] = true;
  EXPECT_EQ(Json::parse(whole), want);
  EXPECT_EQ(document("octet.test/1", fields),
            joined({field("schema", "octet.test/1"), fields}).dump(2) + "\n");
}

TEST(DocumentText, NamesThatAreNotUtf8AreReplaced) {
  DocumentText text("octet.test/1");
  text.add_list("names", std::vector<std::string>{"a\xff"});
  EXPECT_EQ(Json::parse(text.take()).at("names").at(0), "a\uFFFD");
}

TEST(DocumentText, NamesCannotDriveATerminal) {
  const std::string name = "é雪\x7f\u009b31m\u202e\u200f\u2028\x1b";
  const std::string text = document("octet.test/1", {{name, {{"list", {name}}}}});
  EXPECT_NE(text.find("é雪\\u007f\\u009b31m\\u202e\\u200f\\u2028\\u001b"), text.npos) << text;
  EXPECT_EQ(text.find_first_of("\x1b\x7f"), text.npos);
  EXPECT_EQ(text.find("\u009b"), text.npos);
  EXPECT_EQ(Json::parse(text).at(name).at("list").at(0), name);
}

TEST(DocumentText, AuditsAreLaidOutAsEveryResult) {
  AuditReport report;
  report.files = {"a.json"};
  report.layers.resize(2);
  report.kernels.resize(1);
  report.log.resize(1);
  const std::string text = to_json(report);
  EXPECT_EQ(text, laid_out(text));
  EXPECT_EQ(Json::parse(text).at("layers").size(), 2u);
}

}  // namespace
}  // namespace octet::report
