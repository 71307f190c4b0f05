// From results to completion records. Every byte of a record is written: no padding leaks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "abi/channel_layout.hpp"
#include "daemon/pick/result.hpp"

namespace pickd::workers {

inline constexpr std::size_t kAnswerBytesMax =
    sizeof(abi::PickedRecord) +
    abi::kResultEndpointsMax *
        (sizeof(abi::PickedEndpoint) + abi::kEndpointNameBytesMax + abi::kEndpointAddressBytesMax);

// One that lists the winner alone.
inline constexpr std::size_t kAnswerBytesMin =
    sizeof(abi::PickedRecord) + sizeof(abi::PickedEndpoint) + abi::kEndpointNameBytesMax +
    abi::kEndpointAddressBytesMax;

// Each writes into `buffer` and returns the record's bytes. encode_picked() lists as many endpoints
// as there is room for, the winner always: kAnswerBytesMin to kAnswerBytesMax bytes.
std::span<const std::byte> encode_picked(std::uint64_t sequence, const pick::PickResult& result,
                                         bool cut, std::uint32_t prompt_tokens,
                                         std::span<std::byte> buffer);
std::span<const std::byte> encode_refused(std::uint64_t sequence, int status,
                                          std::span<std::byte> buffer);
std::span<const std::byte> encode_reported(std::uint64_t sequence, int status,
                                           std::span<std::byte> buffer);

}  // namespace pickd::workers
