// Where the admin listener may stand, and which Hosts it takes for itself.
#include "daemon/admin/listen.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace pickd::admin {
namespace {

config::AdminConfig at(const std::string& listen, bool remote = false) {
  config::AdminConfig config;
  config.listen = listen;
  config.allow_remote = remote;
  return config;
}

TEST(AdminAddress, IsTakenWhereOnlyThisMachineReachesIt) {
  for (const char* text :
       {"127.0.0.1:9464", "127.8.9.10:1", "[::1]:9464", "localhost:0", "[::ffff:127.0.0.1]:9"}) {
    EXPECT_TRUE(check(at(text))) << text;
  }
}

TEST(AdminAddress, IsRefusedWhereOthersReachItUnlessThatIsAllowed) {
  for (const char* text : {"0.0.0.0:9464", "10.0.0.1:9464", "[::]:9464", "[2001:db8::1]:80"}) {
    const auto refused = check(at(text));
    ASSERT_FALSE(refused) << text;
    EXPECT_NE(refused.error().text.find("admin.allow_remote"), std::string::npos);
    EXPECT_TRUE(check(at(text, true))) << text;
  }
}

TEST(AdminAddress, MustBeAnAddressWithAPort) {
  for (const char* text : {"9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:9x",
                           "example.org:80", "::1:80", "[::1", "[::1]", "[::1]x:1", ":80"}) {
    EXPECT_FALSE(check(at(text, true))) << text;
  }
  config::AdminConfig config;
  config.socket = "relative/path";
  EXPECT_FALSE(check(config));
}

TEST(AdminHost, IsAnAddressOrLocalhost) {
  for (const char* host : {"localhost", "LocalHost:9464", "a.localhost:1", "127.0.0.1",
                           "127.0.0.1:9464", "10.1.2.3:80", "[::1]:9464", "[::1]"}) {
    EXPECT_TRUE(is_address(host)) << host;
  }
  for (const char* host : {"", "example.org", "example.org:9464", "localhost.example.org",
                           "127.0.0.1.example.org", "127.0.0.1:80@example.org", "notlocalhost",
                           "[::1].example.org", "[example.org]:1", "127.0.0.1:9464x"}) {
    EXPECT_FALSE(is_address(host)) << host;
  }
}

TEST(AdminSocket, IsNotTakenFromWhoListensThere) {
  const std::string path = "/tmp/pickd-admin-listen-test." + std::to_string(::getpid());
  {
    const auto first = listen_unix_stream(path, 0600);
    ASSERT_TRUE(first) << first.error().text;
    const auto second = listen_unix_stream(path, 0600);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, -EADDRINUSE);
  }
  // The file is there still, and nobody behind it.
  EXPECT_TRUE(listen_unix_stream(path, 0600));
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace pickd::admin
