// formats: JSON values end without memory, however deep and wide they are.
#include "formats/json_value.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#include "formats/json.h"

// There in a process that a sanitizer watches, whether this file was compiled for one or not.
extern "C" __attribute__((weak)) void __asan_init();

namespace octet {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

template <class Json>
Json nested(int depth) {
  Json value = "in the middle";
  for (int i = 0; i < depth; ++i) {
    Json outer = i % 2 == 0 ? Json::array() : Json::object();
    if (i % 2 == 0) {
      outer.push_back(i);
      outer.push_back(std::move(value));
      outer.push_back(Json::array({1, Json::object()}));
    } else {
      outer["b"] = Json::array({"text", nullptr});
      outer["a"] = std::move(value);  // the last: ordered objects copy what they have as they grow
    }
    value = std::move(outer);
  }
  return value;
}

TEST(JsonValueTest, EndsHoweverDeepItIs) {
  for (const int depth : {0, 1, 2, 3, 100'000}) {
    nested<json>(depth);
    nested<ordered_json>(depth);
  }
}

TEST(JsonValueTest, EndsInEveryShape) {
  for (const char* text : {"[]", "{}", "[[]]", "[{}]", "[[[1],2],[3,[4,[]]],5]", "[[],[],[]]",
                           R"({"a":{"b":{},"c":[1]},"d":{"e":{"f":"g"}},"h":2})"}) {
    json value = json::parse(text);
    const json copy = value;
    EXPECT_EQ(copy.dump(), text);
    value = 1;
    EXPECT_EQ(ordered_json::parse(text).dump(), text);
  }
}

size_t mapped_bytes() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

// A stack that has to grow when no memory is left ends the process; this one has grown before.
void grow_stack() {
  volatile char touched[256 << 10];
  for (size_t i = 0; i < sizeof touched; i += 1024) touched[i] = 0;
}

// Parsing until memory is gone, and then not a byte more to destroy what there is.
TEST(JsonValueTest, EndsWithoutMemory) {
  if (__asan_init != nullptr) GTEST_SKIP() << "a sanitizer needs memory of its own";
  std::string text = "[";
  for (int i = 0; i < 500'000; ++i) text += R"({"a":[1,{"b":[]}],"c":"a text of some length"},)";
  text += "0]";
  // Far less than the values take, since what other tests freed is room, too.
  for (const size_t room : {1u, 7u, 20u, 33u}) {
    const pid_t child = ::fork();
    if (child == 0) {
      grow_stack();
      const rlim_t all = mapped_bytes() + (room << 20);
      const rlimit limit = {all, all};
      ::setrlimit(RLIMIT_AS, &limit);
      try {
        parse_json(text, "text");
      } catch (const std::bad_alloc&) {
        ::_exit(3);
      }
      ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3) << room << " MB: " << status;
  }
}

}  // namespace
}  // namespace octet
