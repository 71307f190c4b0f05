// A report's arguments, checked, and the record made of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/channel_layout.hpp"
#include "libclient/last_error.hpp"
#include "pickd/pickd.h"

namespace pickd::client {

class ReportRequest {
 public:
  // Reads and checks; keeps a pointer to the endpoint's name in the caller's memory. -EINVAL,
  // -E2BIG.
  int read(const pickd_report_info* report, LastError& error);
  std::uint64_t bytes() const { return sizeof(abi::ReportRecord) + report_.endpoint.size; }
  const pickd_ticket& ticket() const { return report_.ticket; }
  pickd_report_kind kind() const { return report_.kind; }
  bool ends_request() const {
    return kind() == PICKD_REPORT_DONE || kind() == PICKD_REPORT_FAILED ||
           kind() == PICKD_REPORT_CANCELLED;
  }
  const pickd_slice& endpoint() const { return report_.endpoint; }  // of a fallback
  // `answer`: the daemon is to answer with a ReportedRecord of this sequence.
  void write(std::uint64_t sequence, bool answer, std::byte* to) const;

 private:
  pickd_report_info report_{};
};

}  // namespace pickd::client
