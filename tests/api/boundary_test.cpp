// Nothing but Error leaves the library.
#include "formats/boundary.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <tuple>

#include "octet/caption.h"
#include "octet/error.h"
#include "octet/generate.h"
#include "octet/inspect.h"
#include "octet/pull.h"
#include "octet/quantize.h"
#include "octet/tools/bench.h"
#include "octet/tools/bench_step.h"
#include "octet/tools/files.h"
#include "octet/tools/tune.h"

namespace octet {
namespace {

std::string sentence_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  } catch (...) {
    return "escaped";
  }
  return "";
}

std::string sentence_for(const std::function<void()>& thrower) {
  return sentence_of([&] {
    try {
      thrower();
    } catch (...) {
      rethrow_as_error();
    }
  });
}

TEST(Boundary, TurnsEachKindIntoAnError) {
  namespace fs = std::filesystem;
  EXPECT_EQ(sentence_for([] { throw Error("as it is"); }), "as it is");
  EXPECT_EQ(sentence_for([] { throw std::bad_alloc(); }).substr(0, 14), "out of memory;");
  EXPECT_EQ(sentence_for([] { std::vector<int>().reserve(SIZE_MAX); }).substr(0, 14),
            "out of memory;");
  EXPECT_EQ(sentence_for([] { std::ignore = fs::file_size("/no/such/file"); }),
            "/no/such/file: No such file or directory");
  EXPECT_NE(sentence_for([] {
              throw std::system_error(EAGAIN, std::generic_category(), "thread");
            }).find("the system refused: thread"),
            std::string::npos);
  EXPECT_NE(sentence_for([] { std::ignore = nlohmann::json::parse("{\n"); }).find("JSON"),
            std::string::npos);
  EXPECT_EQ(sentence_for([] { throw std::out_of_range("a\nb"); }), "unexpected failure: a\\u000ab");
  struct Silent : std::exception {
    const char* what() const noexcept override { return nullptr; }
  };
  EXPECT_EQ(sentence_for([] { throw Silent(); }),
            "unexpected failure: an exception that says nothing");
  EXPECT_EQ(sentence_for([] { throw 7; }), "unexpected failure: an exception of another kind");
}

TEST(Boundary, KeepsTheTypeOfWhatDerivesFromError) {
  struct Special : Error {
    using Error::Error;
  };
  EXPECT_THROW(
      {
        try {
          throw Special("x");
        } catch (...) {
          rethrow_as_error();
        }
      },
      Special);
}

// Each of these threw something else, or would without the guard: callbacks that throw, sizes that
// no memory holds, paths that the standard library refuses.
TEST(Boundary, HoldsForThePublicFunctions) {
  const std::string too_long(5000, 'x');
  const auto throws = [](auto&&...) -> bool { throw std::out_of_range("mine"); };
  const std::vector<std::function<void()>> provoking = {
      [&] {
        GemmBenchRequest request;
        request.shapes = {{3, 4, 5}};
        request.device = "ref";
        request.seconds = 0;
        bench_gemm(request, throws);
      },
      [&] {
        QuantizeBenchRequest request;
        request.rows = 1;
        request.ks = {16};
        request.device = "ref";
        request.seconds = 0;
        bench_quantize(request, throws);
      },
      [&] {
        LinearRequest request;
        request.device = "ref";
        request.shape = {1, 2, 3};
        compare_linear(request, throws);
      },
      [&] {
        StepBenchRequest request;
        request.device = "cpu";
        request.layers = 1;
        request.width = request.height = 256;
        bench_step(request, throws);
      },
      [&] {
        PullRequest request;
        request.repo = "a/b";
        request.cache_dir = too_long;
        pull(request, throws);
      },
      [&] { check_writable(too_long + "/" + too_long); },
      [&] { read_caption(too_long); },
      [&] { inspect_checkpoint(std::string("a\0b", 3)); },
      [&] {
        QuantizeRequest request;
        request.source = too_long;
        quantize(request, nullptr);
      },
      [&] {
        GenerateRequest request;
        request.model.model = too_long;
        generate(request, {.picture = [](const Picture&) {}});
      },
      [&] {
        TuneRequest request;
        request.device = "ref";
        request.mode = Tuning::off;
        tune_gemm(request);
      },
  };
  for (size_t i = 0; i < provoking.size(); ++i) {
    const std::string sentence = sentence_of(provoking[i]);
    EXPECT_NE(sentence, "escaped") << i;
    EXPECT_NE(sentence, "") << i;
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << i;
  }
}

}  // namespace
}  // namespace octet
