#include "daemon/net/dns_answer.hpp"

#include <ares.h>
#include <ares_dns.h>
#include <arpa/inet.h>
#include <arpa/nameser.h>

#include <algorithm>
#include <optional>

namespace pickd::net {

namespace {

base::Error malformed(const char* what) {
  return {-EBADMSG, std::string("the DNS answer is malformed: ") + what};
}

int wire_type(DnsType type) {
  switch (type) {
    case DnsType::kA: return ns_t_a;
    case DnsType::kAaaa: return ns_t_aaaa;
    case DnsType::kSrv: return ns_t_srv;
  }
  return ns_t_a;
}

constexpr std::size_t kNameBytesMax = 255;  // on the wire, RFC 1035, 3.1; c-ares takes longer ones

// What a name takes on the wire, of its text: \ddd and \x are a byte, and a length stands before
// the first label and after the last.
std::size_t wire_bytes(const std::string& text) {
  std::size_t bytes = 2;
  for (std::size_t at = 0; at < text.size(); ++at, ++bytes) {
    if (text[at] != '\\' || at + 1 == text.size()) continue;
    const bool number = text[at + 1] >= '0' && text[at + 1] <= '9';
    at += number ? 3 : 1;
  }
  return bytes;
}

// Walks a message; each step says whether it stayed within the bytes.
class Walk {
 public:
  explicit Walk(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::size_t left() const { return bytes_.size() - at_; }
  const std::uint8_t* here() const { return bytes_.data() + at_; }
  bool skip(std::size_t count) {
    if (count > left()) return false;
    at_ += count;
    return true;
  }

  // The name that begins here; follows pointers, which c-ares bounds.
  std::optional<std::string> name() {
    if (left() == 0) return std::nullopt;
    char* text = nullptr;
    long taken = 0;
    if (ares_expand_name(here(), bytes_.data(), static_cast<int>(bytes_.size()), &text, &taken) !=
        ARES_SUCCESS) {
      return std::nullopt;
    }
    std::string out(text);
    ares_free_string(text);
    if (taken < 0 || !skip(static_cast<std::size_t>(taken)) || wire_bytes(out) > kNameBytesMax)
      return std::nullopt;
    return out;
  }

  std::uint16_t u16(std::size_t offset = 0) const {
    return static_cast<std::uint16_t>(here()[offset] << 8 | here()[offset + 1]);
  }
  std::uint32_t u32(std::size_t offset) const {
    return static_cast<std::uint32_t>(u16(offset)) << 16 | u16(offset + 2);
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

std::optional<DnsRecord> read_record(Walk data, std::size_t bytes, DnsType type) {
  DnsRecord record;
  char text[INET6_ADDRSTRLEN];
  switch (type) {
    case DnsType::kA:
    case DnsType::kAaaa: {
      const bool v4 = type == DnsType::kA;
      if (bytes != (v4 ? 4U : 16U)) return std::nullopt;
      ::inet_ntop(v4 ? AF_INET : AF_INET6, data.here(), text, sizeof text);
      record.address = text;
      return record;
    }
    case DnsType::kSrv: {
      if (bytes < 7) return std::nullopt;
      record.priority = data.u16(0);
      record.weight = data.u16(2);
      record.port = data.u16(4);
      data.skip(6);
      const auto target = data.name();
      if (!target) return std::nullopt;
      record.target = *target;
      return record;
    }
  }
  return std::nullopt;
}

// Whether the authority section, which begins here, says that there is no such record.
bool denies(Walk walk, std::uint16_t records) {
  for (std::uint16_t count = 0; count < records; ++count) {
    if (!walk.name() || walk.left() < NS_RRFIXEDSZ) return false;
    if (walk.u16(0) == ns_t_soa) return true;
    const std::size_t bytes = walk.u16(8);
    walk.skip(NS_RRFIXEDSZ);
    if (!walk.skip(bytes)) return false;
  }
  return false;
}

}  // namespace

base::Result<DnsAnswer> read_dns_answer(std::span<const std::uint8_t> message, DnsType type) {
  if (message.size() < NS_HFIXEDSZ) return malformed("it has no whole header");
  Walk walk(message);
  const std::uint16_t questions = walk.u16(4);
  const std::uint16_t answers = walk.u16(6);
  const std::uint16_t authorities = walk.u16(8);
  walk.skip(NS_HFIXEDSZ);
  for (std::uint16_t count = 0; count < questions; ++count) {
    if (!walk.name() || !walk.skip(NS_QFIXEDSZ)) return malformed("its question is cut");
  }
  DnsAnswer answer;
  answer.ttl_s = UINT32_MAX;
  bool aliased = false;
  for (std::uint16_t count = 0; count < answers; ++count) {
    if (!walk.name() || walk.left() < NS_RRFIXEDSZ) return malformed("a record is cut");
    const int of_type = walk.u16(0);
    const int of_class = walk.u16(2);
    const std::uint32_t ttl_s = walk.u32(4);
    const std::size_t bytes = walk.u16(8);
    walk.skip(NS_RRFIXEDSZ);
    if (walk.left() < bytes) return malformed("a record's data is cut");
    const bool wanted = of_class == ns_c_in && of_type == wire_type(type);
    if (wanted) {
      auto record = read_record(walk, bytes, type);
      if (!record) return malformed("a record's data does not fit its type");
      if (answer.records.size() == kDnsRecordsMax) return malformed("it has too many records");
      answer.records.push_back(std::move(*record));
    }
    // The names that lead to the records may change sooner than these.
    aliased = aliased || of_type == ns_t_cname;
    if (wanted || of_type == ns_t_cname) answer.ttl_s = std::min(answer.ttl_s, ttl_s);
    walk.skip(bytes);
  }
  // Names that lead in a circle, or to where the server did not look: not the word that there is
  // none, which comes with whose word it is.
  if (answer.records.empty() && aliased && !denies(walk, authorities))
    return base::Error{-ENOENT, "the name leads to other names, and none of them to a record"};
  answer.status = answer.records.empty() ? DnsAnswer::Status::kNone : DnsAnswer::Status::kFound;
  // RFC 2181: a TTL with the highest bit set is no TTL.
  if (answer.records.empty() || answer.ttl_s > INT32_MAX) answer.ttl_s = 0;
  return answer;
}

}  // namespace pickd::net
