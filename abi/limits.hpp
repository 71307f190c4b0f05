// Every limit of the shared-memory contract, in one place.
//
// A limit here bounds what one peer may ask of another; code that reads shared memory or the
// control socket checks against these names and nothing else. Changing one changes the contract:
// LAYOUT.md says which of them are parameters of a header (readers take them from there) and which
// are fixed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pickd::abi {

inline constexpr std::size_t kCacheLineBytes = 64;
// adjacent lines travel together: one unit of a ring
inline constexpr std::size_t kLinePairBytes = 128;
inline constexpr std::size_t kPageBytes = 4096;

// Endpoints. Ids are 12 bits wide and 0 is reserved (it marks a hot block), so 4,095 are usable.
inline constexpr std::uint32_t kEndpointIdsMax = 4096;
inline constexpr std::size_t kEndpointNameBytesMax = 127;
inline constexpr std::size_t kEndpointAddressBytesMax = 127;
inline constexpr std::size_t kEndpointAdaptersMax = 16;
inline constexpr std::size_t kResultEndpointsMax = 8;
inline constexpr std::size_t kEndpointModelsMax = 64;
inline constexpr std::size_t kEndpointLabelsMax = 64;
inline constexpr std::size_t kMetricsUrlBytesMax = 255;
inline constexpr std::size_t kEngineBytesMax = 63;
inline constexpr std::size_t kMorePortsMax =
    255;                                         // of the ranks behind one endpoint, beside its own
inline constexpr std::uint32_t kRankMax = 1023;  // of data-parallel ranks, which count from 0
// endpoints that share one group key of a hot block
inline constexpr std::size_t kEndpointGroupSize = 8;

// Prefix keys.
inline constexpr std::uint32_t kBlockTokensMin = 8;
inline constexpr std::uint32_t kBlockTokensMax = 1024;
// a block of text is this many bytes for each token
inline constexpr std::uint32_t kBytesPerToken = 4;
inline constexpr std::uint32_t kKeysDefault = 2048;
inline constexpr std::uint32_t kKeysMin = 16;
inline constexpr std::uint32_t kKeysMax = 16384;
inline constexpr std::size_t kKeyAlgorithmsMax = 8;
inline constexpr std::size_t kHashSecretBytes = 192;
inline constexpr std::size_t kPromptExtrasMax = 4096;

// Strings of a request. All are bytes: pickd never asks for an encoding.
inline constexpr std::size_t kModelBytesMax = 255;
inline constexpr std::size_t kAdapterBytesMax = 255;
inline constexpr std::size_t kSessionBytesMax = 255;
inline constexpr std::size_t kRequestIdBytesMax = 255;
inline constexpr std::size_t kFairnessIdBytesMax = 255;
inline constexpr std::size_t kAttributeBytesMax = 255;  // of a key, and of a value
inline constexpr std::size_t kAttributesMax = 32;
inline constexpr std::size_t kSubsetMax = 512;
inline constexpr std::size_t kFieldBytesMax = 24 * 1024;  // all strings of one record together

// Channels.
inline constexpr std::size_t kRingUnitBytes = kLinePairBytes;
inline constexpr std::uint32_t kSubmissionRingBytesDefault = 128 * 1024;
inline constexpr std::uint32_t kCompletionRingBytesDefault = 32 * 1024;
inline constexpr std::uint32_t kChannelsPerClientMax = 1024;
inline constexpr std::uint32_t kQueueDepthMax = 4096;

// Workers and counters.
inline constexpr std::uint32_t kWorkersMax = 32;
inline constexpr std::uint32_t kCountersMax = 128;
// the workers, control, maintenance, two spare
inline constexpr std::uint32_t kThreadsCountedMax = kWorkersMax + 4;

// Control socket.
inline constexpr std::size_t kControlMessageBytesMax = 64 * 1024;
inline constexpr std::size_t kControlDescriptorsMax = 4;
inline constexpr std::uint32_t kControlDepthMax = 16;
inline constexpr std::uint32_t kControlTablesMax = 16384;
inline constexpr std::uint32_t kEndpointsPerPage = 64;

}  // namespace pickd::abi
