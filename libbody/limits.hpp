// Every limit on what a body or an answer may ask of this library, in one place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/limits.hpp"

namespace pickd::body {

inline constexpr std::size_t kBodyBytesDefault = std::size_t{32} << 20;
inline constexpr std::size_t kBodyBytesMax = std::size_t{1} << 30;
inline constexpr std::size_t kBodyKeepBytesDefault = std::size_t{4} << 20;
inline constexpr std::size_t kAnswerBytesDefault = std::size_t{8} << 20;
inline constexpr std::size_t kAnswerKeepBytesDefault = std::size_t{256} << 10;
inline constexpr std::size_t kAnswerTextBytesDefault = std::size_t{1} << 20;

// Nesting of JSON. Written and hashed by recursion, so it bounds the stack.
inline constexpr std::size_t kDepthMax = 128;

inline constexpr std::size_t kHeadersMax = 256;
inline constexpr std::size_t kPathBytesMax = 4096;

// Prompts of one body that can be asked for; of more only the tokens are counted.
inline constexpr std::size_t kPromptsMax = 4096;

// An image stands for hundreds of tokens, in a few bytes of JSON: beyond this many a medium takes
// its digest's bytes only.
inline constexpr std::uint32_t kMediaExpandedMax = 256;
inline constexpr std::uint32_t kMediaTokensDefault = 576;
inline constexpr std::uint32_t kMediaTokensMax = 65536;
inline constexpr std::size_t kDigestBytes = 16;

// Below this many tokens a bound on the answer is as good as a forecast of it.
inline constexpr std::uint32_t kTellingOutputTokensMax = 64;

// Texts and tool calls of one answer that are put together for the next turn.
inline constexpr std::size_t kAnswerPiecesMax = 64;

// Text of at least this size is not copied into the stream but pointed to.
inline constexpr std::size_t kPointedBytesMin = 96;

}  // namespace pickd::body
