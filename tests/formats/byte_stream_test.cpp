#include "formats/byte_stream.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <vector>

#include "formats/error_message.h"
#include "formats/temporary_folder.h"

using namespace octet;        // NOLINT: tests
using namespace octet::test;  // NOLINT: tests

namespace {

std::string gzipped(std::string_view text) {
  z_stream state = {};
  deflateInit2(&state, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&state, text.size()) + 64, '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(packed.data());
  state.avail_out = static_cast<uInt>(packed.size());
  deflate(&state, Z_FINISH);
  packed.resize(packed.size() - state.avail_out);
  deflateEnd(&state);
  return packed;
}

std::string all_of(ByteStream& bytes) {
  std::string all;
  std::vector<char> buffer(1000);
  while (const size_t count = bytes.read(buffer)) all.append(buffer.data(), count);
  return all;
}

std::string all_of(std::string_view text) {
  ByteStream bytes(text, "test");
  return all_of(bytes);
}

std::string counted_text(size_t numbers) {
  std::string text;
  for (size_t i = 0; i < numbers; ++i) text += std::to_string(i * i) + "\n";
  return text;
}

std::vector<std::string> lines_of(std::string_view text) {
  ByteStream bytes(text, "test");
  LineReader reader(bytes);
  std::vector<std::string> lines;
  for (std::string_view line; reader.next(line);) lines.emplace_back(line);
  return lines;
}

}  // namespace

TEST(ByteStream, ReadsFilesAndGzipAlike) {
  const std::string text = counted_text(100'000);
  const TemporaryFolder folder;
  for (const std::string& path :
       {folder.write("plain", text), folder.write("packed", gzipped(text)),
        folder.write("members", gzipped(text.substr(0, 17)) + gzipped(text.substr(17))),
        folder.write("padded", gzipped(text) + std::string(100, '\0'))}) {
    ByteStream bytes(path);
    EXPECT_EQ(bytes.head(), text.substr(0, ByteStream::kHeadBytes)) << path;
    EXPECT_EQ(all_of(bytes), text) << path;
    EXPECT_EQ(bytes.head(), "") << path;
  }
}

TEST(ByteStream, DamagedGzipIsRefused) {
  const std::string text = counted_text(1000), packed = gzipped(text);
  for (size_t length = 2; length < packed.size(); length += 7) {
    EXPECT_ERROR_WITH(all_of(packed.substr(0, length)),
                      "test: its gzip data are cut off at byte " + std::to_string(length));
  }
  std::string damaged = packed;
  damaged[damaged.size() - 6] ^= 1;  // of the checksum
  EXPECT_ERROR_WITH(all_of(damaged), "damaged");
  EXPECT_ERROR_WITH(all_of(packed + "garbage"), "damaged");
}

TEST(ByteStream, GzipOfNothingButBlanksIsRefused) {
  const std::string blanks(8 << 20, ' '), packed = gzipped(blanks);
  std::string members;
  for (int i = 0; i < 40; ++i) members += packed;
  ByteStream bytes(members, "test");
  std::vector<char> buffer(1 << 20);
  const auto read_all = [&] {
    while (bytes.read(buffer) > 0) {
    }
  };
  const std::string message = error_of(read_all);
  EXPECT_TRUE(contains(message, "unpacks to more than 400 times its size")) << message;
}

TEST(ByteStream, WhatCannotBeReadHasASentence) {
  const TemporaryFolder folder;
  EXPECT_ERROR_WITH(ByteStream(folder.path()), "is a folder");
  EXPECT_ERROR_WITH(ByteStream(folder.file("missing")), "missing: cannot be opened");
  EXPECT_ERROR_WITH(ByteStream(""), "is empty");
  EXPECT_ERROR_WITH(ByteStream(std::string("a\0b", 3)), "NUL");
}

TEST(ByteStream, ProgressEndsWithTheWholeFile) {
  const TemporaryFolder folder;
  const std::string text = counted_text(200'000);
  uint64_t done = 0, total = 0;
  ByteStream bytes(folder.write("a", text), [&](uint64_t now, uint64_t all) {
    EXPECT_GE(now, done);
    done = now;
    total = all;
  });
  all_of(bytes);
  EXPECT_EQ(done, text.size());
  EXPECT_EQ(total, text.size());
}

TEST(LineReader, EndsLinesEverywhere) {
  EXPECT_EQ(lines_of("a\nb\r\n\nc"), (std::vector<std::string>{"a", "b", "", "", "c"}));
  EXPECT_EQ(lines_of(""), std::vector<std::string>{});
  EXPECT_EQ(lines_of("\n"), std::vector<std::string>{""});
  const std::string text = counted_text(60'000);  // more than a buffer
  const std::vector<std::string> lines = lines_of(text);
  ASSERT_EQ(lines.size(), 60'000u);
  for (size_t i = 0; i < lines.size(); ++i) ASSERT_EQ(lines[i], std::to_string(i * i));
}

TEST(LineReader, LongLinesAreCut) {
  const auto lines = lines_of(std::string(3'000'000, 'x') + "\nend");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].size(), LineReader::kMaxLine);
  EXPECT_EQ(lines[1], "end");
}
