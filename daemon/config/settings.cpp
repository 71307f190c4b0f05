#include "daemon/config/settings.hpp"

#include "abi/limits.hpp"

namespace pickd::config {
namespace {

constexpr std::uint64_t kSecondMs = 1000;
constexpr std::uint64_t kHourMs = 3600 * kSecondMs;
constexpr std::uint64_t kUidMax = UINT32_MAX - 1;  // the last one means "no user"
constexpr std::uint64_t kPathBytesMax = 4095;
constexpr std::uint64_t kSocketPathBytesMax = 107;  // sun_path, with its zero
constexpr std::uint64_t kCpuMax = 1023;             // cpu_set_t

}  // namespace

const std::vector<Section>& sections() {
  static const std::vector<Section> table = {
      {"listen", "The control socket, who may use it, and how much one client may take."},
      {"state",
       "The state segment in shared memory: how large, how fine, and how long it remembers."},
      {"workers", "The threads that answer picks."},
      {"reservations", "Picks in flight, counted on their endpoints until they are reported done."},
      {"scrape",
       "Metrics pages of the engines: how loaded they are, and whether they live. Read of the "
       "endpoints of the file and of discovery, and of those that a client gave with a metrics "
       "URL; not with a virtual clock."},
      {"latency",
       "What is learned of how long requests take: the time to the first token (TTFT) and between "
       "tokens (ITL), from the reports on them. Each pick is predicted for each endpoint, in "
       "process."},
      {"explain",
       "Which picks are kept for `pickctl explain`: in the daemon's own memory, shown to "
       "listen.admin_uids and to the user who asked for the pick."},
      {"admin",
       "Metrics (`/metrics`), health (`/healthz`, `/readyz`) and a page to look at (`/`), over "
       "HTTP, read-only. Off unless admin.listen or admin.socket is set. Who reaches it reads "
       "names "
       "and addresses of endpoints and models; never prompts, sessions or request ids."},
      {"log", "The log goes to standard error, one line an event."},
      {"scheduling", "How an endpoint is chosen."},
  };
  return table;
}

// The member that a line of the table stands for.
#define AT(member) \
  [](Config & config) -> auto& { return config.member; }

// clang-format off
const std::vector<Setting>& settings() {
  using enum Kind;
  static const std::vector<Setting> table = {
      // key, member, kind, default, range, unit, help
      {"listen.socket", AT(listen.socket), kPath, "/run/pickd/pickd.sock",
       {1, kSocketPathBytesMax}, "bytes",
       "Path of the control socket. Clients find it by the same variable PICKD_SOCKET."},
      {"listen.mode", AT(listen.mode), kMode, "0660", {0, 0777}, "",
       "Permission bits of the socket: who may connect."},
      {"listen.group", AT(listen.group), kText, "", {0, 255}, "bytes",
       "Group of the socket, by name or number; empty: the daemon's own."},
      {"listen.admin_uids", AT(listen.admin_uids), kOptionalIntegers,
       "root and the daemon's own", {0, kUidMax}, "",
       "Users who may add, change, drain and remove endpoints; others get -EPERM. An empty list: "
       "nobody."},
      {"listen.allowed_uids", AT(listen.allowed_uids), kIntegers,
       "none: whoever the mode lets in", {0, kUidMax}, "",
       "Users who may connect at all, beside what the mode of the socket says."},
      {"listen.clients_max", AT(listen.clients_max), kInteger, "1024", {1, 65536}, "connections",
       "Clients at one time; the next one is refused."},
      {"listen.channels_max", AT(listen.channels_max), kInteger, "4096", {1, 65536}, "channels",
       "Channels of all clients together."},
      {"listen.channels_per_client_max", AT(listen.channels_per_client_max), kInteger, "1024",
       {1, abi::kChannelsPerClientMax}, "channels", "Channels of one client."},
      {"listen.keys_max", AT(listen.keys_max), kInteger, "2048", {abi::kKeysMin, abi::kKeysMax},
       "blocks",
       "Block keys of one submission, 8 bytes each in the ring; a longer prompt is cut there and "
       "flagged."},
      {"listen.clients_per_uid_max", AT(listen.clients_per_uid_max), kInteger, "0",
       {1, 65536, true}, "connections",
       "Clients of one user at one time. 0: three quarters of listen.clients_max, and no limit for "
       "listen.admin_uids."},
      {"listen.channels_per_uid_max", AT(listen.channels_per_uid_max), kInteger, "0",
       {1, 65536, true}, "channels",
       "Channels of one user. 0: three quarters of listen.channels_max, and no limit for "
       "listen.admin_uids."},
      {"listen.channels_mib_max", AT(listen.channels_mib_max), kInteger, "1024",
       {1, 1048576}, "MiB",
       "Memory of all channels together, of which the daemon allocates a channel's when it is "
       "opened: 168 KiB of the pool, more of a deep queue; one that does not fit gets -EMFILE."},
      {"listen.channels_mib_per_uid_max", AT(listen.channels_mib_per_uid_max), kInteger, "0",
       {1, 1048576, true}, "MiB",
       "Memory of the channels of one user. 0: three quarters of listen.channels_mib_max, and all "
       "of it for listen.admin_uids."},
      {"listen.messages_per_s", AT(listen.messages_per_s), kInteger, "2000000",
       {1, 1'000'000'000, true}, "messages a second",
       "Picks and reports of one user on all its channels; a second's worth may come at once. A "
       "pick beyond it gets -EAGAIN, a report never. 0: no limit."},
      {"listen.blocks_per_s", AT(listen.blocks_per_s), kInteger, "20000000",
       {1, 1'000'000'000, true}, "blocks a second",
       "Prefix blocks in the picks of one user, likewise: what it may put into the table. "
       "0: no limit."},
      {"listen.reactor", AT(listen.reactor), kReactor, "auto", {}, "",
       "How the thread that serves sockets waits for them. auto and io_uring: io_uring if it can "
       "be set up, else epoll; with io_uring, epoll is worth a warning in the log."},
      {"listen.hello_within", AT(listen.hello_within_ms), kMilliseconds, "10s", {10, kHourMs}, "",
       "A connection that has not said hello by then is closed."},

      {"state.path", AT(state.path), kPath, "/run/pickd/state", {1, kPathBytesMax}, "bytes",
       "The state file, on tmpfs. The default is `state` in $RUNTIME_DIRECTORY where systemd sets "
       "that."},
      {"state.size_mib", AT(state.size_mib), kInteger, "256", {8, 1048576}, "MiB",
       "Size of the state file: the hard cap. A (block, endpoint) pair takes 11 to 17 bytes of "
       "it."},
      {"state.block_tokens", AT(state.block_tokens), kInteger, "64",
       {abi::kBlockTokensMin, abi::kBlockTokensMax},
       "tokens", "Tokens of a prefix block, a multiple of 4; text counts 4 bytes a token."},
      {"state.ttl", AT(state.ttl_ms), kMilliseconds, "30min", {kSecondMs, 12 * kHourMs}, "",
       "How long a block is taken to be in an endpoint's cache after a pick put it there."},
      {"state.capacity_tokens", AT(state.capacity_tokens), kInteger, "500000",
       {1024, 1'000'000'000, true}, "tokens",
       "KV cache of an endpoint that does not name its own; 0: no limit. Beyond it the oldest "
       "blocks are forgotten."},
      {"state.prefix_blocks_min", AT(state.prefix_blocks_min), kInteger, "1", {1, 1024}, "blocks",
       "A shorter match counts as none."},
      {"state.prefix_blocks_max", AT(state.prefix_blocks_max), kInteger, "16384",
       {1, abi::kKeysMax}, "blocks",
       "Blocks from the start of a prompt that count; at least state.prefix_blocks_min."},
      {"state.endpoints_max", AT(state.endpoints_max), kInteger, "4095",
       {1, abi::kEndpointIdsMax - 1}, "endpoints",
       "Endpoints at one time, from all sources."},

      {"workers.count", AT(workers.count), kInteger, "1", {1, abi::kWorkersMax}, "threads",
       "Each channel belongs to one of them."},
      {"workers.spin", AT(workers.spin_us), kMicroseconds, "50us", {0, 10'000}, "",
       "How long an idle worker looks for work at most before it sleeps; it looks less while that "
       "fails or costs it its core. 0us: sleep at once."},
      {"workers.busy_poll", AT(workers.busy_poll), kBoolean, "false", {}, "",
       "Never sleep. Each worker takes a whole core; give it one with workers.cpus."},
      {"workers.cpus", AT(workers.cpus), kIntegers, "none: anywhere", {0, kCpuMax}, "",
       "Cores the workers are pinned to, in turn."},

      {"reservations.max", AT(reservations.max), kPowerOfTwo, "65536", {64, 1048576},
       "reservations",
       "Picks in flight at one time; rounded up to a power of two."},
      {"reservations.per_uid_max", AT(reservations.per_uid_max), kInteger, "0",
       {1, 1048576, true}, "reservations",
       "Picks in flight of one user; the next one gets -EAGAIN. 0: none is refused, but those "
       "beyond three quarters of reservations.max are answered without a reservation."},
      {"reservations.lease", AT(reservations.lease_ms), kMilliseconds, "10min",
       {kSecondMs, 24 * kHourMs}, "",
       "A reservation that nothing is reported on for this long is released."},
      {"reservations.come_back_within", AT(reservations.come_back_within_ms), kMilliseconds, "10s",
       {10, 24 * kHourMs}, "",
       "After a warm start the reservations of clients that have not connected again by then are "
       "released."},

      {"scrape.enabled", AT(scrape.enabled), kBoolean, "true", {}, "",
       "Without it endpoints are ready as soon as they are known, and failed requests alone say "
       "otherwise."},
      {"scrape.interval", AT(scrape.interval_ms), kMilliseconds, "1s", {100, 10 * 60 * kSecondMs},
       "",
       "Time between two pages of one engine. Its own counts carry the load in between; engines "
       "suffer from much less."},
      {"scrape.connect_timeout", AT(scrape.connect_timeout_ms), kMilliseconds, "1s",
       {10, 60 * kSecondMs}, "", "Until a connection stands, look-up and TLS included."},
      {"scrape.timeout", AT(scrape.timeout_ms), kMilliseconds, "2s", {10, 60 * kSecondMs}, "",
       "Until the whole page is there, connecting included."},
      {"scrape.stale", AT(scrape.stale_ms), kMilliseconds, "0ms", {1, kHourMs, true}, "",
       "Age from which what a page said counts as unknown. 0ms: two intervals, at least 2s. Less "
       "than two intervals is taken as two intervals, with a warning."},
      {"scrape.page_bytes_max", AT(scrape.page_bytes_max), kInteger, "4194304",
       {1024, 1 << 30}, "bytes", "A larger page is given up. It is never held whole."},
      {"scrape.path", AT(scrape.path), kText, "/metrics", {0, 255}, "bytes",
       "Path of the page at an endpoint's address; a metrics_url says its own. Empty: no pages."},
      {"scrape.health_path", AT(scrape.health_path), kText, "", {0, 255}, "bytes",
       "Asked before each page, or in its place where path is empty; anything but 2xx is a "
       "failure. Empty: none."},
      {"scrape.tls", AT(scrape.tls), kBoolean, "false", {}, "",
       "Whether addresses without a scheme are asked over TLS."},
      {"scrape.tls_ca_file", AT(scrape.tls_ca_file), kText, "", {0, kPathBytesMax}, "bytes",
       "Certificates of the authorities that are believed, PEM. Empty: the system's."},
      {"scrape.tls_server_name", AT(scrape.tls_server_name), kText, "", {0, 255}, "bytes",
       "The name that certificates must carry. Empty: that of the address."},
      {"scrape.tls_skip_verify", AT(scrape.tls_skip_verify), kBoolean, "false", {}, "",
       "Take any certificate."},
      {"scrape.bearer_token_file", AT(scrape.bearer_token_file), kText, "", {0, kPathBytesMax},
       "bytes", "Holds the token to send; read again when it changes. Empty: none."},
      {"scrape.engine", AT(scrape.engine), kText, "", {0, abi::kEngineBytesMax}, "bytes",
       "Whose metrics the pages hold, for endpoints that do not say. Empty: detected."},

      {"latency.enabled", AT(latency.enabled), kBoolean, "true", {}, "",
       "Without it nothing is learned or predicted, and the profile is epp-default unless the "
       "file says another; least-predicted-cost is refused then."},
      {"latency.memory_samples", AT(latency.memory_samples), kInteger, "500", {50, 100'000},
       "requests",
       "How many requests the models and their measured errors look back on, about; fewer follow "
       "a change sooner and are noisier."},
      {"latency.samples_min", AT(latency.samples_min), kInteger, "20", {1, 10'000}, "requests",
       "Streamed requests that a model must have seen before it may be trusted with SLOs. It must "
       "also beat the running mean."},
      {"latency.output_tokens", AT(latency.output_tokens), kInteger, "200", {1, 1'000'000},
       "tokens", "Length of an answer, until answers have been reported."},
      {"latency.percentile", AT(latency.percentile), kInteger, "90", {50, 99}, "percent",
       "The percentile that is predicted beside the mean, from the errors of late."},
      {"explain.picks_per_s", AT(explain.picks_per_s), kInteger, "10", {1, 1'000'000, true},
       "picks a second", "Picks of each worker that are kept. 0: none; dry runs are explained all "
       "the same."},
      {"explain.memory_kib", AT(explain.memory_kib), kInteger, "1024", {64, 1048576}, "KiB",
       "For the kept picks of each worker, the newest of them; one over 100 endpoints takes about "
       "16 KiB."},

      {"admin.listen", AT(admin.listen), kText, "", {0, 255}, "bytes",
       "TCP address and port to serve at, such as `127.0.0.1:9464` or `[::1]:9464`; port 0: any, "
       "the log says which. Empty: none."},
      {"admin.socket", AT(admin.socket), kText, "", {0, kSocketPathBytesMax}, "bytes",
       "Absolute path of a Unix socket to serve at, too or instead. Empty: none."},
      {"admin.mode", AT(admin.mode), kMode, "0660", {0, 0777}, "",
       "Permission bits of admin.socket."},
      {"admin.allow_remote", AT(admin.allow_remote), kBoolean, "false", {}, "",
       "Lets admin.listen be an address that other machines reach. There is no password: whoever "
       "reaches it reads it."},
      {"admin.page", AT(admin.page), kBoolean, "true", {}, "",
       "Serve the page at `/` and what it shows; without it metrics and health alone."},
      {"admin.endpoints_max", AT(admin.endpoints_max), kInteger, "256",
       {1, abi::kEndpointIdsMax}, "endpoints",
       "Endpoints told apart in metrics and on the page. In metrics those beyond are summed as "
       "`other`."},
      {"admin.connections_max", AT(admin.connections_max), kInteger, "32", {1, 1024},
       "connections",
       "At one time. Beyond it the one that idles for longest is closed; where none idles, the new "
       "one."},
      {"admin.request_within", AT(admin.request_within_ms), kMilliseconds, "5s",
       {10, 60 * kSecondMs}, "",
       "A request that is not there by then, or an answer of which nothing was taken for so long, "
       "ends its connection."},
      {"admin.idle", AT(admin.idle_ms), kMilliseconds, "90s", {10, kHourMs}, "",
       "A connection without a request for this long is closed."},

      {"log.level", AT(log.level), kLogLevel, "info", {}, "", "The least severe that is written."},

      {"scheduling.profile", AT(scheduling.profile), kText, "", {0, 127}, "bytes",
       "A built-in profile by name, in place of plugins and schedulingProfiles."},
      {"schedulingConfigFile", AT(scheduling.file), kFile, "", {0, kPathBytesMax}, "bytes",
       "A file with an EndpointPickerConfig, in place of one under `scheduling:`; may stand there "
       "too."},
  };
  return table;
}
// clang-format on
#undef AT

const Setting* find_setting(std::string_view key) {
  for (const Setting& setting : settings()) {
    if (setting.key == key) return &setting;
  }
  return nullptr;
}

Config::Config() {
  for (const Setting& setting : settings()) {
    // A default that its own rules refuse is a mistake in the table; a test loads them all.
    if (!setting.is_list()) static_cast<void>(set_from_text(setting, setting.absent, *this));
  }
}

}  // namespace pickd::config
