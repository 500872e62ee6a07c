// Codes that are kept from one load for the next, and everything that makes them useless.
#include "weights/converted_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>

#include "base/error.h"
#include "weights/converted_cache_fixture.h"

namespace octet::test {
namespace {

TEST_F(ConvertedCacheTest, FingerprintIsTheSameWithAndWithoutIt) {
  const auto fingerprint = [&](const weights::WeightSource& from, auto... changes) {
    weights::Loader loader(from, *backend_, {});
    visit(loader);
    weights::Fingerprint sum = loader.fingerprint();
    (sum.add(changes), ...);
    return sum.to_string();
  };
  const std::string made = fingerprint(source());
  load();
  const auto found = cache(source()).find();
  ASSERT_NE(found, nullptr);
  weights::WeightSource with_cache = source();
  with_cache.add_converted(found, "");
  EXPECT_EQ(fingerprint(with_cache, ConvertedCache::made_from(*found)), made);
  EXPECT_NE(fingerprint(with_cache), made);
}

TEST_F(ConvertedCacheTest, KeepsWhatWasConverted) {
  EXPECT_EQ(cache(source()).find(), nullptr);
  load();
  ASSERT_EQ(files().size(), 1u);
  const auto found = cache(source()).find();
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->tensors().size(), 7u);  // and the fingerprint
  EXPECT_EQ(codes_.size(), 2u);
  for (const std::string name : {"a", "b"}) {
    const TensorInfo& weight = found->info(name + ".weight");
    EXPECT_EQ(weight.dtype, DType::i8);
    EXPECT_EQ(weight.shape, (FileShape{kCacheRows, kCacheWide}));
    const auto bytes = found->bytes(name + ".weight");
    EXPECT_EQ(std::vector<std::byte>(bytes.begin(), bytes.end()), codes_.at("x." + name));
    const TensorInfo& scale = found->info(name + ".weight_scale");
    EXPECT_EQ(scale.dtype, DType::f32);
    EXPECT_EQ(scale.shape, (FileShape{kCacheRows, 1}));
    // Row 0 of these values has a 50 or close to it: the scale is amax / 127.
    const float first =
        weights::load_as_f32(DType::f32, found->bytes(name + ".weight_scale").data(), 0);
    EXPECT_NEAR(first, 50.0f / 127, 1.5f / 127);
    const auto quant = found->bytes(name + ".comfy_quant");
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(quant.data()), quant.size()),
              R"({"format": "int8_tensorwise"})");
  }
}

TEST_F(ConvertedCacheTest, IsOfOneBaseAndOneChange) {
  load("lora 1");
  EXPECT_NE(cache(source(), "lora 1").find(), nullptr);
  EXPECT_EQ(cache(source(), "lora 2").find(), nullptr);
  EXPECT_EQ(cache(source()).find(), nullptr);
}

// As cp -p and rsync -t do.
TEST_F(ConvertedCacheTest, ASourceThatKeptItsSizeAndTimeIsAnother) {
  const std::string base = folder_.file("base.safetensors");
  load();
  ASSERT_NE(cache(source()).find(), nullptr);
  const auto time = fs::last_write_time(base);
  const auto size = fs::file_size(base);
  write_base(2);
  fs::last_write_time(base, time);
  ASSERT_EQ(fs::file_size(base), size);
  EXPECT_EQ(cache(source()).find(), nullptr) << "another file in its place";
  load();
  ASSERT_NE(cache(source()).find(), nullptr);
  {
    std::fstream file(base, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('x');
  }
  fs::last_write_time(base, time);
  EXPECT_EQ(cache(source()).find(), nullptr) << "other bytes in the same file";
}

TEST_F(ConvertedCacheTest, ASourceThatWasMovedIsTheSame) {
  load();
  fs::create_directory(folder_.file("before"));
  fs::rename(folder_.file("base.safetensors"), folder_.file("before/base.safetensors"));
  const auto moved = [&](const char* folder) {
    const weights::WeightSource from(
        std::make_shared<Checkpoint>(folder_.file(folder) + "/base.safetensors"), "x.");
    return cache(from).find() != nullptr;
  };
  // Renaming the file itself is a change of it; renaming a folder above it is none.
  const bool is_found = moved("before");
  fs::rename(folder_.file("before"), folder_.file("after"));
  EXPECT_EQ(moved("after"), is_found);
}

TEST_F(ConvertedCacheTest, OtherFilesUnderItsNameDoNotCount) {
  load();
  const std::string path = files().front().string();
  const Checkpoint good(path);
  const std::string key = good.metadata().at("octet_converted_from");
  write_tensors(path, {written("a.weight", {1}, {1})}, {{"octet_converted_from", key}});
  EXPECT_EQ(cache(source()).find(), nullptr);
  write_tensors(path, {written("a.weight", {1}, {1})}, {{"octet_converted_from", "else"}});
  EXPECT_EQ(cache(source()).find(), nullptr);
  folder_.write("cache/" + files().front().filename().string(), "damaged");
  EXPECT_EQ(cache(source()).find(), nullptr);
  load();
  EXPECT_NE(cache(source()).find(), nullptr);
}

// What loading would stumble over each time, though the header is as it was.
TEST_F(ConvertedCacheTest, DamagedTensorsAreMadeAgain) {
  load();
  const std::string path = files().front().string();
  for (const char* tensor : {"a.comfy_quant", "b.weight_scale"}) {
    {
      const Checkpoint good(path);
      const TensorInfo& info = good.info(tensor);
      const auto data = fs::file_size(path) - good.files().front().tensors().back().end;
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(data + info.begin));
      file << std::string(info.bytes(), '\xff');
    }
    EXPECT_EQ(cache(source()).find(), nullptr) << tensor;
    load();
    EXPECT_NE(cache(source()).find(), nullptr) << tensor;
  }
}

TEST_F(ConvertedCacheTest, RotationsAreSaidAndSmoothingIsLeftOut) {
  weights::WeightSource from = source();
  const std::vector<float> codes(kCacheRows * kCacheWide, 3);
  const weights::StoredTransform rotated{.kind = Transform::rotate, .group = 16};
  const weights::StoredTransform smoothed{.kind = Transform::smooth,
                                          .smooth = std::vector<float>(kCacheWide, 2)};
  from.set_change([&](std::unique_ptr<StoredWeight>, const std::string& module) {
    return std::make_unique<GivenWeight>(kCacheRows, codes, module == "a" ? rotated : smoothed);
  });
  ConvertedCache kept = cache(from);
  const Buffer values = allocate_host(kCacheRows * kCacheWide),
               scales = allocate_host(kCacheRows * 4);
  std::memset(values.data(), 1, kCacheRows * kCacheWide);
  std::memset(scales.data(), 0, kCacheRows * 4);
  kept.keep(
      *from.weight("a", kCacheRows, kCacheWide),
      {values.view(DType::i8, {kCacheRows, kCacheWide}), scales.view(DType::f32, {kCacheRows})},
      weights::Fingerprint());
  kept.commit();
  const auto found = cache(from).find();
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->tensors().size(), 4u);  // and the fingerprint
  const auto quant = found->bytes("a.comfy_quant");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(quant.data()), quant.size()),
            R"({"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 16})");
}

TEST_F(ConvertedCacheTest, TheOldestMakesRoom) {
  max_bytes_ = 10'000;  // two of 4.5 KB
  load("1");
  load("2");
  EXPECT_EQ(files().size(), 2u);
  const auto age = [&](const std::string& change, int hours) {
    const auto found = cache(source(), change).find();
    ASSERT_NE(found, nullptr);
    const timespec time = {.tv_sec = ::time(nullptr) - hours * 3600, .tv_nsec = 0};
    const timespec times[] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, found->path().c_str(), times, 0), 0);
  };
  age("1", 5);
  age("2", 7);
  EXPECT_NE(cache(source(), "2").find(), nullptr);  // using it makes it the newest
  load("3");
  EXPECT_EQ(files().size(), 2u);
  EXPECT_EQ(cache(source(), "1").find(), nullptr);
  EXPECT_NE(cache(source(), "2").find(), nullptr);
  EXPECT_NE(cache(source(), "3").find(), nullptr);
}

// Else a second process that finds it would end the first one's work.
TEST_F(ConvertedCacheTest, FindingItIsNoChangeToWhoReadsIt) {
  load();
  fs::last_write_time(files().front(), fs::file_time_type::clock::now() - std::chrono::hours(1));
  const auto first = cache(source()).find();
  ASSERT_NE(first, nullptr);
  ASSERT_NE(cache(source()).find(), nullptr);
  first->check_intact();
}

TEST_F(ConvertedCacheTest, OnlyItsOwnFilesMakeRoom) {
  max_bytes_ = 10'000;  // two of 4.5 KB
  load("1");
  const fs::path own = files().front();
  // Larger than the limit, and older than anything.
  std::set<fs::path> others;
  const auto add = [&](const std::string& name, std::string_view content) {
    fs::path path = folder_.write("cache/" + name, content);
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1000));
    others.insert(path);
  };
  const std::string large(20'000, 'x'), hash = "0123456789abcdef";
  const std::string content = folder_.read("cache/" + own.filename().string());
  add("model.safetensors", large);
  add("a model of mine.safetensors", content);  // a copy under a name of its user's
  add(hash + "0.safetensors", content);
  for (const char* suffix : {".safetensors", ".safetensors.part", ".safetensors.part.journal",
                             ".safetensors.part.journal.new", ".safetensors.bak", ""}) {
    add(hash + suffix, large);
  }
  fs::create_symlink("model.safetensors", cache_folder() / "fedcba9876543210.safetensors");
  others.insert(cache_folder() / "fedcba9876543210.safetensors");
  fs::create_symlink("0000000000000000.safetensors",
                     cache_folder() / "0000000000000000.safetensors");  // a link in a circle
  others.insert(cache_folder() / "0000000000000000.safetensors");
  load("2");
  EXPECT_EQ(files().size(), others.size() + 2) << "others count as if they were its own";
  load("3");
  load("4");
  const std::vector<fs::path> now = files();
  for (const fs::path& other : others) {
    EXPECT_EQ(std::count(now.begin(), now.end(), other), 1) << other;
  }
  EXPECT_EQ(now.size(), others.size() + 2);
  EXPECT_EQ(std::count(now.begin(), now.end(), own), 0);
}

// A run that is killed right behind the renaming, or whose part somebody removed.
TEST_F(ConvertedCacheTest, JournalsWithoutAPartAreRemoved) {
  const auto is_there = [](const std::string& path) { return fs::exists(path); };
  load("1");
  const std::string first = files().front().string() + ".part.journal";
  folder_.write("journal", "octet finished tensors of job 0123456789abcdef\n");
  fs::copy_file(folder_.file("journal"), first);
  EXPECT_NE(cache(source(), "1").find(), nullptr);
  EXPECT_FALSE(is_there(first)) << "found, and hence never opened for writing";
  const std::string other = (cache_folder() / "0123456789abcdef.safetensors.part.journal").string();
  for (const std::string& path : {first, other, other + ".new"}) {
    fs::copy_file(folder_.file("journal"), path);
  }
  load("2");
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(ConvertedCacheTest, OthersPartsBesideItsJournalsStay) {
  max_bytes_ = 5'000;  // one of 4.5 KB
  fs::create_directory(cache_folder());
  const std::string journal = "octet finished tensors of job 0123456789abcdef\n";
  fs::create_directory(folder_.file("mine"));
  // A link to a file elsewhere, which has a part (an empty one, too) and a journal of its own.
  for (const std::string name : {"0123456789abcdef", "fedcba9876543210"}) {
    const std::string mine = "mine/" + name + ".safetensors";
    folder_.write(mine, "mine");
    folder_.write(mine + ".part", name.starts_with("0") ? "mine" : "");
    folder_.write(mine + ".part.journal", journal);
    fs::create_symlink(folder_.file(mine), cache_folder() / (name + ".safetensors"));
    folder_.write("cache/" + name + ".safetensors.part.journal", journal);
  }
  const std::string part = "cache/00000000000000aa.safetensors.part";
  folder_.write(part, "mine");
  folder_.write(part + ".journal", journal);
  load("1");  // newer than all these, so they come first when room is made
  load("2");
  EXPECT_EQ(cache(source(), "1").find(), nullptr) << "there was no need for room";
  for (const auto* name : {"0123456789abcdef", "fedcba9876543210"}) {
    const std::string mine = folder_.file("mine/") + name + ".safetensors";
    EXPECT_TRUE(fs::exists(mine + ".part")) << name;
    EXPECT_TRUE(fs::exists(mine + ".part.journal")) << name;
  }
  EXPECT_EQ(folder_.read(part), "mine");
}

TEST_F(ConvertedCacheTest, NothingBreaksALoad) {
  max_bytes_ = 1000;  // too small for one
  load();
  EXPECT_TRUE(files().empty());
  max_bytes_ = 0;
  load();
  EXPECT_TRUE(files().empty());
  max_bytes_ = 1'000'000;
  load();
  EXPECT_EQ(files().size(), 1u);  // it was for want of room
  fs::remove_all(cache_folder());
  folder_.write("cache", "a file where the folder should be");
  load();
  EXPECT_EQ(cache(source()).find(), nullptr);
}

TEST_F(ConvertedCacheTest, GoesOnWhereARunWasEnded) {
  {
    const weights::WeightSource from = source();
    ConvertedCache kept = cache(from);
    weights::LoadOptions options;
    options.converted = [&](const StoredWeight& weight, const QTensor& codes,
                            const auto& made_from) {
      check(weight.module() != "x.b", "stopped");
      kept.keep(weight, codes, made_from);
    };
    weights::Loader loader(from, *backend_, options);
    EXPECT_ERROR_WITH(visit(loader), "stopped");
  }
  EXPECT_EQ(cache(source()).find(), nullptr);
  load();
  EXPECT_NE(cache(source()).find(), nullptr);
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(ConvertedCacheTest, ItsWeightsAreNotChangedAgain) {
  write_tensors(folder_.file("c.safetensors"),
                {written("a.weight", {kCacheRows, kCacheWide},
                         std::vector<float>(kCacheRows * kCacheWide, 7))});
  weights::WeightSource from = source();
  from.set_change([&](std::unique_ptr<StoredWeight>, const std::string&) {
    return std::make_unique<GivenWeight>(kCacheRows,
                                         std::vector<float>(kCacheRows * kCacheWide, 1));
  });
  from.add_converted(std::make_shared<Checkpoint>(folder_.file("c.safetensors")), "");
  EXPECT_EQ(values_of(*from.weight("a", kCacheRows, kCacheWide)).front(), 7);
  EXPECT_EQ(values_of(*from.weight("b", kCacheRows, kCacheWide)).front(), 1);
}

}  // namespace
}  // namespace octet::test
