#include "report/certificate.h"

#include <gtest/gtest.h>

namespace octet::test {
namespace {

TEST(Certificate, PicturesOfGivenNoiseHaveNoSeed) {
  CompareReport report;
  report.captions = {{.name = "fox", .where = "", .text = ""}};
  ComparedImage image;
  image.seed = 3;
  EXPECT_EQ(report::name_of(image, report), "fox, seed 3");
  report.seeded = false;
  EXPECT_EQ(report::name_of(image, report), "fox");
}

}  // namespace
}  // namespace octet::test
