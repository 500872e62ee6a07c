#include "server/http/exchange.h"

#include <gtest/gtest.h>

namespace octet::server::http {
namespace {

TEST(Request, FindsTheFirstHeaderAndParameterOfAName) {
  const Request request{.id = "req-1",
                        .method = "GET",
                        .path = "/",
                        .query = {{"limit", "3"}, {"limit", "4"}},
                        .headers = {{"host", "localhost"}},
                        .body = "",
                        .peer = "127.0.0.1"};
  ASSERT_NE(request.parameter("limit"), nullptr);
  EXPECT_EQ(*request.parameter("limit"), "3");
  ASSERT_NE(request.header("host"), nullptr);
  EXPECT_EQ(*request.header("host"), "localhost");
  EXPECT_EQ(request.header("origin"), nullptr);
}

}  // namespace
}  // namespace octet::server::http
