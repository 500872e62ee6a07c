// Quantizing a transformer that is interrupted: what is gone on with, and what begins anew.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "convert/measured_errors.h"
#include "convert/quantize.h"
#include "convert/quantizing.h"
#include "formats/folder_watch.h"

namespace octet::test {
namespace {

using convert::QuantizeOptions;

namespace fs = std::filesystem;

class Interrupted : public Quantizing {
 protected:
  void SetUp() override {
    write_source();
    quantize(folder_.file("whole"), options_);
  }

  // Ends after so many reports of writing.
  void interrupt(int reports) {
    const std::string message = error_of([&] {
      quantize(out_, options_, [&](const QuantizeStep& progress) {
        return progress.stage != QuantizeStage::write || --reports >= 0;
      });
    });
    EXPECT_NE(message.find("the same command resumes from here"), std::string::npos) << message;
    EXPECT_FALSE(fs::exists(out_));
  }

  // Other numbers at the begin of a tensor.
  static void overwrite(const std::string& path, const std::string& tensor) {
    uint64_t at = 0;
    {
      const SafetensorsFile file(path);
      at = fs::file_size(path) - file.tensors().back().end + file.info(tensor).begin;
    }
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    const float large = 1000;
    file.write(reinterpret_cast<const char*>(&large), sizeof large);
  }

  // In a module of the source, whose size and time stay.
  void change(const std::string& tensor) {
    const std::string path = source_ + "/diffusion_pytorch_model.safetensors";
    const auto time = fs::last_write_time(path);
    overwrite(path, tensor);
    fs::last_write_time(path, time);
  }

  // Marks a tensor of the output as soon as the work has begun, when finished ones are not looked
  // at any more: one that is made again loses its mark.
  QuantizeReport quantize_and_mark(const std::string& tensor) {
    bool is_marked = false;
    return quantize(out_, options_, [&](const QuantizeStep&) {
      if (!std::exchange(is_marked, true)) overwrite(out_ + ".part", tensor);
      return true;
    });
  }

  // Leaves the part of a job with other wishes beside a complete file.
  void interrupt_other() {
    const QuantizeOptions other{.recipe = parse_recipe("rowwise")};
    int reports = 15;
    error_of([&] { quantize(out_, other, [&](const QuantizeStep&) { return --reports >= 0; }); });
  }

  // But for what the metadata say about the source.
  bool same_tensors(const std::string& a, const std::string& b) const {
    const SafetensorsFile first(folder_.file(a)), second(folder_.file(b));
    return first.tensors().size() == second.tensors().size() &&
           std::all_of(first.tensors().begin(), first.tensors().end(), [&](const auto& info) {
             return std::ranges::equal(first.bytes(info.name), second.bytes(info.name));
           });
  }

  QuantizeOptions options_{.recipe = parse_recipe("convrot:16")};
  std::string out_ = folder_.file("out");
};

TEST_F(Interrupted, GoesOnWithoutDoingItAgain) {
  // The first report comes before any work, the others behind each module.
  const convert::NetworkPlan plan(family(), files());
  int modules = 0;
  uint64_t tensors = 0;
  for (const auto& module : plan.modules()) {
    ++modules;
    tensors += module.large ? 3 : 1;  // codes, scales and a marker
    if (module.name == "layers.0.attention.qkv") break;
  }
  interrupt(modules);
  EXPECT_TRUE(fs::exists(out_ + ".part"));
  const std::string finished = "layers.0.attention.qkv.weight";
  EXPECT_EQ(quantize_and_mark(finished).resumed_tensors, tensors);
  EXPECT_EQ(folder_.entries(), 3u);
  EXPECT_NE(folder_.read("out"), folder_.read("whole")) << "a finished tensor was made again";
  overwrite(folder_.file("whole"), finished);
  EXPECT_EQ(folder_.read("out"), folder_.read("whole"));
  // The proof sees it: from the beginning, the mark is lost.
  fs::remove(out_);
  quantize_and_mark(finished);
  EXPECT_NE(folder_.read("out"), folder_.read("whole"));
}

TEST_F(Interrupted, ACompleteFileIsNotMadeAgain) {
  quantize(out_, options_);
  const auto time = fs::last_write_time(out_);
  // Of a run that was killed right behind the renaming.
  folder_.write("out.part.journal", "octet finished tensors of job 0123456789abcdef\n");
  folder_.write("out.part", "");
  EXPECT_GT(quantize(out_, options_).resumed_tensors, 0u);
  EXPECT_EQ(fs::last_write_time(out_), time);
  EXPECT_EQ(folder_.entries(), 3u) << "the journal stayed";
  // What somebody may go on with stays.
  interrupt_other();
  EXPECT_GT(quantize(out_, options_).resumed_tensors, 0u);
  EXPECT_TRUE(fs::exists(out_ + ".part") && fs::exists(out_ + ".part.journal"));
}

// As cp -p and rsync -t do.
TEST_F(Interrupted, ASourceThatKeptItsSizeAndTimeStartsAnew) {
  const std::string path = source_ + "/diffusion_pytorch_model.safetensors";
  const std::string original = folder_.read("source/diffusion_pytorch_model.safetensors");
  interrupt(15);
  change("layers.0.attention.to_q.weight");
  EXPECT_EQ(quantize(out_, options_).resumed_tensors, 0u);
  const std::string changed = folder_.read("out");
  EXPECT_TRUE(changed != folder_.read("whole"));
  // And back, by another file in its place.
  const auto time = fs::last_write_time(path);
  folder_.write("copy", original);
  fs::last_write_time(folder_.file("copy"), time);
  fs::rename(folder_.file("copy"), path);
  EXPECT_EQ(quantize(out_, options_).resumed_tensors, 0u) << "the old output was kept";
  EXPECT_TRUE(same_tensors("out", "whole"));
}

// The output says the configuration, which the weights' file knows nothing of.
TEST_F(Interrupted, AnotherConfigurationStartsAnew) {
  const std::string config = folder_.read("source/config.json");
  auto changed = nlohmann::json::parse(config);
  changed["rope_theta"] = 4321;
  interrupt(15);
  folder_.write("source/config.json", changed.dump());
  EXPECT_EQ(quantize(out_, options_).resumed_tensors, 0u) << "the part was gone on with";
  folder_.write("source/config.json", config);
  EXPECT_EQ(quantize(out_, options_).resumed_tensors, 0u) << "the old output was kept";
  EXPECT_EQ(folder_.read("out"), folder_.read("whole"));
}

TEST_F(Interrupted, AnywhereToTheSameResult) {
  for (int reports = 0; reports < 20; reports += 3) {
    interrupt(reports);
    quantize(out_, options_);
    EXPECT_EQ(folder_.read("out"), folder_.read("whole")) << reports;
    fs::remove(out_);
  }
}

TEST_F(Interrupted, ManyTimes) {
  for (int reports = 2; reports <= 16; reports += 2) interrupt(reports);
  const QuantizeReport report = quantize(out_, options_);
  EXPECT_GE(report.resumed_tensors, 16u);  // at least one of each module
  EXPECT_EQ(folder_.read("out"), folder_.read("whole"));
}

TEST_F(Interrupted, OtherWishesStartAnew) {
  const auto resumed_with = [&](const std::function<void()>& change) {
    options_ = {.recipe = parse_recipe("convrot:16")};
    interrupt(15);
    change();
    const uint64_t resumed = quantize(out_, options_).resumed_tensors;
    verify(out_, options_);
    fs::remove(out_);
    return resumed;
  };
  EXPECT_GT(resumed_with([] {}), 0u);
  EXPECT_EQ(resumed_with([&] { options_.recipe = parse_recipe("convrot:4"); }), 0u);
  EXPECT_EQ(resumed_with([&] { options_.recipe = parse_recipe("rowwise"); }), 0u);
  EXPECT_EQ(resumed_with([&] { options_.clip = false; }), 0u);
  EXPECT_EQ(resumed_with([&] { options_.protection = parse_protection("*.w2"); }), 0u);
  EXPECT_EQ(resumed_with([&] { options_.statistics = make_statistics(); }), 0u);
  // Memory changes nothing about the result.
  EXPECT_GT(resumed_with([&] { options_.max_memory = 64'000'000; }), 0u);
  // The source was written again.
  EXPECT_EQ(resumed_with([&] {
              write_source([](const std::string&, Values& values, int64_t) { values[0] = 0.25f; });
            }),
            0u);
}

TEST_F(Interrupted, OtherActivationsUnderTheSameNameStartAnew) {
  options_ = {.recipe = parse_recipe("smoothquant"), .statistics_name = "statistics"};
  options_.statistics = make_statistics();
  interrupt(15);
  options_.statistics = make_statistics(50);
  EXPECT_EQ(quantize(out_, options_).resumed_tensors, 0u);
  verify(out_, options_);
}

TEST_F(Interrupted, MeasuredErrorsAreKept) {
  options_.measure = true;
  const auto whole = quantize(folder_.file("whole"), options_).errors;
  interrupt(3);
  // Other numbers in the file tell those that were kept.
  auto noted = nlohmann::json::parse(folder_.read("out.part.errors"));
  for (auto& [name, error] : noted.at("errors").items()) {
    error["convrot"] = error["convrot"].get<double>() + 1;
  }
  folder_.write("out.part.errors", noted.dump());
  const auto kept = quantize(out_, options_).errors;
  ASSERT_EQ(kept.size(), whole.size());
  for (size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i].module, whole[i].module);
    EXPECT_EQ(kept[i].convrot, whole[i].convrot + 1) << "was measured again";
    EXPECT_EQ(kept[i].worst_rows[0].index, whole[i].worst_rows[0].index);
  }
  // Until all files of a job are complete, which only the caller knows.
  EXPECT_TRUE(fs::exists(out_ + ".part.errors"));
  convert::MeasuredErrors::forget(out_);
  EXPECT_FALSE(fs::exists(out_ + ".part.errors"));
  EXPECT_EQ(quantize(out_, options_).errors[0].convrot, whole[0].convrot);
}

// Whatever name a kill leaves behind, the next run takes it away.
TEST_F(Interrupted, MeasuredErrorsHaveNamesThatAreForgotten) {
  if (!has_unnamed_files(folder_.path())) GTEST_SKIP() << "no O_TMPFILE on this file system";
  FolderWatch watch(folder_.path());
  for (const char* key : {"one", "two"}) {
    convert::MeasuredErrors errors(out_, key);
    errors.add("linear", {});
  }
  const std::vector<std::string> names = watch.names();
  EXPECT_EQ(std::set(names.begin(), names.end()),
            (std::set<std::string>{"out.part.errors", "out.part.errors.new"}));
  for (const std::string& name : names) folder_.write(name, "left");
  convert::MeasuredErrors::forget(out_);
  for (const std::string& name : names) EXPECT_FALSE(fs::exists(folder_.file(name))) << name;
}

TEST_F(Interrupted, DamagedErrorsAreMeasuredAgain) {
  options_.measure = true;
  const auto whole = quantize(folder_.file("whole"), options_).errors;
  for (const char* text : {"", "{", "[]", "{\"key\": 3}", "\xff"}) {
    interrupt(3);
    folder_.write("out.part.errors", text);
    const auto again = quantize(out_, options_).errors;
    ASSERT_EQ(again.size(), whole.size());
    EXPECT_EQ(again[0].convrot, whole[0].convrot);
    fs::remove(out_);
  }
}

TEST_F(Interrupted, TheOldOutputStaysUntilTheEnd) {
  folder_.write("out", "old");
  int reports = 10;
  EXPECT_NE(error_of([&] {
              quantize(out_, options_, [&](const QuantizeStep&) { return --reports >= 0; });
            }),
            "");
  EXPECT_EQ(folder_.read("out"), "old");
  quantize(out_, options_);
  EXPECT_EQ(folder_.read("out"), folder_.read("whole"));
}

}  // namespace
}  // namespace octet::test
