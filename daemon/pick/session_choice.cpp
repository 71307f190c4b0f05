#include "daemon/pick/session_choice.hpp"

#include <algorithm>

namespace pickd::pick {

namespace {

constexpr std::uint64_t kTtlMsMin = 1'000;
constexpr std::uint64_t kTtlMsMax = 12ULL * 3600 * 1000;
constexpr std::size_t kTokenBytesMax =
    2 * (abi::kEndpointNameBytesMax + 1);  // pool or namespace, slash, name

int sextet(char letter) {
  if (letter >= 'A' && letter <= 'Z') return letter - 'A';
  if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
  if (letter >= '0' && letter <= '9') return letter - '0' + 52;
  if (letter == '+' || letter == '-') return 62;
  if (letter == '/' || letter == '_') return 63;
  return -1;
}

// A token names an endpoint by its name, or by "pool/name" as the Endpoint Picker's
// "namespace/name".
bool names(std::string_view token, const endpoints::TopologyEndpoint& endpoint) {
  if (token == endpoint.name) return true;
  const std::size_t name_bytes = endpoint.name.size();
  return token.size() > name_bytes + 1 && token.ends_with(endpoint.name) &&
         token[token.size() - name_bytes - 1] == '/';
}

}  // namespace

std::size_t decode_base64(std::string_view text, std::span<char> out) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  if (text.size() % 4 == 1) return 0;
  std::size_t written = 0;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char letter : text) {
    const int value = sextet(letter);
    if (value < 0) return 0;
    bits = (bits << 6) | static_cast<std::uint32_t>(value);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    if (written == out.size()) return 0;
    out[written++] = static_cast<char>(bits >> held & 0xFF);
  }
  return written;
}

std::vector<ParameterInfo> SessionChoice::parameters() {
  return {
      {"algorithm", ParameterKind::kChoice, "auto", 0, 0,
       "auto|encoded_endpoint_header|session_id_header",
       "`encoded_endpoint_header`: the request carries the Base64 of the endpoint's name, or of "
       "`pool/name`, which its gateway made from the last result. `session_id_header`: the "
       "session id, remembered here. `auto`: the token where it names an endpoint, else the id."},
      {"headerName", ParameterKind::kText, "x-session-token", 1, 255, "",
       "Request attribute with the token; with `session_id_header` the one with the id, for "
       "requests that name no session."},
      {"ttl", ParameterKind::kDuration, "5min", static_cast<double>(kTtlMsMin),
       static_cast<double>(kTtlMsMax), "", "How long a session is remembered without a pick."},
      {"evictionTtlSeconds", ParameterKind::kNumber, "300", 1, 43'200, "",
       "The same in seconds, as the Endpoint Picker has it; wins over `ttl`."},
      {"evictionSweepSeconds", ParameterKind::kNumber, "10", 0, 1e6, "",
       "Taken without effect: the table is of fixed size."},
      {"missThreshold", ParameterKind::kInteger, "3", 0, 1e6, "",
       "Taken without effect: a session moves with the first pick elsewhere."},
      {"profileName", ParameterKind::kText, "", 0, 127, "",
       "Taken without effect: the gateway writes the tokens."}};
}

SessionChoice::SessionChoice(Parameters& parameters) {
  const std::string algorithm = parameters.choice("algorithm");
  by_token_ = algorithm != "session_id_header";
  by_id_ = algorithm != "encoded_endpoint_header";
  header_ = parameters.text("headerName");
  ttl_ms_ = parameters.duration_ms("ttl");
  if (parameters.has("evictionTtlSeconds"))
    ttl_ms_ = static_cast<std::uint64_t>(parameters.number("evictionTtlSeconds") * 1000);
}

bool SessionChoice::mark(const PickContext& context, std::span<float> marks) const {
  std::fill(marks.begin(), marks.end(), 0.0F);
  if (by_token_) {
    if (const std::string_view* carried = context.request.attribute(header_); carried != nullptr) {
      char token[kTokenBytesMax];
      const std::size_t bytes = decode_base64(*carried, token);
      bool found = false;
      for (std::size_t at = 0; bytes != 0 && at < marks.size(); ++at) {
        if (!names({token, bytes}, *context.candidates.endpoints()[at])) continue;
        marks[at] = 1.0F;
        found = true;
      }
      if (found) return true;
    }
  }
  if (!by_id_) return false;
  const auto session = context.candidates.column(Column::kSession);
  std::copy(session.begin(), session.end(), marks.begin());
  return std::find(marks.begin(), marks.end(), 1.0F) != marks.end();
}

}  // namespace pickd::pick
