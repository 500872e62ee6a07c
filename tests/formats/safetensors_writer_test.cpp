#include "formats/safetensors_writer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>

#include "formats/error_message.h"
#include "formats/safetensors.h"
#include "formats/temporary_folder.h"
#include "formats/tensor_view.h"

namespace octet::test {
namespace {

std::vector<std::byte> pattern(uint64_t bytes, int seed) {
  std::vector<std::byte> result(bytes);
  for (uint64_t i = 0; i < bytes; ++i) {
    result[i] = static_cast<std::byte>(static_cast<uint64_t>(seed) * 31 + i * 7);
  }
  return result;
}

TEST(SafetensorsWriter, RoundTripsEveryTypeAligned) {
  const TemporaryFolder folder;
  std::vector<TensorDeclaration> tensors;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    // 4 x 3 elements fill whole bytes in every type; the odd ones shift what comes after them.
    tensors.push_back({"a." + std::string(name_of(dtype)), dtype, {4, 3}});
    if (bits_of(dtype) >= 8) tensors.push_back({std::string(name_of(dtype)), dtype, {5}});
    tensors.push_back({"none." + std::string(name_of(dtype)), dtype, {0, 5}});
  }
  tensors.push_back({"scalar", DType::f32, {}});
  const std::string path = folder.file("all.safetensors");
  SafetensorsWriter writer(path, tensors, {{"format", "pt"}, {"nötè", "line\n\"two\""}});
  int seed = 0;
  for (const TensorInfo& info : writer.layout()) {
    writer.write(info.name, pattern(info.bytes(), seed++));
  }
  writer.commit();

  const SafetensorsFile file(path);
  EXPECT_EQ(file.metadata().at("nötè"), "line\n\"two\"");
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (const TensorDeclaration& tensor : tensors) {
    EXPECT_EQ(file.info(tensor.name).dtype, tensor.dtype);
    EXPECT_EQ(file.info(tensor.name).shape, tensor.shape);
    EXPECT_NO_THROW(view_of(file, tensor.name)) << tensor.name;
  }
  seed = 0;
  for (const TensorInfo& info : writer.layout()) {
    EXPECT_TRUE(std::ranges::equal(file.bytes(info.name), pattern(info.bytes(), seed++)));
  }
  const auto first = reinterpret_cast<uintptr_t>(file.bytes(file.tensors()[0].name).data());
  EXPECT_EQ(first % 64, 0u);
}

TEST(SafetensorsWriter, KeepsTheDeclaredOrderWithinAnAlignment) {
  const TemporaryFolder folder;
  const SafetensorsWriter writer(folder.file("a.safetensors"), {{"z", DType::i8, {1}},
                                                                {"y", DType::f32, {1}},
                                                                {"b", DType::u8, {1}},
                                                                {"a", DType::i32, {1}}});
  std::string order;
  for (const TensorInfo& info : writer.layout()) order += info.name;
  EXPECT_EQ(order, "yazb");
}

TEST(SafetensorsWriter, TakesATensorInPieces) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.safetensors");
  SafetensorsWriter writer(path, {{"w", DType::u8, {10}}, {"v", DType::u8, {1}}});
  const auto bytes = pattern(10, 3);
  writer.write("w", std::span(bytes).first(3));
  writer.write("w", {});
  writer.write("w", std::span(bytes).subspan(3));
  writer.write("v", std::span(bytes).first(1));
  writer.commit();
  EXPECT_TRUE(std::ranges::equal(SafetensorsFile(path).bytes("w"), bytes));
}

TEST(SafetensorsWriter, AFileWithoutTensorsIsFine) {
  const TemporaryFolder folder;
  SafetensorsWriter(folder.file("a.safetensors"), {}).commit();
  EXPECT_TRUE(SafetensorsFile(folder.file("a.safetensors")).tensors().empty());
}

TEST(SafetensorsWriter, RefusesDeclarationsThatNoReaderWouldTake) {
  const TemporaryFolder folder;
  const auto declare = [&](const std::vector<TensorDeclaration>& tensors,
                           const std::map<std::string, std::string>& metadata = {}) {
    SafetensorsWriter writer(folder.file("a.safetensors"), tensors, metadata);
  };
  EXPECT_ERROR_WITH(declare({{"w", DType::u8, {1}}, {"w", DType::i8, {1}}}), "\"w\": the name");
  EXPECT_ERROR_WITH(declare({{"a\xff", DType::u8, {1}}}), "not UTF-8");
  EXPECT_ERROR_WITH(declare({{"__metadata__", DType::u8, {1}}}), "reserves");
  EXPECT_ERROR_WITH(declare({{"w", DType::u8, {-1}}}), "negative");
  EXPECT_ERROR_WITH(declare({{"w", DType::u8, {1LL << 40, 1LL << 40}}}), "overflow");
  EXPECT_ERROR_WITH(declare({{"w", DType::f4, {3}}}), "whole bytes");
  EXPECT_ERROR_WITH(declare({}, {{"k", "\xff"}}), "\"k\" is not UTF-8");
  EXPECT_EQ(folder.entries(), 0u);
}

class FailedWrite : public ::testing::Test {
 protected:
  // Nothing is left in the folder but the old file, with its old content.
  void expect_untouched() const {
    EXPECT_EQ(folder_.entries(), 1u);
    EXPECT_EQ(folder_.read("a.safetensors"), "old");
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.write("a.safetensors", "old");
  std::vector<TensorDeclaration> tensors_ = {{"w", DType::u8, {8}}, {"v", DType::u8, {8}}};
  std::vector<std::byte> bytes_ = pattern(16, 1);
};

TEST_F(FailedWrite, AnAbandonedWriterLeavesNothing) {
  {
    SafetensorsWriter writer(path_, tensors_);
    writer.write("w", std::span(bytes_).first(8));
    EXPECT_EQ(folder_.read("a.safetensors"), "old");
  }
  expect_untouched();
}

TEST_F(FailedWrite, AnIncompleteFileIsNotCommitted) {
  {
    SafetensorsWriter writer(path_, tensors_);
    EXPECT_ERROR_WITH(writer.commit(), "\"w\": is incomplete, 0 of 8");
    writer.write("w", std::span(bytes_).first(8));
    writer.write("v", std::span(bytes_).first(3));
    EXPECT_ERROR_WITH(writer.commit(), "\"v\": is incomplete, 3 of 8");
  }
  expect_untouched();
}

TEST_F(FailedWrite, AWrongOrderOrSizeEndsTheWrite) {
  SafetensorsWriter wrong_order(path_, tensors_);
  EXPECT_ERROR_WITH(wrong_order.write("v", std::span(bytes_).first(8)), "out of order");
  EXPECT_ERROR_WITH(wrong_order.commit(), "given up");
  SafetensorsWriter too_long(path_, tensors_);
  EXPECT_ERROR_WITH(too_long.write("w", std::span(bytes_).first(9)), "9 bytes were written");
  EXPECT_ERROR_WITH(too_long.write("w", std::span(bytes_).first(8)), "given up");
  expect_untouched();
}

TEST_F(FailedWrite, AFullDiskEndsTheWrite) {
  // A limit on file sizes makes write() fail half-way, as a full disk does.
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto previous_handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {1 << 20, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto bytes = pattern(3 << 20, 1);
  {
    SafetensorsWriter writer(path_, {{"w", DType::u8, {3 << 20}}});
    EXPECT_ERROR_WITH(writer.write("w", bytes), "a.safetensors: writing failed");
    EXPECT_EQ(folder_.entries(), 1u);
    EXPECT_ERROR_WITH(writer.commit(), "given up");
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, previous_handler);
  expect_untouched();
}

TEST_F(FailedWrite, AFolderThatIsNotThereIsNamed) {
  EXPECT_ERROR_WITH(SafetensorsWriter("/nonexistent/a.safetensors", tensors_),
                    "/nonexistent/a.safetensors");
}

}  // namespace
}  // namespace octet::test
