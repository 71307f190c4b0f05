#include "daemon/net/resolver.hpp"

#include <ares.h>
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <netdb.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>

namespace pickd::net {

namespace {

constexpr int kTries = 3;
constexpr std::uint64_t kTrySharesInAll = 7;  // c-ares waits twice as long at each try: 1 + 2 + 4
// Questions on the way at one time: a thousand at once overflow the socket of a small server, and
// what is lost there waits for the next try.
constexpr std::size_t kOpenMax = 64;
constexpr std::uint32_t kHostsFileTtlS = 30;  // the file names no time; it may be written any time

int wire_type(DnsType type) {
  return type == DnsType::kA ? ns_t_a : type == DnsType::kAaaa ? ns_t_aaaa : ns_t_srv;
}

// "[fd00::1]" and "fd00::1" are one address; nothing for what is none.
std::optional<std::string> literal_address(std::string host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  in6_addr any;
  const bool is = ::inet_pton(AF_INET, host.c_str(), &any) == 1 ||
                  ::inet_pton(AF_INET6, host.c_str(), &any) == 1;
  return is ? std::optional(host) : std::nullopt;
}

// c-ares asks for a call before anything else is called; the library stays until the process ends.
void start_library() {
  static std::once_flag once;
  std::call_once(once, [] { ares_library_init(ARES_LIB_INIT_ALL); });
}

class AresResolver final : public Resolver {
 public:
  AresResolver(Reactor& reactor, const ResolverOptions& options)
      : reactor_(reactor), options_(options) {}

  ~AresResolver() override {
    ending_ = true;
    for (auto& [id, question] : questions_) {
      reactor_.cancel(question.deadline);
      reactor_.cancel(question.delivery);
    }
    questions_.clear();
    if (channel_ != nullptr) ares_destroy(channel_);  // calls back for what is open; see ending_
    reactor_.cancel(timer_);
    for (const int fd : watched_) reactor_.unwatch(fd);
  }

  base::Result<void> open() {
    start_library();
    ares_options options{};
    options.timeout = static_cast<int>(
        std::clamp<std::uint64_t>(options_.timeout_ms / kTrySharesInAll, 10, 10'000));
    options.tries = kTries;
    options.sock_state_cb = [](void* self, ares_socket_t fd, int readable, int writable) {
      static_cast<AresResolver*>(self)->watch(fd, readable != 0, writable != 0);
    };
    options.sock_state_cb_data = this;
    const int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB;
    if (const int code = ares_init_options(&channel_, &options, mask); code != ARES_SUCCESS)
      return base::Error{-EIO, std::string("the resolver cannot start: ") + ares_strerror(code)};
    read_search_domains();
    return use_servers();
  }

  QuestionId ask(const std::string& name, DnsType type, Handler handler) override {
    const QuestionId id = begin(std::move(handler));
    Question& question = questions_.at(id);
    question.types = {type};
    start(id, question, name);
    return id;
  }

  QuestionId ask_addresses(const std::string& host, Handler handler) override {
    const QuestionId id = begin(std::move(handler));
    Question& question = questions_.at(id);
    if (const auto literal = literal_address(host)) {
      DnsAnswer answer{DnsAnswer::Status::kFound, {}, UINT32_MAX, ""};
      answer.records.emplace_back().address = *literal;
      deliver(id, std::move(answer));
    } else if (auto known = in_hosts_file(host)) {
      deliver(id, std::move(*known));
    } else {
      question.types = {DnsType::kA, DnsType::kAaaa};
      start(id, question, host);
    }
    return id;
  }

  void cancel(QuestionId id) override {
    const auto at = questions_.find(id);
    if (at == questions_.end()) return;
    reactor_.cancel(at->second.deadline);
    reactor_.cancel(at->second.delivery);
    questions_.erase(at);  // what c-ares still says of it finds nobody
  }

 private:
  // One question of ours is one or more of c-ares's, in turn: a type at a time, and each with the
  // search domains. ares_search() would do the latter, but it takes the next domain's "no such
  // name" for the answer when the right domain's server failed.
  struct Question {
    Handler handler;
    std::vector<DnsType> types;  // to be asked in turn until one is found
    std::size_t type_at = 0;
    std::vector<std::string> names;  // the name with each search domain, in turn
    std::size_t name_at = 0;
    std::string failure;  // of the first that failed
    bool done = false;    // its answer is on the way
    Reactor::TimerId deadline = 0;
    Reactor::TimerId delivery = 0;
  };
  struct Call {
    AresResolver* self;
    QuestionId id;
  };

  QuestionId begin(Handler handler) {
    const QuestionId id = ++next_;
    Question& question = questions_[id];
    question.handler = std::move(handler);
    question.deadline =
        reactor_.after(options_.timeout_ms * 1'000'000, [this, id] { fail(id, no_answer()); });
    return id;
  }

  void start(QuestionId id, Question& question, const std::string& name) {
    const bool absolute = name.ends_with('.');
    const std::string plain = absolute ? name.substr(0, name.size() - 1) : name;
    if (plain.empty() || plain.size() > 253) {
      fail(id, "not a name that can be looked up");
      return;
    }
    const auto dots = static_cast<int>(std::count(plain.begin(), plain.end(), '.'));
    if (absolute || dots >= dots_min_) question.names.push_back(plain);
    if (!absolute) {
      for (const std::string& domain : domains_) question.names.push_back(plain + "." + domain);
      if (dots < dots_min_) question.names.push_back(plain);
    }
    query(id);
  }

  void query(QuestionId id) {
    if (open_ >= kOpenMax) return waiting_.push_back(id);
    ++open_;
    const Question& question = questions_.at(id);
    ares_query(
        channel_, question.names[question.name_at].c_str(), ns_c_in,
        wire_type(question.types[question.type_at]),
        [](void* call, int status, int, unsigned char* bytes, int size) {
          const std::unique_ptr<Call> of(static_cast<Call*>(call));
          if (of->self->ending_) return;
          --of->self->open_;
          of->self->answered(of->id, status,
                             {bytes, bytes == nullptr ? 0 : static_cast<std::size_t>(size)});
        },
        new Call{this, id});
    set_timer();
  }

  void answered(QuestionId id, int status, std::span<const std::uint8_t> message) {
    take_answer(id, status, message);
    if (opening_) return;  // c-ares may answer within query(): the loop below is on the stack
    opening_ = true;
    while (open_ < kOpenMax && !waiting_.empty()) {
      const QuestionId next = waiting_.front();
      waiting_.pop_front();
      const auto at = questions_.find(next);
      if (at != questions_.end() && !at->second.done) query(next);
    }
    opening_ = false;
  }

  void take_answer(QuestionId id, int status, std::span<const std::uint8_t> message) {
    const auto at = questions_.find(id);
    if (at == questions_.end() || at->second.done) return;
    Question& question = at->second;
    if (status == ARES_SUCCESS) {
      auto answer = read_dns_answer(message, question.types[question.type_at]);
      if (!answer) return ask_next(id, question, answer.error().text);
      if (answer->status == DnsAnswer::Status::kFound) return deliver(id, std::move(*answer));
      return ask_next(id, question, "");
    }
    const bool told = status == ARES_ENOTFOUND || status == ARES_ENODATA;
    // Which of the two timers comes first, c-ares's or the question's, is nobody's concern.
    const std::string why = status == ARES_ETIMEOUT ? no_answer() : ares_strerror(status);
    ask_next(id, question, told ? "" : why);
  }

  std::string no_answer() const {
    return "no answer within " + std::to_string(options_.timeout_ms) + " ms";
  }

  void ask_next(QuestionId id, Question& question, const std::string& failure) {
    if (question.failure.empty()) question.failure = failure;
    if (++question.name_at == question.names.size()) {
      question.name_at = 0;
      ++question.type_at;
    }
    if (question.type_at < question.types.size()) return query(id);
    if (!question.failure.empty()) return fail(id, question.failure);
    deliver(id, {DnsAnswer::Status::kNone, {}, 0, ""});
  }

  void fail(QuestionId id, const std::string& why) {
    deliver(id, {DnsAnswer::Status::kFailed, {}, 0, why});
  }

  // In a turn of its own: c-ares may be on the stack, or the caller still inside ask().
  void deliver(QuestionId id, DnsAnswer answer) {
    Question& question = questions_.at(id);
    if (question.done) return;
    question.done = true;
    reactor_.cancel(question.deadline);
    question.delivery = reactor_.after(0, [this, id, answer = std::move(answer)] {
      const auto at = questions_.find(id);
      const Handler handler = std::move(at->second.handler);
      questions_.erase(at);
      handler(answer);
    });
  }

  std::optional<DnsAnswer> in_hosts_file(const std::string& host) {
    DnsAnswer answer{DnsAnswer::Status::kFound, {}, kHostsFileTtlS, ""};
    for (const int family : {AF_INET, AF_INET6}) {
      hostent* entry = nullptr;
      if (ares_gethostbyname_file(channel_, host.c_str(), family, &entry) != ARES_SUCCESS) continue;
      for (char** at = entry->h_addr_list; *at != nullptr; ++at) {
        char text[INET6_ADDRSTRLEN];
        ::inet_ntop(entry->h_addrtype, *at, text, sizeof text);
        answer.records.emplace_back().address = text;
      }
      ares_free_hostent(entry);
    }
    return answer.records.empty() ? std::nullopt : std::optional(std::move(answer));
  }

  void read_search_domains() {
    ares_options saved{};
    int mask = 0;
    if (ares_save_options(channel_, &saved, &mask) != ARES_SUCCESS) return;
    dots_min_ = saved.ndots;
    for (int at = 0; at < saved.ndomains; ++at) domains_.emplace_back(saved.domains[at]);
    ares_destroy_options(&saved);
  }

  base::Result<void> use_servers() {
    if (options_.servers.empty()) return {};
    domains_.clear();  // those of resolv.conf belong to its servers
    std::string list;
    for (const std::string& server : options_.servers) list += (list.empty() ? "" : ",") + server;
    if (const int code = ares_set_servers_ports_csv(channel_, list.c_str()); code != ARES_SUCCESS) {
      return base::Error{-EINVAL, "DNS servers must be addresses, such as 10.96.0.10:53; is \"" +
                                      list + "\": " + ares_strerror(code)};
    }
    return {};
  }

  void watch(int fd, bool readable, bool writable) {
    const std::uint32_t interest = (readable ? kReadable : 0U) | (writable ? kWritable : 0U);
    const bool known = watched_.contains(fd);
    if (interest == 0) {
      if (known) reactor_.unwatch(fd);
      watched_.erase(fd);
      return;
    }
    if (ending_) return;
    const auto watched = known ? reactor_.change(fd, interest)
                               : reactor_.watch(fd, interest, [this, fd](std::uint32_t readiness) {
                                   process(fd, readiness);
                                 });
    if (watched) watched_.insert(fd);  // else the time-out of the question tells
  }

  void process(int fd, std::uint32_t readiness) {
    const bool hung_up = (readiness & kHungUp) != 0;  // reading tells c-ares
    const bool readable = hung_up || (readiness & kReadable) != 0;
    ares_process_fd(channel_, readable ? fd : ARES_SOCKET_BAD,
                    (readiness & kWritable) != 0 ? fd : ARES_SOCKET_BAD);
    set_timer();
  }

  void set_timer() {
    reactor_.cancel(timer_);
    timer_ = 0;
    timeval next{};
    if (ares_timeout(channel_, nullptr, &next) == nullptr) return;
    const std::uint64_t delay_ns = static_cast<std::uint64_t>(next.tv_sec) * 1'000'000'000ULL +
                                   static_cast<std::uint64_t>(next.tv_usec) * 1000ULL;
    timer_ = reactor_.after(delay_ns + 1'000'000, [this] {
      ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
      set_timer();
    });
  }

  Reactor& reactor_;
  ResolverOptions options_;
  ares_channel channel_ = nullptr;
  std::vector<std::string> domains_;
  int dots_min_ = 1;
  std::map<QuestionId, Question> questions_;
  std::size_t open_ = 0;            // c-ares has yet to call back for
  std::deque<QuestionId> waiting_;  // for a place among them
  std::set<int> watched_;
  Reactor::TimerId timer_ = 0;
  QuestionId next_ = 0;
  bool opening_ = false;
  bool ending_ = false;
};

}  // namespace

base::Result<std::unique_ptr<Resolver>> Resolver::create(Reactor& reactor,
                                                         const ResolverOptions& options) {
  auto resolver = std::make_unique<AresResolver>(reactor, options);
  if (auto opened = resolver->open(); !opened) return opened.error();
  return std::unique_ptr<Resolver>(std::move(resolver));
}

}  // namespace pickd::net
