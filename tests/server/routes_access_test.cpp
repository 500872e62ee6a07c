#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "octet/error.h"
#include "server/routes/access.h"
#include "server/routes/base64.h"

namespace octet::server {
namespace {

http::Request head_with(http::Headers headers) {
  return {.id = "req-1", .method = "GET", .path = "/", .headers = std::move(headers)};
}

// A file of keys, removed with the object.
class KeyFileOnDisk {
 public:
  explicit KeyFileOnDisk(const std::string& text)
      : path_((std::filesystem::temp_directory_path() /
               ("octet-keys-" + std::to_string(::getpid()) + "-" + std::to_string(++made_)))
                  .string()) {
    write(text);
  }
  ~KeyFileOnDisk() { std::filesystem::remove(path_); }

  void write(const std::string& text) const {
    std::ofstream(path_) << text;
    ::chmod(path_.c_str(), 0600);
  }
  const std::string& path() const { return path_; }

 private:
  static inline int made_ = 0;
  std::string path_;
};

constexpr const char* kAnna = "anna key-of-anna-0000001\n";
constexpr const char* kBoth =
    "# who may ask\nanna key-of-anna-0000001\n\nben key-of-ben-00000002 weight=2.5  # twice\n";

std::string sentence_of_keys(const std::string& text) {
  try {
    read_keys(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Keys, AreReadWithTheirWeights) {
  const std::vector<ClientKey> keys = read_keys(kBoth);
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0].name, "anna");
  EXPECT_EQ(keys[0].weight, 1);
  EXPECT_EQ(keys[1].key, "key-of-ben-00000002");
  EXPECT_EQ(keys[1].weight, 2.5);
}

TEST(Keys, OfABrokenFileAreRefusedByLineAndNeverRepeated) {
  EXPECT_EQ(sentence_of_keys("anna short"),
            "line 1: the key has 5 bytes, expected 16 to 256, of printable ASCII");
  EXPECT_EQ(sentence_of_keys("\nanna"), "line 2: it has 1 words, expected NAME KEY [weight=2]");
  EXPECT_NE(sentence_of_keys(std::string(kAnna) + kAnna).find("line 2: another line"),
            std::string::npos);
  EXPECT_NE(sentence_of_keys("# none\n").find("no keys"), std::string::npos);
  for (const char* wrong : {"weight=", "weight=x", "weight=0", "weight=-1", "heavy", "weight=1x"}) {
    const std::string sentence = sentence_of_keys("anna key-of-anna-0000001 " + std::string(wrong));
    EXPECT_NE(sentence.find("weight=NUMBER"), std::string::npos) << wrong;
    EXPECT_EQ(sentence.find("key-of-anna"), std::string::npos);
  }
}

TEST(Keys, AreComparedWhole) {
  EXPECT_TRUE(same_key("0123456789abcdef", "0123456789abcdef"));
  EXPECT_FALSE(same_key("0123456789abcdef", "0123456789abcdeg"));
  EXPECT_FALSE(same_key("0123456789abcdef", "0123456789abcde"));
  EXPECT_FALSE(same_key(std::string("key\0", 4), "key"));  // padding is no key
}

TEST(KeyFile, FollowsItsFileAndKeepsTheKeysOfABrokenOne) {
  std::vector<std::string> warnings;
  const KeyFileOnDisk file(kAnna);
  KeyFile keys(file.path(), [&](const std::string& each) { warnings.push_back(each); });
  EXPECT_EQ(keys.name_of("key-of-anna-0000001"), "anna");
  EXPECT_EQ(keys.name_of("key-of-ben-00000002"), std::nullopt);
  const auto look_again = std::chrono::milliseconds(1050);
  file.write(kBoth);
  std::this_thread::sleep_for(look_again);
  EXPECT_EQ(keys.name_of("key-of-ben-00000002"), "ben");
  EXPECT_EQ(keys.weight_of("ben"), 2.5);
  EXPECT_TRUE(warnings.empty());
  file.write("broken");
  std::this_thread::sleep_for(look_again);
  EXPECT_EQ(keys.name_of("key-of-anna-0000001"), "anna");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("line 1"), std::string::npos);
}

TEST(KeyFile, WarnsOfOneThatOthersMayRead) {
  std::vector<std::string> warnings;
  const KeyFileOnDisk file(kAnna);
  ::chmod(file.path().c_str(), 0644);
  const KeyFile keys(file.path(), [&](const std::string& each) { warnings.push_back(each); });
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("chmod 600"), std::string::npos);
}

TEST(KeyFile, HasToBeThere) {
  EXPECT_THROW(KeyFile("/nowhere/keys", [](const std::string&) {}), Error);
}

TEST(Access, ReadsTheNameOfAHost) {
  EXPECT_EQ(host_name("127.0.0.1:8642"), "127.0.0.1");
  EXPECT_EQ(host_name("[::1]:8642"), "::1");
  EXPECT_EQ(host_name("Example.ORG"), "example.org");
  EXPECT_EQ(host_name("[::1"), "");
}

TEST(Access, KnowsItsOwnNames) {
  const AccessRules rules{.hosts = {"pictures.example.org"}};
  for (const char* own :
       {"127.0.0.1:8642", "[::1]", "localhost:1", "10.0.0.7", "Pictures.Example.org:443"}) {
    EXPECT_TRUE(is_own_host(rules, head_with({{"host", own}}))) << own;
  }
  for (const char* other : {"evil.example", "localhost.evil.example", "1.2.3.4.evil.example",
                            "pictures.example.org.evil.example", ""}) {
    EXPECT_FALSE(is_own_host(rules, head_with({{"host", other}}))) << other;
  }
  EXPECT_TRUE(is_own_host({.hosts = {"*"}}, head_with({{"host", "any.example"}})));
}

TEST(Access, TakesRequestsOfItsOwnPagesAndOfThoseListed) {
  const AccessRules rules{.origins = {"https://editor.example"}};
  const auto from = [](const char* origin) {
    return head_with({{"host", "127.0.0.1:8642"}, {"origin", origin}});
  };
  EXPECT_TRUE(is_allowed_origin(rules, head_with({{"host", "127.0.0.1:8642"}})));
  EXPECT_TRUE(is_allowed_origin(rules, from("http://127.0.0.1:8642")));
  EXPECT_TRUE(is_allowed_origin(rules, from("https://editor.example")));
  for (const char* other : {"http://127.0.0.1:9999", "https://evil.example", "null",
                            "http://editor.example", "https://editor.example.evil.example"}) {
    EXPECT_FALSE(is_allowed_origin(rules, from(other))) << other;
  }
}

TEST(Access, LetsOnlyListedPagesReadAnswers) {
  const AccessRules rules{.origins = {"https://editor.example"}};
  EXPECT_EQ(cors_headers(rules, head_with({{"origin", "https://editor.example"}})).front().second,
            "https://editor.example");
  EXPECT_EQ(cors_headers(rules, head_with({{"origin", "https://evil.example"}})).size(), 1u);
  EXPECT_TRUE(cors_headers({}, head_with({{"origin", "https://evil.example"}})).empty());
}

TEST(Access, NamesAClientByItsKey) {
  const KeyFileOnDisk file(kAnna);
  const AccessRules rules{.keys =
                              std::make_shared<KeyFile>(file.path(), [](const std::string&) {})};
  const auto name = [&](const std::string& authorization) {
    return client_name(rules, head_with({{"authorization", authorization}}));
  };
  EXPECT_EQ(name("Bearer key-of-anna-0000001"), "anna");
  EXPECT_EQ(name("bearer  key-of-anna-0000001 "), "anna");
  EXPECT_EQ(name("Basic " + to_base64("anyone:key-of-anna-0000001")), "anna");
  for (const char* wrong : {"", "Bearer", "Bearer ", "Bearer key-of-anna-0000002",
                            "key-of-anna-0000001", "Basic x", "Basic Zm9v"}) {
    EXPECT_THROW(name(wrong), Refused) << wrong;
  }
  EXPECT_THROW(client_name(rules, head_with({})), Refused);
  EXPECT_EQ(client_name({}, head_with({})), "");
}

}  // namespace
}  // namespace octet::server
