// Arbitrary bytes as a name server's answer. The first byte says which records were asked for.
#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "daemon/net/dns_answer.hpp"

namespace {

using pickd::net::DnsAnswer;
using pickd::net::DnsRecord;
using pickd::net::DnsType;

// Of a name as text: 255 bytes on the wire, of which each may be written as \ooo.
constexpr std::size_t kNameTextMax = 4 * 255;

void check(bool holds) {
  if (!holds) std::abort();
}

void check_record(const DnsRecord& record, DnsType type) {
  in6_addr bytes{};
  if (type == DnsType::kSrv) {
    check(record.address.empty() && record.target.size() <= kNameTextMax);
    return;
  }
  check(record.target.empty() && record.port == 0);
  check(::inet_pton(type == DnsType::kA ? AF_INET : AF_INET6, record.address.c_str(), &bytes) == 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const DnsType types[] = {DnsType::kA, DnsType::kAaaa, DnsType::kSrv};
  const DnsType type = types[data[0] % 3];
  const std::vector<std::uint8_t> message(data + 1, data + size);  // ends where its memory ends
  auto answer = pickd::net::read_dns_answer(message, type);
  if (!answer) {
    check(answer.error().code < 0 && !answer.error().text.empty());
    return 0;
  }
  check(answer->status != DnsAnswer::Status::kFailed && answer->error.empty());
  check((answer->status == DnsAnswer::Status::kFound) == !answer->records.empty());
  check(answer->records.size() <= pickd::net::kDnsRecordsMax);
  check(answer->ttl_s <= INT32_MAX);
  for (const DnsRecord& record : answer->records) check_record(record, type);
  // What is cut is an error or the same: never another answer.
  for (const std::size_t cut :
       {message.size() / 2, message.size() - std::min<std::size_t>(1, message.size())}) {
    auto less = pickd::net::read_dns_answer(std::span(message).subspan(0, cut), type);
    if (less) check(less->records == answer->records && less->ttl_s == answer->ttl_s);
  }
  return 0;
}
