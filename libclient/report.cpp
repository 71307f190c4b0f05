// Reports on a ticket: checking, the record, and pickd_report().
#include <errno.h>
#include <string.h>

#include "libclient/client.hpp"
#include "libclient/report_request.hpp"
#include "libclient/sized_struct.hpp"

namespace abi = pickd::abi;
using pickd::client::Channel;
using pickd::client::CompletionRecord;
using pickd::client::Deadline;
using pickd::client::ReportRequest;

namespace pickd::client {

int ReportRequest::read(const pickd_report_info* report, LastError& error) {
  if (const int code = read_sized(report, sizeof(pickd_report_info), &report_); code != 0) {
    return error.set(code, code == -EINVAL
                               ? "struct_size of the report is too small: use PICKD_REPORT_INIT"
                               : "the report sets an option that this library does not know");
  }
  const int kind = enum_number(report_.kind);
  if (kind < PICKD_REPORT_FIRST_TOKEN || kind > PICKD_REPORT_CANCELLED) {
    return error.set(-EINVAL, "report kind %d: 1 to %d", kind,
                     static_cast<int>(PICKD_REPORT_CANCELLED));
  }
  const bool moves = report_.kind == PICKD_REPORT_FALLBACK;
  if (moves != (report_.endpoint.size != 0) || (moves && report_.endpoint.data == nullptr)) {
    return error.set(-EINVAL, "a report of kind FALLBACK names an endpoint, others do not");
  }
  if (report_.endpoint.size > abi::kEndpointNameBytesMax) {
    return error.set(-E2BIG, "the endpoint of a report has at most %zu bytes",
                     abi::kEndpointNameBytesMax);
  }
  return 0;
}

void ReportRequest::write(std::uint64_t sequence, bool answer, std::byte* to) const {
  abi::ReportRecord record{};
  record.head.bytes = static_cast<std::uint32_t>(bytes());
  record.head.type = abi::RecordType::kReport;
  record.head.flags = answer ? abi::kReportAnswer : std::uint8_t{0};
  record.head.sequence = sequence;
  record.ticket_client = report_.ticket.client;
  record.ticket_sequence = report_.ticket.sequence;
  record.kind = static_cast<abi::ReportKind>(report_.kind);
  record.fallback_name_bytes = static_cast<std::uint8_t>(report_.endpoint.size);
  record.prompt_tokens = report_.prompt_tokens;
  record.cached_tokens = report_.cached_tokens;
  record.output_tokens = report_.output_tokens;
  ::memcpy(to, &record, sizeof record);
  if (report_.endpoint.size != 0)
    ::memcpy(to + sizeof record, report_.endpoint.data, report_.endpoint.size);
}

}  // namespace pickd::client

namespace {

// Hands the report over; nobody will tell what became of it.
int hand_over(pickd_client& client, Channel& channel, const ReportRequest& report) {
  std::byte* to = channel.submissions().reserve(report.bytes(), Channel::kCancelRoom);
  if (to == nullptr) return channel.broken() ? -ENOTCONN : -EAGAIN;
  report.write(client.draw_sequence(), false, to);
  channel.submissions().publish();
  channel.wake_daemon();
  return 0;
}

int report_and_wait(pickd_client& client, Channel& channel, const ReportRequest& report,
                    const Deadline& deadline) {
  std::byte* to = channel.wait_for_room(report.bytes(), Channel::kCancelRoom, deadline);
  if (to == nullptr) return channel.broken() ? -ENOTCONN : -ETIMEDOUT;
  const std::uint64_t sequence = client.draw_sequence();
  report.write(sequence, true, to);
  channel.submissions().publish();
  channel.wake_daemon();

  CompletionRecord record;
  int code = channel.wait_for(sequence, deadline, client.wait_policy, record);
  if (code == 0) {
    abi::ReportedRecord reported;
    if (record.head.type == abi::RecordType::kReport && record.head.bytes >= sizeof reported) {
      ::memcpy(&reported, record.data, sizeof reported);
      code = reported.status <= 0 && reported.status >= -4095 ? reported.status : -EPROTO;
    } else {
      code = -EPROTO;
    }
    channel.completions().take_quietly();
  }
  if (code == -EPROTO) channel.mark_broken();
  return code;
}

int report_to_daemon(pickd_client& client, const ReportRequest& report, std::int64_t timeout_us) {
  const bool wait = timeout_us != 0;
  const Deadline deadline = Deadline::after_us(timeout_us);
  int code = -ENOTCONN;
  for (int round = 0; round < 2 && code == -ENOTCONN; ++round) {
    Channel* channel = nullptr;
    code = client.acquire(deadline, &channel,
                          wait ? pickd_client::WhenBusy::kWait : pickd_client::WhenBusy::kFail);
    if (code != 0) return code;
    code = wait ? report_and_wait(client, *channel, report, deadline)
                : hand_over(client, *channel, report);
    client.release(channel);
  }
  return code;
}

int explain_report(pickd_client& client, const ReportRequest& report, int code) {
  const auto* name = static_cast<const char*>(report.endpoint().data);
  const auto name_bytes = static_cast<int>(report.endpoint().size);
  switch (code) {
    case -ESTALE:
      return client.error.set(code,
                              "the daemon knows no such ticket (any more), or its request has "
                              "ended already");
    case -ENOENT:
      return client.error.set(code,
                              "no endpoint is called %.*s, to which the request is said to "
                              "have moved",
                              name_bytes, name);
    case -EPERM: return client.error.set(code, "the ticket is another user's");
    default: return code;
  }
}

int report_on(pickd_client& client, const pickd_report_info* report, std::int64_t timeout_us) {
  if (timeout_us < 0) return client.error.set(-EINVAL, "timeout_us is negative");
  ReportRequest checked;
  if (const int code = checked.read(report, client.error); code != 0) return code;

  // A ticket that was picked here is counted here; the daemon is told too if it is there.
  const bool own =
      checked.ticket().client == client.id &&
      client.degraded.report(checked.ticket().sequence, checked.kind(), checked.endpoint());
  const int code = report_to_daemon(client, checked, timeout_us);
  const bool away = pickd::client::is_out_of_reach(code);
  if (away && (own || (timeout_us == 0 && client.keep_end(checked)))) return 0;
  return explain_report(client, checked, code);
}

}  // namespace

extern "C" int pickd_report(pickd_client* client, const pickd_report_info* report,
                            int64_t timeout_us) {
  if (client == nullptr || report == nullptr) return -EINVAL;
  if (client->fork.in_child()) return -EOWNERDEAD;
  pickd::client::Call call(client->error);
  return call.end(report_on(*client, report, timeout_us));
}
