// The examples of FIPS 180-4 and its kin, and the same bytes in pieces.
#include "base/sha256.h"

#include <gtest/gtest.h>

namespace octet::test {
namespace {

TEST(Sha256, PublishedExamples) {
  EXPECT_EQ(sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_of(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesDoNotMatter) {
  const std::string text(1000, 'x');
  const std::string whole = sha256_of(text);
  for (const size_t piece : {1u, 7u, 55u, 56u, 63u, 64u, 65u, 999u}) {
    Sha256 hash;
    for (size_t at = 0; at < text.size(); at += piece) hash.add(text.substr(at, piece));
    EXPECT_EQ(hash.digest(), whole) << piece;
  }
}

}  // namespace
}  // namespace octet::test
