// Endpoint changes: pickd_endpoint_*(): one control request each.
#include <errno.h>
#include <string.h>

#include "libclient/client.hpp"
#include "libclient/control_exchange.hpp"
#include "libclient/sized_struct.hpp"

namespace abi = pickd::abi;
namespace fb = pickd::fb;
using pickd::client::ControlExchange;
using pickd::client::Deadline;
using pickd::client::LastError;
using pickd::client::Session;

namespace {

using StringOffset = flatbuffers::Offset<flatbuffers::String>;
using StringsOffset = flatbuffers::Offset<flatbuffers::Vector<StringOffset>>;

// Model and adapter names, and the keys and values of labels.
constexpr std::size_t kNameBytesMax = 255;
constexpr std::size_t kPoolBytesMax = 127;
constexpr std::size_t kMessageBytes =
    abi::kControlMessageBytesMax - ControlExchange::kOverheadBytes;
constexpr std::size_t kBytesBesidesString =
    64;  // length, terminator, alignment, its place in a vector or table

// Checks an endpoint's strings and adds up what they take in a message.
class EndpointCheck {
 public:
  explicit EndpointCheck(LastError& error) : error_(error) {}

  bool text(const char* value, std::size_t bytes_min, std::size_t bytes_max, const char* what) {
    if (value == nullptr || (bytes_min != 0 && *value == '\0')) {
      return refuse(error_.set(-EINVAL, "%s is missing", what));
    }
    const std::size_t size = ::strnlen(value, bytes_max + 1);
    if (size > bytes_max)
      return refuse(error_.set(-E2BIG, "%s has more than %zu bytes", what, bytes_max));
    bytes_ += size + kBytesBesidesString;
    return true;
  }

  bool list(const char* const* values, std::size_t count, std::size_t count_max, const char* what) {
    if (!counted(values, count, count_max, what)) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (!text(values[i], 1, kNameBytesMax, what)) return false;
    }
    return true;
  }

  bool labels(const pickd_label* values, std::size_t count) {
    if (!counted(values, count, abi::kEndpointLabelsMax, "labels")) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (!text(values[i].key, 1, kNameBytesMax, "the key of a label") ||
          !text(values[i].value, 0, kNameBytesMax, "the value of a label")) {
        return false;
      }
    }
    return true;
  }

  int code() {
    if (code_ == 0 && bytes_ > kMessageBytes) {
      code_ = error_.set(-E2BIG, "the endpoint's strings take more than %zu bytes together",
                         kMessageBytes);
    }
    return code_;
  }

 private:
  bool counted(const void* values, std::size_t count, std::size_t count_max, const char* what) {
    if (count > count_max)
      return refuse(error_.set(-E2BIG, "%s: %zu, at most %zu", what, count, count_max));
    return count == 0 || values != nullptr || refuse(error_.set(-EINVAL, "%s is NULL", what));
  }
  bool refuse(int code) {
    code_ = code;
    return false;
  }

  LastError& error_;
  std::size_t bytes_ = 0;
  int code_ = 0;
};

int check_endpoint(const pickd_endpoint& endpoint, LastError& error) {
  const int role = pickd::client::enum_number(endpoint.role);
  if (role < PICKD_ROLE_BOTH || role > PICKD_ROLE_ENCODE) {
    return error.set(-EINVAL, "role %d: 0 to %d", role, static_cast<int>(PICKD_ROLE_ENCODE));
  }
  EndpointCheck check(error);
  static_cast<void>(
      check.text(endpoint.name, 1, abi::kEndpointNameBytesMax, "the endpoint's name") &&
      check.text(endpoint.address, 1, abi::kEndpointAddressBytesMax, "the endpoint's address") &&
      check.text(endpoint.pool == nullptr ? "" : endpoint.pool, 0, kPoolBytesMax, "pool") &&
      check.list(endpoint.models, endpoint.model_count, abi::kEndpointModelsMax, "models") &&
      check.labels(endpoint.labels, endpoint.label_count) &&
      check.list(endpoint.adapters_active, endpoint.adapter_active_count, abi::kEndpointAdaptersMax,
                 "adapters_active") &&
      check.list(endpoint.adapters_waiting, endpoint.adapter_waiting_count,
                 abi::kEndpointAdaptersMax, "adapters_waiting"));
  return check.code();
}

StringsOffset put_list(flatbuffers::FlatBufferBuilder& builder, const char* const* values,
                       std::size_t count) {
  StringOffset offsets[abi::kEndpointModelsMax];
  for (std::size_t i = 0; i < count; ++i) offsets[i] = builder.CreateString(values[i]);
  return builder.CreateVector(offsets, count);
}
static_assert(abi::kEndpointAdaptersMax <= abi::kEndpointModelsMax);

flatbuffers::Offset<fb::Endpoint> put_endpoint(flatbuffers::FlatBufferBuilder& builder,
                                               const pickd_endpoint& endpoint,
                                               std::uint32_t block_tokens) {
  const StringOffset name = builder.CreateString(endpoint.name);
  const StringOffset address = builder.CreateString(endpoint.address);
  const StringOffset pool =
      builder.CreateString(endpoint.pool == nullptr ? "default" : endpoint.pool);
  const StringsOffset models = put_list(builder, endpoint.models, endpoint.model_count);

  flatbuffers::Offset<fb::Label> label_offsets[abi::kEndpointLabelsMax];
  for (std::size_t i = 0; i < endpoint.label_count; ++i) {
    const StringOffset key = builder.CreateString(endpoint.labels[i].key);
    const StringOffset value = builder.CreateString(endpoint.labels[i].value);
    label_offsets[i] = fb::CreateLabel(builder, key, value);
  }
  const auto labels = builder.CreateVector(label_offsets, endpoint.label_count);
  const auto load =
      fb::CreateLoad(builder, endpoint.waiting, endpoint.running, endpoint.kv_use_ppm);
  const StringsOffset active =
      put_list(builder, endpoint.adapters_active, endpoint.adapter_active_count);
  const StringsOffset waiting =
      put_list(builder, endpoint.adapters_waiting, endpoint.adapter_waiting_count);
  const auto adapters = fb::CreateAdapters(builder, endpoint.adapters_max, active, waiting);

  // A capacity of less than a block is still a limit, and 0 would mean "as configured".
  std::uint64_t capacity_blocks = endpoint.capacity_tokens / block_tokens;
  if (endpoint.capacity_tokens != 0 && capacity_blocks == 0) capacity_blocks = 1;
  return fb::CreateEndpoint(builder, name, address, pool, static_cast<std::uint8_t>(endpoint.role),
                            models, labels, capacity_blocks, load, adapters);
}

// Sends one change and returns the daemon's word. `build(builder, block_tokens)` makes its
// endpoint.
template <typename Build>
int change(pickd_client* client, fb::EndpointOp op, const Build& build) {
  const auto exchange = pickd::client::make_exchange();
  if (exchange == nullptr) return client->error.set(-ENOMEM, "out of memory");
  const Deadline deadline = client->connect_deadline();
  Session* session = nullptr;
  if (const int code = client->acquire_session(deadline, &session); code != 0) return code;
  flatbuffers::FlatBufferBuilder& builder = exchange->builder();
  const flatbuffers::Offset<fb::Endpoint> endpoint =
      build(builder, session->state().block_tokens());
  exchange->set_body(fb::CreateChangeEndpoint(builder, op, endpoint));
  int code = session->connection().request(*exchange, deadline, client->error);
  session->drop();
  if (code == 0 && exchange->reply_as<fb::Outcome>() == nullptr) {
    code = client->error.set(
        -EPROTO, "the daemon answered an endpoint change with something else than an outcome");
  }
  return code;
}

int put(pickd_client* client, fb::EndpointOp op, const pickd_endpoint* endpoint) {
  if (client == nullptr || endpoint == nullptr) return -EINVAL;
  if (client->fork.in_child()) return -EOWNERDEAD;
  pickd_endpoint copy{};
  if (const int code = pickd::client::read_sized(endpoint, sizeof(pickd_endpoint), &copy);
      code != 0) {
    return client->error.set(
        code, code == -EINVAL ? "struct_size of the endpoint is too small: use PICKD_ENDPOINT_INIT"
                              : "the endpoint sets an option that this library does not know");
  }
  if (const int code = check_endpoint(copy, client->error); code != 0) return code;
  return change(client, op,
                [&copy](flatbuffers::FlatBufferBuilder& builder, std::uint32_t block_tokens) {
                  return put_endpoint(builder, copy, block_tokens);
                });
}

int change_named(pickd_client* client, fb::EndpointOp op, const char* name) {
  if (client == nullptr) return -EINVAL;
  if (client->fork.in_child()) return -EOWNERDEAD;
  EndpointCheck check(client->error);
  static_cast<void>(check.text(name, 1, abi::kEndpointNameBytesMax, "the endpoint's name"));
  if (const int code = check.code(); code != 0) return code;
  return change(client, op, [name](flatbuffers::FlatBufferBuilder& builder, std::uint32_t) {
    const StringOffset text = builder.CreateString(name);
    return fb::CreateEndpoint(builder, text);
  });
}

}  // namespace

extern "C" {

int pickd_endpoint_add(pickd_client* client, const pickd_endpoint* endpoint) {
  return put(client, fb::EndpointOp::Add, endpoint);
}

int pickd_endpoint_update(pickd_client* client, const pickd_endpoint* endpoint) {
  return put(client, fb::EndpointOp::Update, endpoint);
}

int pickd_endpoint_remove(pickd_client* client, const char* name) {
  return change_named(client, fb::EndpointOp::Remove, name);
}

int pickd_endpoint_drain(pickd_client* client, const char* name, int on) {
  return change_named(client, on != 0 ? fb::EndpointOp::Drain : fb::EndpointOp::Undrain, name);
}

int pickd_endpoint_reset(pickd_client* client, const char* name) {
  return change_named(client, fb::EndpointOp::Reset, name);
}

}  // extern "C"
