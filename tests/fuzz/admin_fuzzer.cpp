// Arbitrary bytes as what a connection of the admin listener sends: read whole and in pieces, which
// must come to the same requests and the same refusal.
//
// The first byte says how long the pieces are.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/admin/listen.hpp"
#include "daemon/admin/metrics_page.hpp"
#include "daemon/admin/request_reader.hpp"
#include "daemon/admin/utf8.hpp"

namespace {

using pickd::admin::Request;
using pickd::admin::RequestReader;
using State = RequestReader::State;

constexpr std::size_t kHeadBytesMax = 512;

struct Seen {
  std::vector<std::string> requests;
  bool refused = false;
};

std::string words_of(const Request& request) {
  if (request.path.empty() || request.path[0] != '/') std::abort();
  if (request.path.size() + request.query.size() + request.host.size() + request.accept.size() >
      2 * kHeadBytesMax) {
    std::abort();
  }
  pickd::admin::is_address(request.host);
  pickd::admin::format_for(request.accept);
  pickd::admin::valid_utf8(request.path);
  static_cast<void>(request.parameter("since"));
  return request.method + '\n' + request.path + '\n' + request.query + '\n' + request.host + '\n' +
         request.accept + (request.keep_alive ? "\n1" : "\n0");
}

void take(RequestReader& reader, State state, Seen& seen) {
  for (; state == State::kReady; state = reader.next())
    seen.requests.push_back(words_of(reader.request()));
  if (state != State::kRefused) return;
  seen.refused = true;
  if (reader.status() < 400 || reader.status() > 599 || *reader.why() == '\0') std::abort();
}

// At once: what stands behind a refused request is never looked at, however it came.
Seen read(std::string_view bytes, std::size_t step) {
  RequestReader reader(kHeadBytesMax);
  Seen seen;
  while (!bytes.empty() && !seen.refused) {
    const std::string piece(bytes.substr(0, step));
    bytes.remove_prefix(piece.size());
    take(reader, reader.feed(piece), seen);
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Seen whole = read(bytes, SIZE_MAX);
  const Seen pieces = read(bytes, 1 + data[0] % 64);
  if (whole.requests != pieces.requests || whole.refused != pieces.refused) std::abort();
  return 0;
}
