// URLs: what is taken, what is refused, what is sent as Host.
#include <gtest/gtest.h>

#include "daemon/net/http/url.hpp"

namespace pickd::net::http {
namespace {

Url good(std::string_view text) {
  auto url = parse_url(text);
  EXPECT_TRUE(url.ok()) << text;
  return url.ok() ? *url : Url{};
}

TEST(Url, ReadsHostPortAndTarget) {
  EXPECT_EQ(good("http://10.0.0.1:8000/metrics?x=1"),
            (Url{false, "10.0.0.1", 8000, "/metrics?x=1"}));
  EXPECT_EQ(good("https://engine.example"), (Url{true, "engine.example", 443, "/"}));
  EXPECT_EQ(good("http://engine?watch=true"), (Url{false, "engine", 80, "/?watch=true"}));
  EXPECT_EQ(good("10.0.0.1:8000"), (Url{false, "10.0.0.1", 8000, "/"}));
}

TEST(Url, ReadsIpv6InBrackets) {
  const Url url = good("http://[fd00::1]:8000/metrics");
  EXPECT_EQ(url.host, "fd00::1");
  EXPECT_EQ(url.authority(), "[fd00::1]:8000");
  EXPECT_EQ(url.text(), "http://[fd00::1]:8000/metrics");
}

TEST(Url, LeavesTheSchemesOwnPortOutOfTheHostField) {
  EXPECT_EQ(good("http://a:80/").authority(), "a");
  EXPECT_EQ(good("https://a:443/").authority(), "a");
  EXPECT_EQ(good("https://a:80/").authority(), "a:80");
}

TEST(Url, RefusesWhatCouldMeanSomethingElse) {
  for (const char* text :
       {"", "http://", "ftp://a/", "http://user@a/", "http://a:0/", "http://a:65536/", "http://a:/",
        "http://a:8x/", "http://[fd00::1/", "http://[10.0.0.1]/", "http://a:1:2/", "http://a b/",
        "http://a/\r\nX: y", "http://a/#top", "http://a\\@b/", "http://[fd00::1]8000/",
        "http://a:-1/", "http://:80/"}) {
    const auto url = parse_url(text);
    EXPECT_FALSE(url.ok()) << text;
    if (url.ok()) continue;
    EXPECT_NE(url.error().text.find("URL"), std::string::npos);
  }
}

}  // namespace
}  // namespace pickd::net::http
