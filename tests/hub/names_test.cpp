// hub: which names are taken, what patterns mean, what a Content-Range must say.
#include "hub/names.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "hub/http.h"

namespace octet::hub {
namespace {

TEST(RepoName, IsOwnerAndName) {
  for (const char* good : {"a/b", "ideogram-ai/ideogram-4.0_x", "A1/b-c.d", "_a/b_"}) {
    EXPECT_TRUE(is_repo_name(good)) << good;
  }
  for (const char* bad : {"", "a", "a/", "/b", "a/b/c", "a/..", "../b", "a/b--c", "a/b..c", "a/-b",
                          "a/b.", "a /b", "a/b\n", "a/\xc3\xa4", "~/b", "./b", "a\\b/c"}) {
    EXPECT_FALSE(is_repo_name(bad)) << bad;
    EXPECT_THROW(check_repo_name(bad), Error) << bad;
  }
  EXPECT_FALSE(is_repo_name(std::string(97, 'a') + "/b"));
}

TEST(RepoAddress, IsANameOrAnAddressOfTheHub) {
  const std::string endpoint = "https://user:secret@mirror.example:8443/hf";
  const auto repo = [&](const char* text) { return parse_repo_address(text, endpoint).repo; };
  const auto revision = [&](const char* text) {
    return parse_repo_address(text, endpoint).revision;
  };
  for (const char* address :
       {"a/b", "https://huggingface.co/a/b", "https://huggingface.co/a/b/",
        "http://huggingface.co/a/b", "huggingface.co/a/b", "https://hf.co/a/b",
        "https://huggingface.co/a/b/tree/main", "https://huggingface.co/a/b/tree/v1/",
        "https://huggingface.co/a/b?library=diffusers#files",
        "https://mirror.example:8443/hf/a/b"}) {
    EXPECT_EQ(repo(address), "a/b") << address;
  }
  EXPECT_EQ(revision("https://huggingface.co/a/b"), "");
  EXPECT_EQ(revision("https://huggingface.co/a/b/tree/main"), "main");
  EXPECT_EQ(revision("https://huggingface.co/a/b/tree/v1/"), "v1");
  EXPECT_EQ(revision("https://huggingface.co/a/b/tree/refs%2Fpr%2F1"), "refs/pr/1");
  EXPECT_EQ(repo("nonsense"), "nonsense");  // check_repo_name() speaks of it
}

TEST(RepoAddress, OfOtherPlacesIsRefusedWithASentence) {
  const auto sentence = [](const char* text) -> std::string {
    try {
      parse_repo_address(text, "https://huggingface.co");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto holds = [&](const char* text, const char* part) {
    return sentence(text).find(part) != std::string::npos;
  };
  EXPECT_TRUE(holds("https://example.com/a/b", "an address on example.com"));
  EXPECT_TRUE(holds("https://huggingface.co.evil.com/a/b", "on huggingface.co.evil.com"));
  for (const char* text :
       {"https://huggingface.co@evil.com/a/b", "https://user:secret@huggingface.co/a/b",
        "https://user:a/secret@huggingface.co/a/b", "user:secret@huggingface.co/a/b",
        "secret@huggingface.co/a/b", "ftp://user:secret@host", "https://user:secret@"}) {
    EXPECT_TRUE(holds(text, "a name or a password")) << text;
    EXPECT_FALSE(holds(text, "secret") || holds(text, "user") || holds(text, "evil")) << text;
  }
  EXPECT_EQ(sentence("https://huggingface.co/a/b/tree/v@1"), "");
  EXPECT_EQ(sentence("a/b@v1"), "");  // check_repo_name() speaks of it
  EXPECT_TRUE(holds("https://huggingface.co/a", "not the address of a model"));
  EXPECT_TRUE(holds("https://huggingface.co/datasets/a/b", "not the address of a model"));
  EXPECT_TRUE(holds("https://huggingface.co/a/b/blob/main/x.safetensors", "`include`"));
  EXPECT_TRUE(holds("https://huggingface.co/a/b/tree/main/vae", "`include`"));
}

TEST(FilePath, StaysInItsFolder) {
  for (const std::string good : {"a", "a/b.c", ".gitattributes", "..a", "a/...", "\xc3\xa4/b c"}) {
    EXPECT_NO_THROW(check_file_path(good, "x")) << good;
  }
  for (const std::string& bad :
       {std::string(""), std::string("/a"), std::string(".."), std::string("a/../b"),
        std::string("a/."), std::string("a//b"), std::string("a/"), std::string("a\0b", 3),
        std::string("a\nb"), std::string("a\\b"), std::string("\xff"), std::string(256, 'a')}) {
    EXPECT_THROW(check_file_path(bad, "x"), Error) << bad;
  }
}

TEST(Digests, AreLowerCaseHexadecimal) {
  EXPECT_TRUE(is_sha1(std::string(40, 'a')));
  EXPECT_TRUE(is_sha256(std::string(64, '0')));
  EXPECT_FALSE(is_sha1(std::string(64, '0')));
  EXPECT_FALSE(is_sha1(std::string(40, 'A')));
  EXPECT_FALSE(is_sha1(std::string(39, 'a') + "/"));
}

TEST(Url, EscapesWhatIsNotPlain) {
  EXPECT_EQ(escape_url("a/b c?#%", true), "a/b%20c%3F%23%25");
  EXPECT_EQ(escape_url("refs/pr/1", false), "refs%2Fpr%2F1");
  EXPECT_EQ(escape_url("\xc3\xa4-._~", true), "%C3%A4-._~");
}

TEST(Patterns, AreThoseOfHuggingfaceHub) {
  EXPECT_TRUE(is_wanted("a/b.json", {}, {}));
  EXPECT_TRUE(is_wanted("a/b/c.json", {"a/*.json"}, {}));  // * goes over slashes
  EXPECT_TRUE(is_wanted("a/b/c.json", {"x", "a/"}, {}));
  EXPECT_FALSE(is_wanted("ab/c.json", {"a/"}, {}));
  EXPECT_FALSE(is_wanted("a.JSON", {"*.json"}, {}));
  EXPECT_TRUE(is_wanted(".hidden", {"*"}, {}));
  EXPECT_FALSE(is_wanted("a.json", {"*"}, {"a.*"}));
  EXPECT_TRUE(is_wanted("a1", {"a[0-9]"}, {}));
  EXPECT_FALSE(is_wanted("a1", {"a[!0-9]"}, {}));
  EXPECT_TRUE(is_wanted("a\\b", {"a\\b"}, {}));
}

TEST(ContentRange, MustBeWhatWasAskedFor) {
  const auto end_of = [](const std::string& header) -> uint64_t {
    try {
      return end_of_content_range(header, 100, 200, 5000, "x");
    } catch (const Error&) {
      return 0;
    }
  };
  EXPECT_EQ(end_of("bytes 100-199/5000"), 200u);
  EXPECT_EQ(end_of("bytes 100-150/5000"), 151u);  // the rest is asked for again
  EXPECT_EQ(end_of("bytes 100-199/*"), 200u);
  for (const char* bad :
       {"", "bytes", "bytes 0-99/5000", "bytes 100-200/5000", "bytes 100-199/5001",
        "bytes 100-99/5000", "bytes 100-199", "bytes -199/5000", "bytes 100-/5000",
        "bytes 100-199/5000x", "bytes 100-199/99999999999999999999", "items 100-199/5000",
        "bytes */5000"}) {
    EXPECT_EQ(end_of(bad), 0u) << bad;
  }
}

TEST(Retry, CountsOnlyAttemptsThatBroughtNothing) {
  int calls = 0;
  const auto busy = [&] {
    ++calls;
    throw Transient("busy", 0);
  };
  EXPECT_THROW(try_until_done({1, {}}, busy), Transient);
  EXPECT_EQ(calls, 2);
  calls = 0;
  EXPECT_THROW(try_until_done({1, {}}, busy, [&] { return calls == 2; }), Transient);
  EXPECT_EQ(calls, 3);
  calls = 0;
  EXPECT_THROW(try_until_done({5, [] { return false; }}, busy), Stopped);
  EXPECT_EQ(calls, 1);
  calls = 0;
  EXPECT_THROW(try_until_done({5, {}},
                              [&] {
                                ++calls;
                                throw Transient("tomorrow", 86400);
                              }),
               Transient);
  EXPECT_EQ(calls, 1);
}

TEST(Retry, PausesGrowAndEnd) {
  EXPECT_DOUBLE_EQ(backoff_seconds(1, 0.5), 0.5);
  EXPECT_DOUBLE_EQ(backoff_seconds(2, 0.5), 1);
  EXPECT_DOUBLE_EQ(backoff_seconds(1000, 0.5), 30);
  EXPECT_LT(backoff_seconds(1, 0), backoff_seconds(1, 1));
}

}  // namespace
}  // namespace octet::hub
