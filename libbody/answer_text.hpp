// What an assistant said, as far as it is kept: reasoning, texts and tool calls in pieces, each put
// together from what comes of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "libbody/canonical.hpp"
#include "libbody/json.hpp"
#include "libbody/limits.hpp"
#include "libbody/memory.hpp"
#include "libbody/message_writer.hpp"

namespace pickd::body {

enum class PieceKind : std::uint8_t { kReasoning, kText, kCall };

class AnswerText {
 public:
  void begin(bool kept, std::size_t bytes_max);
  bool is_kept() const { return kept_; }

  // `key` tells pieces of one kind apart: an index of the API's.
  void add(PieceKind kind, std::uint64_t key, std::string_view text);
  void name(std::uint64_t key, std::string_view name);  // of a call
  // The text from its beginning, as engines tell it that do not tell what is new.
  void replace(std::uint64_t key, std::string_view text);
  // The arguments of calls were JSON in pieces: makes them what a body's object becomes.
  void canonical_calls(JsonParser& parser);
  void call_json(std::uint64_t key, std::string_view name, const Json& arguments);

  bool is_empty() const { return count_ == 0; }
  bool is_too_long() const { return too_long_; }
  bool out_of_memory() const { return out_of_memory_; }
  // Reasoning, then texts, then calls, as chat messages have them; else in the order they came in.
  void write(MessageWriter& writer, bool by_kind) const;
  // The texts alone.
  void write_text(PromptStream& stream) const;
  void shrink(std::size_t keep_bytes);

 private:
  struct Piece {
    PieceKind kind = PieceKind::kText;
    bool is_canonical = false;
    std::uint64_t key = 0;
    List<char> name;
    List<char> bytes;
  };
  Piece* find(PieceKind kind, std::uint64_t key);
  void append(List<char>& to, std::string_view text);
  void write_piece(MessageWriter& writer, const Piece& piece) const;
  bool flatten(const Json& arguments, List<char>& into);

  bool kept_ = false;
  bool too_long_ = false;
  bool out_of_memory_ = false;
  std::size_t bytes_max_ = 0;
  std::size_t bytes_ = 0;
  std::size_t count_ = 0;
  std::array<Piece, kAnswerPiecesMax> pieces_;
};

}  // namespace pickd::body
