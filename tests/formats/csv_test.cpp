#include "formats/csv.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace octet;  // NOLINT: tests

namespace {
using Cells = std::vector<std::string>;
}

TEST(Csv, SplitsCells) {
  EXPECT_EQ(split_csv("a,b c,"), (Cells{"a", "b c", ""}));
  EXPECT_EQ(split_csv(""), Cells{""});
  EXPECT_EQ(split_csv(R"("a,b","say ""no""","",x)"), (Cells{"a,b", "say \"no\"", "", "x"}));
  EXPECT_EQ(split_csv("\"void f<(int)2, true>(char*)\",1"),
            (Cells{"void f<(int)2, true>(char*)", "1"}));
  EXPECT_EQ(split_csv(R"("%" ,"42")"), (Cells{"% ", "42"}));
  EXPECT_EQ(split_csv(R"(a"b,c)"), (Cells{"a\"b", "c"}));
  EXPECT_EQ(split_csv(R"("never closed, )"), Cells{"never closed, "});
  EXPECT_EQ(split_csv(std::string(1'000'000, ',')).size(), kMaxCsvCells);
}

TEST(Csv, ReadsNumbersWithSeparators) {
  EXPECT_EQ(csv_number("42"), 42);
  EXPECT_EQ(csv_number("1,234,567.5"), 1234567.5);
  EXPECT_EQ(csv_number(" 3 "), 3);
  for (const char* text : {"", "-", "n/a", "1.2.3", "0x10"}) {
    EXPECT_TRUE(std::isnan(csv_number(text))) << text;
  }
  EXPECT_TRUE(std::isnan(csv_number(std::string(1000, '1'))));
}
