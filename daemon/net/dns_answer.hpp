// DnsAnswer: what a name server said, out of the bytes of its answer.
//
// The bytes are an untrusted peer's: every length is checked, what does not fit is an error. Knows
// nothing of sockets, retries or time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "daemon/base/result.hpp"

namespace pickd::net {

inline constexpr std::size_t kDnsRecordsMax = 4096;  // of one answer; more is refused

enum class DnsType : std::uint8_t { kA, kAaaa, kSrv };

struct DnsRecord {
  std::string address;     // of kA and kAaaa: as text, an IPv6 address without brackets
  std::string target;      // of kSrv: a name, without the last dot
  std::uint16_t port = 0;  // of kSrv, as the two below; a lower priority comes first
  std::uint16_t priority = 0;
  std::uint16_t weight = 0;

  bool operator==(const DnsRecord&) const = default;
};

struct DnsAnswer {
  enum class Status : std::uint8_t {
    kFound,   // `records` is what there is, at least one
    kNone,    // the server says that there is none: no such name, or none of this type
    kFailed,  // nobody said anything that counts: `error` has why, and what was known stays true
  };
  Status status = Status::kFailed;
  std::vector<DnsRecord> records;
  std::uint32_t ttl_s = 0;  // of kFound: the lowest of the chain of names and of the records
  std::string error;
};

// The records of `type` in the answer section of a DNS message. Only kFound and kNone, or an error.
base::Result<DnsAnswer> read_dns_answer(std::span<const std::uint8_t> message, DnsType type);

}  // namespace pickd::net
