// The name of a checkpoint's content: the same for the same numbers, another for any change.
#include "weights/fingerprint.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace octet::test {
namespace {

using weights::Fingerprint;
using Contents = std::vector<std::byte>;

Contents random_bytes(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Contents bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

std::string name_of(const std::vector<std::pair<std::string, Contents>>& tensors, int threads = 1) {
  ThreadPool pool(threads);
  Fingerprint fingerprint;
  for (const auto& [name, bytes] : tensors) fingerprint.add(name, bytes, pool);
  return fingerprint.to_string();
}

constexpr size_t kSeveralChunks = (size_t{5} << 20) / 2 + 3;  // it hashes megabytes apart

TEST(Fingerprint, NeitherOrderNorThreadsMatter) {
  const Contents a = random_bytes(kSeveralChunks, 1), b = random_bytes(77, 2);
  const std::string name = name_of({{"a", a}, {"b", b}});
  EXPECT_EQ(name.size(), 16u);
  EXPECT_EQ(name_of({{"b", b}, {"a", a}}), name);
  for (const int threads : {2, 3}) EXPECT_EQ(name_of({{"a", a}, {"b", b}}, threads), name);
}

TEST(Fingerprint, PartsAddUp) {
  const Contents a = random_bytes(100, 1), b = random_bytes(77, 2);
  ThreadPool pool(1);
  Fingerprint first, second;
  first.add("a", a, pool);
  second.add("b", b, pool);
  first.add(second);
  EXPECT_EQ(first.to_string(), name_of({{"a", a}, {"b", b}}));
}

TEST(Fingerprint, OneBitMatters) {
  const Contents bytes = random_bytes(kSeveralChunks, 1);
  std::set<std::string> names = {name_of({{"a", bytes}})};
  const size_t megabyte = size_t{1} << 20;
  const std::vector<size_t> places = {0, 1, 31, 32, megabyte - 1, megabyte, bytes.size() - 1};
  for (const size_t at : places) {
    Contents changed = bytes;
    changed[at] ^= std::byte{1};
    names.insert(name_of({{"a", changed}}));
  }
  EXPECT_EQ(names.size(), places.size() + 1);
}

TEST(Fingerprint, NamesLengthsAndPlacesMatter) {
  const Contents a = random_bytes(64, 1), b = random_bytes(64, 2), zeros(64), more_zeros(65);
  const std::set<std::string> names = {
      name_of({}),
      name_of({{"a", a}}),
      name_of({{"b", a}}),
      name_of({{"a", a}, {"b", b}}),
      name_of({{"a", b}, {"b", a}}),  // the two swapped
      name_of({{"a", zeros}}),
      name_of({{"a", more_zeros}}),
      name_of({{"a", {}}}),
  };
  EXPECT_EQ(names.size(), 8u);
}

// Two equal halves of a tensor, exchanged with other halves, are other numbers.
TEST(Fingerprint, ChunksHaveAPlace) {
  Contents bytes = random_bytes(size_t{2} << 20, 1);
  const std::string name = name_of({{"a", bytes}});
  std::rotate(bytes.begin(), bytes.begin() + (1 << 20), bytes.end());
  EXPECT_NE(name_of({{"a", bytes}}), name);
}

}  // namespace
}  // namespace octet::test
