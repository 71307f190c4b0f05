// See support.hpp.
#include "tests/system/support.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

namespace pickd::systests {

namespace {

constexpr auto kGenerousMs = std::chrono::duration_cast<std::chrono::milliseconds>(kGenerous);
constexpr std::chrono::milliseconds kLookAgain{2};

std::string binary(const std::string& program) { return PICKD_BINARY_DIR "/bin/" + program; }

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

tools::TempDir make_directory() {
  auto made = tools::TempDir::make("pickd-systest");
  if (!made) throw std::runtime_error(made.error().text);
  return std::move(*made);
}

}  // namespace

bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kGenerous;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(kLookAgain);
  }
  return true;
}

// ---- The daemon ---------------------------------------------------------------------------------

Daemon::Daemon(const Settings& settings)
    : directory_(make_directory()), arguments_(settings.arguments), runner_(settings.runner) {
  std::ofstream file(config());
  file << "listen:\n  socket: " << socket() << '\n';
  for (const std::string& line : settings.listen) file << "  " << line << '\n';
  file << "state:\n  path: " << state() << "\n  size_mib: 32\n";
  for (const std::string& line : settings.state) file << "  " << line << '\n';
  file << settings.rest << '\n';
  // Nobody is at the made-up addresses.
  if (settings.rest.find("scrape:") == std::string::npos) file << "scrape: {enabled: false}\n";
  if (settings.endpoints != 0) file << "endpoints:\n";
  for (std::size_t at = 0; at < settings.endpoints; ++at) {
    file << "  - {name: e" << at << ", address: \"10.0.0." << at << ":8000\"}\n";
  }
  file.close();
  start();
}

Daemon::~Daemon() {
  control_.reset();
  child_.signal(SIGCONT);
  child_.stop(kGenerousMs);
  if (testing::Test::HasFailure()) std::fprintf(stderr, "---- pickd's log ----\n%s", log().c_str());
}

void Daemon::start() {
  control_.reset();
  const std::string error_file = directory() + "/log";
  std::filesystem::remove(error_file);  // so that the word of a former life is not taken for this
  std::vector<std::string> arguments = runner_;
  if (!arguments.empty()) arguments.front() = binary(arguments.front());
  arguments.insert(arguments.end(), {binary("pickd"), "--config", config()});
  arguments.insert(arguments.end(), arguments_.begin(), arguments_.end());
  auto child = tools::Child::start(arguments, {true, error_file});
  ASSERT_TRUE(child.ok()) << child.error().text;
  child_ = std::move(*child);
  const auto ready = tools::wait_for_text(child_, error_file, "ready on", kGenerousMs);
  ASSERT_TRUE(ready.ok()) << ready.error().text;
}

int Daemon::stop() {
  control_.reset();
  child_.stop(kGenerousMs);
  return child_.exit_status();
}

void Daemon::signal(int number) { child_.signal(number); }

void Daemon::reap() {
  EXPECT_TRUE(eventually([this] { return !child_.running(); }));
  control_.reset();
}

std::string Daemon::log() const { return read_file(directory() + "/log"); }

tools::ControlClient& Daemon::control() {
  if (!control_) control_ = std::make_unique<tools::ControlClient>(socket(), "systest");
  return *control_;
}

StatusView Daemon::status() {
  const auto& answer = control().ask<fb::AskStatus, fb::StatusAnswer>(fb::CreateAskStatus);
  StatusView view;
  view.pid = answer.pid();
  view.clients = answer.clients();
  view.channels = answer.channels();
  view.reservations = answer.reservations();
  view.daemon_epoch = answer.daemon_epoch();
  if (answer.latency() != nullptr && answer.latency()->size() != 0) {
    const fb::LatencyModel& ttft = *answer.latency()->Get(0)->ttft();
    view.ttft_samples = ttft.samples();
    view.ttft_mape = ttft.mape();
    view.ttft_ready = ttft.ready();
  }
  constexpr std::string_view kPrefix = "pickd_";
  constexpr std::string_view kSuffix = "_total";
  for (const fb::Counter* counter : *answer.counters()) {
    std::string name = counter->name()->str();
    if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
    if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
    view.counters[name] = counter->value();
  }
  return view;
}

std::uint64_t Daemon::counter(const std::string& name) { return status().counters.at(name); }

std::map<std::string, EndpointView> Daemon::endpoints() {
  std::map<std::string, EndpointView> views;
  std::uint32_t from = 0;
  do {
    const auto& page = tools::ControlClient::expect<fb::EndpointsAnswer>(
        control().ask([from](client::ControlExchange& exchange) {
          exchange.set_body(fb::CreateAskEndpoints(exchange.builder(), from));
        }));
    for (const fb::EndpointStatus* endpoint : *page.endpoints()) {
      views[endpoint->name()->str()] = {endpoint->id(),
                                        endpoint->generation(),
                                        endpoint->state(),
                                        endpoint->address()->str(),
                                        endpoint->inflight_requests(),
                                        endpoint->inflight_tokens()};
    }
    from = page.next_id();
  } while (from != 0);
  return views;
}

std::uint64_t Daemon::inflight() {
  std::uint64_t sum = 0;
  for (const auto& [name, endpoint] : endpoints()) sum += endpoint.inflight_requests;
  return sum;
}

std::size_t Daemon::descriptors() const {
  const std::filesystem::directory_iterator open("/proc/" + std::to_string(pid()) + "/fd");
  return static_cast<std::size_t>(std::distance(begin(open), end(open)));
}

// ---- The library --------------------------------------------------------------------------------

Client::Client(const std::string& socket, std::uint32_t channels_max) {
  pickd_options options = PICKD_OPTIONS_INIT;
  options.socket_path = socket.c_str();
  options.channels_max = channels_max;
  options.connect_timeout_ms = static_cast<std::uint32_t>(kGenerousMs.count());
  EXPECT_EQ(pickd_open(&options, &client_), 0);
}

void Client::close() {
  pickd_close(client_);
  client_ = nullptr;
}

std::string Client::last_error() const {
  char text[512];
  pickd_last_error(client_, text, sizeof text);
  return text;
}

int Client::report(pickd_ticket ticket, pickd_report_kind kind, const std::string& endpoint) const {
  pickd_report_info info = PICKD_REPORT_INIT;
  info.ticket = ticket;
  info.kind = kind;
  info.endpoint = {endpoint.data(), endpoint.size()};
  return pickd_report(client_, &info, kGenerousUs);
}

int Client::add(const std::string& name, const std::string& address) const {
  pickd_endpoint endpoint = PICKD_ENDPOINT_INIT;
  endpoint.name = name.c_str();
  endpoint.address = address.c_str();
  return pickd_endpoint_add(client_, &endpoint);
}

Request& Request::text(const std::string& prompt) {
  prompt_ = prompt;
  segment_ = {prompt_.data(), prompt_.size()};
  raw.text = &segment_;
  raw.text_count = 1;
  return *this;
}

Request& Request::subset(const std::vector<std::string>& names) {
  names_ = names;
  name_slices_.clear();
  for (const std::string& name : names_) name_slices_.push_back({name.data(), name.size()});
  raw.subset = name_slices_.data();
  raw.subset_count = name_slices_.size();
  raw.flags |= PICKD_REQUEST_SUBSET;
  return *this;
}

std::string Result::name(std::size_t index) const {
  const char* text = pickd_result_name(result_, index);
  return text == nullptr ? "" : text;
}

int pick(const Client& client, const Request& request, const Result& result,
         std::int64_t timeout_us) {
  return pickd_pick(client.get(), &request.raw, timeout_us, result.get());
}

std::string prompt_of(std::size_t bytes, unsigned seed) {
  std::mt19937_64 random(seed * 2654435761U + 1);
  std::string prompt(bytes, '\0');
  for (std::size_t at = 0; at < bytes; at += 8) {
    const std::uint64_t word = random();
    std::memcpy(prompt.data() + at, &word, std::min<std::size_t>(8, bytes - at));
  }
  return prompt;
}

// ---- Processes ----------------------------------------------------------------------------------

Forked::Forked(const std::function<int(Forked& self)>& body) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  base::Fd mine(ends[0]);
  base::Fd theirs(ends[1]);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ != 0) {
    socket_ = std::move(mine);
    return;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(120);
  mine.reset();
  socket_ = std::move(theirs);
  int code = 121;
  try {
    code = body(*this);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "forked child: %s\n", error.what());
  }
  ::_exit(code);
}

Forked::~Forked() {
  if (pid_ <= 0) return;
  kill(SIGKILL);
  wait();
}

void Forked::say(char word) const { EXPECT_EQ(::send(socket_.get(), &word, 1, MSG_NOSIGNAL), 1); }

char Forked::hear() const {
  pollfd waiting{socket_.get(), POLLIN, 0};
  char word = 0;
  if (::poll(&waiting, 1, static_cast<int>(kGenerousMs.count())) <= 0) return 0;
  return ::read(socket_.get(), &word, 1) == 1 ? word : '\0';
}

bool Forked::spoken_to() const {
  pollfd waiting{socket_.get(), POLLIN, 0};
  return ::poll(&waiting, 1, 0) == 1;
}

void Forked::kill(int signal) const { ::kill(pid_, signal); }

int Forked::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

Ended run(const std::string& program, const std::vector<std::string>& arguments) {
  const tools::TempDir directory = make_directory();
  std::vector<std::string> all = {binary(program)};
  all.insert(all.end(), arguments.begin(), arguments.end());
  auto child = tools::Child::start(all, {true, directory.path() + "/errors"});
  EXPECT_TRUE(child.ok()) << child.error().text;
  if (!child) return {};
  Ended result;
  for (;;) {
    pollfd waiting{child->output(), POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(kGenerousMs.count())) <= 0) break;
    char bytes[4096];
    const ssize_t got = ::read(child->output(), bytes, sizeof bytes);
    if (got == 0) break;
    if (got > 0) result.output.append(bytes, static_cast<std::size_t>(got));
  }
  EXPECT_TRUE(eventually([&] { return !child->running(); })) << program << " does not end";
  const int status = child->exit_status();
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.errors = read_file(directory.path() + "/errors");
  return result;
}

}  // namespace pickd::systests
