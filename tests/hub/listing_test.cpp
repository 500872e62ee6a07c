// hub: what a listing may say, and what a long one costs.
#include "hub/listing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <functional>

#include "formats/error_message.h"

namespace octet::hub {
namespace {

std::string listing_of(const std::vector<std::string>& paths) {
  std::string text = fmt::format(R"({{"sha":"{}","siblings":[)", std::string(40, 'c'));
  for (size_t i = 0; i < paths.size(); ++i) {
    text += fmt::format(R"({}{{"rfilename":"{}","size":{},"blobId":"{:040x}"}})", i > 0 ? "," : "",
                        paths[i], i, i);
  }
  return text + "]}";
}

std::vector<RemoteFile> parse(const std::vector<std::string>& paths) {
  return parse_listing(listing_of(paths), "x").files;
}

TEST(ListingTree, ANameIsAFileOrAFolder) {
  EXPECT_EQ(parse({"a/b", "a.b", "a-b/c", "ab", "a/c/d", "a b"}).size(), 6u);
  EXPECT_ERROR_WITH(parse({"b", "a", "b"}), "\"b\" is listed twice");
  EXPECT_ERROR_WITH(parse({"a", "c", "a/b"}), "\"a\" is listed as a file and as a folder");
  // Between the two come names that only begin alike.
  EXPECT_ERROR_WITH(parse({"a.b", "a/b/c", "a b", "a-", "a"}), "\"a\" is listed as a file and");
  EXPECT_ERROR_WITH(parse({"x/a/b/c", "x/a!", "x/a"}), "\"x/a\" is listed as a file and");
}

TEST(Blobs, AreOneForEqualContents) {
  const std::vector<RemoteFile> files = {{"a", 3, "e1"}, {"b", 4, "e2"}, {"c", 3, "e1"}};
  const std::vector<Blob> blobs = blobs_of(files);
  ASSERT_EQ(blobs.size(), 2u);
  EXPECT_EQ(blobs[0].paths, (std::vector<std::string>{"a", "c"}));
  const std::vector<PulledFile> report = report_of(files, {blobs[0]});
  ASSERT_EQ(report.size(), 3u);
  EXPECT_TRUE(report[0].fetched && !report[1].fetched && report[2].fetched);
  EXPECT_EQ(report[1].path, "b");
  EXPECT_EQ(report[1].bytes, 4);
  EXPECT_ERROR_WITH(blobs_of({{"a", 3, "e1"}, {"b", 4, "e1"}}), "one digest and different sizes");
}

// Processor time of this thread, the least of three: other programs take none of it.
double cost_of(const std::function<void()>& work) {
  const auto now = [] {
    timespec time = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double begin = now();
    work();
    least = std::min(least, now() - begin);
  }
  return least;
}

// Four times the files: four times the work and a bit, where the square would be sixteen times.
TEST(LongListing, CostsInProportionToItsLength) {
  const auto cost = [](size_t count) {
    std::vector<std::string> paths;
    // Deep folders, of which every one is looked at.
    for (size_t i = 0; i < count; ++i) paths.push_back(fmt::format("a/b/c/d/e/f/{}/{}", i % 97, i));
    const std::string text = listing_of(paths);
    return cost_of([&] {
      const std::vector<RemoteFile> files = parse_listing(text, "x").files;
      const std::vector<Blob> blobs = blobs_of(files);
      EXPECT_EQ(report_of(files, blobs).size(), count);
    });
  };
  EXPECT_LT(cost(16'000), 9 * cost(4'000));
}

}  // namespace
}  // namespace octet::hub
