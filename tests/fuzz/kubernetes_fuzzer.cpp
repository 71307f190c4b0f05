// Arbitrary lines as events of a Kubernetes watch: each object read as everything that it could be,
// and all of them joined to one set.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "abi/limits.hpp"
#include "daemon/discovery/kubernetes/objects.hpp"

namespace {

using namespace pickd::discovery::kubernetes;  // NOLINT: all of it is what is tried
using nlohmann::json;
using pickd::endpoints::EndpointSpec;

constexpr std::uint32_t kPortMax = 65535;
constexpr std::size_t kPrintedMax = 300;

void check(bool holds) {
  if (!holds) std::abort();
}

void check_endpoint(const EndpointSpec& spec) {
  check(!spec.name.empty() && !spec.address.empty());
  check(spec.labels.size() <= pickd::abi::kEndpointLabelsMax);
  const std::size_t colon = spec.address.rfind(':');
  check(colon != std::string::npos && colon + 1 < spec.address.size());
  const std::string port = spec.address.substr(colon + 1);
  check(port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos);
  check(std::stoul(port) != 0 && std::stoul(port) <= kPortMax);
}

void check_texts(std::string_view text) {
  const std::string query = encoded(text);
  const bool plain = std::all_of(query.begin(), query.end(), [](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= 'a' && letter <= 'z') ||
           std::string_view("-._~%").find(letter) != std::string_view::npos;
  });
  check(plain);
  const std::string shown = printable(text);
  check(shown.size() <= kPrintedMax);
  check(std::none_of(shown.begin(), shown.end(), [](char letter) {
    return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F;
  }));
}

void read_pods_side(const json& object) {
  const InferencePool pool = read_inference_pool(object);
  for (const std::uint32_t port : pool.ports) check(port != 0 && port <= kPortMax);
  const Pod pod = read_pod(object);
  check(pod.labels.size() <= pickd::abi::kEndpointLabelsMax);
  for (const auto& ports : {pool.ports, std::vector<std::uint32_t>{8000, 8001}}) {
    for (const EndpointSpec& spec : endpoints_of(pod, ports)) check_endpoint(spec);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  check_texts(rest);
  std::deque<Slice> slices;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string line(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const json event = json::parse(line, nullptr, false);
    const json* found = member(event, "object");
    const json& object = found == nullptr ? event : *found;
    check_texts(name_of(object));
    (void)number_at(object, "code");
    slices.push_back(read_slice(object, ""));
    slices.push_back(read_slice(object, "http"));
    read_pods_side(object);
  }
  std::vector<const Slice*> all;
  for (const Slice& slice : slices) {
    all.push_back(&slice);
    for (const EndpointSpec& spec : slice.endpoints) check_endpoint(spec);
  }
  const auto joined = join_slices(all);
  const auto by_name = [](const EndpointSpec& a, const EndpointSpec& b) { return a.name < b.name; };
  check(std::is_sorted(joined.begin(), joined.end(), by_name));
  check(std::adjacent_find(joined.begin(), joined.end(), [](const auto& a, const auto& b) {
          return a.name == b.name;
        }) == joined.end());
  return 0;
}
