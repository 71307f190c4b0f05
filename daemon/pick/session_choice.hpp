// Where the session of a request was served: by the endpoint token that the client carries, or by
// the session table. What the session-affinity scorer and filter share.
#pragma once

#include <string>

#include "daemon/pick/parameters.hpp"
#include "daemon/pick/session_ttl.hpp"

namespace pickd::pick {

class SessionChoice : public SessionTtl {
 public:
  explicit SessionChoice(Parameters& parameters);
  static std::vector<ParameterInfo> parameters();
  static ColumnSet columns_read() { return columns_of(Column::kSession); }

  // Writes 1 for the session's endpoint and 0 for the others. False: no candidate is.
  bool mark(const PickContext& context, std::span<float> marks) const;

  std::uint64_t session_ttl_ms() const override { return by_id_ ? ttl_ms_ : 0; }
  std::string session_header() const override { return by_id_ && !by_token_ ? header_ : ""; }
  bool reads_table() const { return by_id_; }

 private:
  bool by_token_;
  bool by_id_;
  std::string header_;
  std::uint64_t ttl_ms_;
};

// Base64, both alphabets, padding or none, into `out`; the bytes written, or nothing when it is no
// Base64 or does not fit.
std::size_t decode_base64(std::string_view text, std::span<char> out);

}  // namespace pickd::pick
