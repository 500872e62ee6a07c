// Expected texts are those of Python's json.dumps.
#include "formats/canonical_json.h"

#include <gtest/gtest.h>

#include <limits>

namespace octet::test {
namespace {

TEST(CanonicalJson, NumbersHaveTheFewestDigits) {
  EXPECT_EQ(canonical_json(32.18108228028591), "32.18108228028591");  // nlohmann: ...5914
  EXPECT_EQ(canonical_json(0.1), "0.1");
  EXPECT_EQ(canonical_json(5e-324), "5e-324");
  EXPECT_EQ(canonical_json(1.7976931348623157e308), "1.7976931348623157e+308");
  EXPECT_EQ(canonical_json(double{1.1f}), "1.100000023841858");
}

TEST(CanonicalJson, FloatingPointShows) {
  EXPECT_EQ(canonical_json(15.0), "15.0");
  EXPECT_EQ(canonical_json(-0.0), "-0.0");
  EXPECT_EQ(canonical_json(15), "15");
  EXPECT_EQ(canonical_json(-3), "-3");
  EXPECT_EQ(canonical_json(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
}

TEST(CanonicalJson, ExponentsAreThoseOfPython) {
  EXPECT_EQ(canonical_json(1e-7), "1e-07");
  EXPECT_EQ(canonical_json(1.5e-5), "1.5e-05");
  EXPECT_EQ(canonical_json(1e-4), "0.0001");
  EXPECT_EQ(canonical_json(1e15), "1000000000000000.0");
  EXPECT_EQ(canonical_json(1e16), "1e+16");
  EXPECT_EQ(canonical_json(1.25e16), "1.25e+16");
  EXPECT_EQ(canonical_json(1e100), "1e+100");
}

TEST(CanonicalJson, KeysAreSortedAndStringsAreUtf8) {
  const auto value = nlohmann::json::parse(
      R"({"b": [1, 2.0, null, true, {}, []], "a": {"é": "日本 \u00fc\n\u0001\"\\/"}})");
  EXPECT_EQ(canonical_json(value),
            R"({"a":{"é":"日本 ü\n\u0001\"\\/"},"b":[1,2.0,null,true,{},[]]})");
}

}  // namespace
}  // namespace octet::test
