// Control messages as bytes: verified on a private copy with limits, built with a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "abi/limits.hpp"
#include "pickd_generated.h"

namespace pickd::control {

// The message in `bytes`, or nullptr when it is none or breaks a limit. Points into `bytes`.
inline const fb::Message* verify_message(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  if (bytes.size() < 12 || !fb::MessageBufferHasIdentifier(data)) return nullptr;
  flatbuffers::Verifier verifier(data, bytes.size(), abi::kControlDepthMax, abi::kControlTablesMax);
  return fb::VerifyMessageBuffer(verifier) ? fb::GetMessage(data) : nullptr;
}

// A message under construction: build the body with builder(), then finish() it.
class MessageBuilder {
 public:
  flatbuffers::FlatBufferBuilder& builder() { return builder_; }

  template <typename Table>
  std::span<const std::uint8_t> finish(std::uint32_t number, flatbuffers::Offset<Table> body) {
    const auto type = fb::BodyTraits<Table>::enum_value;
    fb::FinishMessageBuffer(builder_, fb::CreateMessage(builder_, number, type, body.Union()));
    return {builder_.GetBufferPointer(), builder_.GetSize()};
  }

 private:
  flatbuffers::FlatBufferBuilder builder_{1024};
};

}  // namespace pickd::control
