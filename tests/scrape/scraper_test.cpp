// The scraper over real sockets: who is asked, what is told, and what a bad engine cannot do.
#include "tests/scrape/scrape_fixture.hpp"

namespace pickd::scrape::test {
namespace {

ScriptServer::Script engine_with(std::string page) {
  return [page = std::move(page)](Peer& peer, int) {
    while (!peer.read_request().empty()) peer.answer(page);
  };
}

TEST_F(ScrapeTest, TellsTheLoadOfEachEngineAgainAndAgain) {
  const ScriptServer one(engine_with(vllm_page(3, 7)));
  const ScriptServer two(engine_with(vllm_page(0, 1)));
  put("one", one);
  put("two", two);
  go();
  until([this] { return of("one").ok >= 3 && of("two").ok >= 3; });
  loop_.run([this] {
    EXPECT_EQ(of("one").facts.waiting, 3U);
    EXPECT_EQ(of("one").facts.running, 7U);
    EXPECT_EQ(of("one").facts.kv_use_ppm, 250'000U);
    EXPECT_EQ(of("one").engine, "vllm");
    EXPECT_EQ(of("two").facts.waiting, 0U);
    EXPECT_EQ(of("one").failed + of("one").unreadable, 0);
    EXPECT_GE(of("one").sent, of("one").ok);
    EXPECT_GE(counter(abi::Counter::scrapes), 6U);
  });
  EXPECT_EQ(one.accepted(), 1) << "one connection an engine";
}

TEST_F(ScrapeTest, AsksOnceForAllRanksBehindOneAddress) {
  std::string page = vllm_page(1, 10);
  for (int rank = 1; rank < 3; ++rank) {
    std::string more = vllm_page(rank + 1, (rank + 1) * 10);
    for (std::size_t at; (at = more.find("engine=\"0\"")) != std::string::npos;)
      more[at + 8] = static_cast<char>('0' + rank);
    page += more;
  }
  std::atomic<int> asked{0};
  const ScriptServer server([&](Peer& peer, int) {
    while (!peer.read_request().empty()) {
      ++asked;
      peer.answer(page);
    }
  });
  for (std::uint32_t rank = 0; rank < 3; ++rank) put("r" + std::to_string(rank), server, rank);
  go();
  until([this] { return of("r0").ok >= 3 && of("r2").ok >= 3; });
  loop_.run([&] {
    EXPECT_EQ(scraper_->pages(), 1U);
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      const Listener::Told& told = of("r" + std::to_string(rank));
      EXPECT_EQ(told.facts.waiting, rank + 1);
      EXPECT_EQ(told.facts.running, 10 * (rank + 1));
      EXPECT_LE(told.ok, asked);
    }
  });
  EXPECT_EQ(server.accepted(), 1);
}

TEST_F(ScrapeTest, AsksEveryPortOfAnEngineThatIsOneEndpointAndAddsThemUp) {
  std::atomic<int> last_status{200};
  const ScriptServer first(engine_with(vllm_page(1, 10)));
  const ScriptServer second(engine_with(vllm_page(2, 20)));
  const ScriptServer third([&](Peer& peer, int) {
    while (!peer.read_request().empty()) peer.answer(vllm_page(4, 40), "", last_status);
  });
  put("dp3", first);
  specs_.back().more_ports = {second.port(), third.port()};
  const LogLines log;
  go();
  until([this] { return of("dp3").ok >= 2; });
  loop_.run([this] {
    EXPECT_EQ(scraper_->pages(), 1U);
    EXPECT_EQ(of("dp3").facts.waiting, 7U);
    EXPECT_EQ(of("dp3").facts.running, 70U);
    EXPECT_EQ(of("dp3").facts.ranks, 3U);
    EXPECT_EQ(of("dp3").facts.pages.size(), 3U);
    EXPECT_GE(of("dp3").sent, of("dp3").ok);
    EXPECT_GE(counter(abi::Counter::scrapes), 6U) << "pages are counted";
  });
  // Ill behind one port, it is ill; told once each scrape, not once a port, and said once.
  last_status = 500;
  until([this] { return of("dp3").failed >= 3; });
  loop_.run([&] {
    EXPECT_EQ(of("dp3").words, "status 500");
    EXPECT_LE(of("dp3").ok + of("dp3").failed, of("dp3").sent);
    EXPECT_EQ(log.count("not scraped"), 1) << log.text();
  });
  last_status = 404;  // it lives, and what its sum is nobody knows
  until([this] { return of("dp3").unreadable >= 2; });
  EXPECT_EQ(first.accepted() + second.accepted() + third.accepted(), 3);
}

TEST_F(ScrapeTest, EndsAScrapeOfWhichSomePortsHaveAnswered) {
  std::promise<void> asked;
  const ScriptServer quick(engine_with(vllm_page(1, 10)));
  const ScriptServer hangs([&](Peer& peer, int) {
    peer.read_request();
    asked.set_value();
    peer.wait();
  });
  put("dp2", quick);
  specs_.back().more_ports = {hangs.port()};
  go();
  asked.get_future().wait();
  loop_.run([this] {
    specs_.front().more_ports = {};
    ASSERT_TRUE(table_.replace(specs_, "file", kTick + 1).ok());
    scraper_->follow();
  });
  until([this] { return of("dp2").ok >= 1; });
  EXPECT_EQ(of("dp2").facts.waiting, 1U);
}

TEST_F(ScrapeTest, DoesNotLetBadEnginesDisturbAGoodOne) {
  config_.timeout_ms = 50;
  config_.page_bytes_max = 64 * 1024;
  const std::string flood = "4000\r\n" + std::string(0x4000, 'x') + "\r\n";
  const auto begin = [](Peer& peer, const char* more) {
    return !peer.read_request().empty() &&
           peer.send(std::string("HTTP/1.1 200 OK\r\n") + more + "\r\n");
  };
  const ScriptServer hangs([](Peer& peer, int) {
    peer.read_request();
    peer.wait();
  });
  const ScriptServer resets([](Peer& peer, int) {
    peer.read_request();
    peer.reset();
  });
  const ScriptServer ill([](Peer& peer, int) {
    while (!peer.read_request().empty()) peer.answer("sorry", "", 500);
  });
  const ScriptServer garbage([](Peer& peer, int) {
    peer.read_request();
    peer.send(std::string(5000, '\xEE'));
  });
  const ScriptServer endless([&](Peer& peer, int) {
    begin(peer, "Transfer-Encoding: chunked\r\n");
    while (peer.send(flood)) {
    }
  });
  const ScriptServer heads([&](Peer& peer, int) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\n");
    while (peer.send("X-Flood: yes\r\n")) {
    }
  });
  const ScriptServer drips([&](Peer& peer, int) {
    begin(peer, "Content-Length: 1000\r\n");
    pollfd quiet{peer.fd(), POLLIN, 0};
    while (::poll(&quiet, 1, 5) == 0 && peer.send("#")) {
    }
  });
  const ScriptServer elsewhere([](Peer& peer, int) {
    while (!peer.read_request().empty()) peer.answer("", "Location: http://127.0.0.1:1/\r\n", 307);
  });
  const ScriptServer packed([](Peer& peer, int) {
    while (!peer.read_request().empty()) peer.answer("\x1F\x8B", "Content-Encoding: gzip\r\n");
  });
  const ScriptServer other(engine_with("up 1\n"));
  const ScriptServer html(engine_with("<html>\n<body>no metrics here</body>\n"));
  const ScriptServer nothing(engine_with(""));
  const ScriptServer cut(engine_with("vllm:num_requests_waiting 1"));
  const ScriptServer absent([](Peer& peer, int) {
    while (!peer.read_request().empty()) peer.answer("no\n", "", 404);
  });
  const ScriptServer good(engine_with(vllm_page(1, 2)));
  std::uint16_t closed_port = 0;
  {
    const ScriptServer gone([](Peer&, int) {});
    closed_port = gone.port();
  }

  struct Case {
    const char* name;
    const ScriptServer* server;
    bool alive;
  };
  const Case cases[] = {
      {"hangs", &hangs, false},     {"resets", &resets, false},      {"ill", &ill, false},
      {"garbage", &garbage, false}, {"endless", &endless, true},     {"heads", &heads, true},
      {"drips", &drips, false},     {"elsewhere", &elsewhere, true}, {"packed", &packed, true},
      {"other", &other, true},      {"html", &html, true},           {"nothing", &nothing, true},
      {"cut", &cut, true},          {"absent", &absent, true}};
  for (const Case& one : cases) put(one.name, *one.server);
  specs_.push_back(endpoints::test::spec("gone", "127.0.0.1:" + std::to_string(closed_port)));
  specs_.push_back(endpoints::test::spec("named", "engine.invalid:80"));
  put("good", good);
  const LogLines log;
  go();
  until([&] {
    bool all = of("good").ok >= 4 && of("gone").failed >= 3 && of("named").failed >= 3;
    for (const Case& one : cases)
      all = all && (one.alive ? of(one.name).unreadable : of(one.name).failed) >= 3;
    return all;
  });
  loop_.run([&] {
    EXPECT_EQ(of("good").failed + of("good").unreadable, 0);
    for (const Case& one : cases) {
      EXPECT_EQ(of(one.name).ok, 0) << one.name;
      EXPECT_EQ(one.alive ? of(one.name).failed : of(one.name).unreadable, 0) << one.name;
      EXPECT_EQ(log.count("endpoint \"" + std::string(one.name) + "\": not scraped: "), 1)
          << one.name << " in\n"
          << log.text();
    }
    EXPECT_EQ(log.count("endpoint \"gone\": not scraped: "), 1);
    EXPECT_EQ(of("gone").words, "no connection");
    EXPECT_EQ(of("ill").words, "status 500");
    EXPECT_EQ(of("hangs").words, "took too long");
    EXPECT_EQ(log.count("endpoint \"good\""), 0);
    using abi::Counter;
    for (const Counter one :
         {Counter::scrapes, Counter::scrapes_no_connection, Counter::scrapes_timed_out,
          Counter::scrapes_cut, Counter::scrapes_malformed, Counter::scrapes_status,
          Counter::scrapes_too_large, Counter::scrapes_not_taken, Counter::scrapes_unreadable}) {
      EXPECT_GE(counter(one), 3U) << static_cast<std::uint32_t>(one);
    }
    scraper_.reset();  // while some are still being read
  });
}

TEST_F(ScrapeTest, SaysThatAnEngineIsBackAndThatItsMetricsChanged) {
  std::atomic<int> mode{0};
  const ScriptServer server([&](Peer& peer, int) {
    while (!peer.read_request().empty())
      peer.answer(mode == 1 ? "renamed:num_requests_waiting 1\n" : vllm_page(2, 2));
  });
  put("e", server);
  const LogLines log;
  go();
  until([this] { return of("e").ok >= 2; });
  EXPECT_EQ(log.count("endpoint"), 0) << log.text();
  mode = 1;
  until([this] { return of("e").unreadable >= 3; });
  EXPECT_EQ(log.count("no metrics of an engine that is known"), 1) << log.text();
  mode = 0;
  const int before = of("e").ok;
  until([&] { return of("e").ok > before + 2; });
  EXPECT_EQ(log.count("not scraped"), 1) << log.text();
}

TEST_F(ScrapeTest, DropsWhatWasAskedForAnEndpointThatIsGone) {
  std::promise<void> asked;
  std::promise<void> replaced;
  auto go_on = replaced.get_future();
  const ScriptServer server([&](Peer& peer, int index) {
    bool first = index == 0;
    while (!peer.read_request().empty()) {
      if (first) {
        asked.set_value();
        go_on.wait();
      }
      first = false;
      peer.answer(vllm_page(9, 9));
    }
  });
  put("e", server);
  go();
  asked.get_future().wait();
  const std::uint16_t id = endpoint("e").id;
  loop_.run([this] {
    ASSERT_TRUE(table_.reset("e", kTick + 1).ok());  // another generation of the same endpoint
    scraper_->follow();
  });
  replaced.set_value();
  until([this] { return counter(abi::Counter::scrapes_dropped) == 1; });
  until([&] { return listener_.told[id].ok >= 1; });
  EXPECT_EQ(counter(abi::Counter::scrapes_dropped), 1U) << "the next one is for the new generation";
}

TEST_F(ScrapeTest, StopsAskingWhatIsRemovedAndBeginsWhatJoins) {
  std::atomic<int> closed{0};
  const ScriptServer old([&](Peer& peer, int) {
    while (!peer.read_request().empty()) peer.answer(vllm_page(0, 0));
    ++closed;
  });
  const ScriptServer young(engine_with(vllm_page(5, 5)));
  put("old", old);
  go();
  until([this] { return of("old").ok >= 1; });
  specs_.clear();
  put("young", young);
  loop_.run([this] {
    ASSERT_TRUE(table_.replace(specs_, "file", kTick + 1).ok());
    scraper_->follow();
    EXPECT_EQ(scraper_->pages(), 1U);
  });
  until([this] { return of("young").ok >= 1; });
  until([&] { return closed == 1; });
}

TEST_F(ScrapeTest, AsksAnEndpointThatIsDownAsRarelyAsItsHealthSays) {
  const ScriptServer down([](Peer& peer, int) {
    peer.read_request();
    peer.reset();
  });
  const ScriptServer up(engine_with(vllm_page(1, 1)));
  put("down", down);
  put("up", up);
  go([this] { listener_.rare[endpoint("down").id] = true; });
  until([this] { return of("up").ok >= 8 && of("down").failed >= 1; });
  EXPECT_EQ(down.accepted(), 1);
}

TEST_F(ScrapeTest, AsksTheHealthPathBeforeThePage) {
  config_.health_path = "/health";
  std::atomic<int> status{200};
  std::mutex mutex;
  std::vector<std::string> asked;
  const ScriptServer server([&](Peer& peer, int) {
    while (true) {
      const std::string request = peer.read_request();
      if (request.empty()) return;
      const bool health = request.rfind("GET /health ", 0) == 0;
      {
        const std::lock_guard lock(mutex);
        asked.push_back(health ? "health" : "page");
      }
      peer.answer(health ? "" : vllm_page(1, 1), "", health ? status.load() : 200);
    }
  });
  put("e", server);
  go();
  until([this] { return of("e").ok >= 2; });
  {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(asked.at(0), "health");
    EXPECT_EQ(asked.at(1), "page");
  }
  status = 404;
  until([this] { return of("e").failed >= 2; });
  EXPECT_EQ(server.accepted(), 1);
}

TEST_F(ScrapeTest, TakesTheHealthPathInPlaceOfThePage) {
  config_.path = "";
  config_.health_path = "ready";
  std::string asked;
  const ScriptServer server([&](Peer& peer, int) {
    while (true) {
      const std::string request = peer.read_request();
      if (request.empty()) return;
      asked = request;
      peer.answer("fine");
    }
  });
  put("e", server);
  const LogLines log;
  go();
  until([this] { return of("e").unreadable >= 2; });  // it lives; of its load nothing is known
  EXPECT_EQ(of("e").failed + of("e").ok, 0);
  EXPECT_EQ(log.count("endpoint"), 0) << log.text();
  loop_.run([this] { scraper_.reset(); });
  EXPECT_EQ(asked.rfind("GET /ready HTTP/1.1\r\n", 0), 0U);
}

}  // namespace
}  // namespace pickd::scrape::test
