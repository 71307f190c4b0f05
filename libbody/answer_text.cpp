#include "libbody/answer_text.hpp"

namespace pickd::body {

void AnswerText::begin(bool kept, std::size_t bytes_max) {
  kept_ = kept;
  too_long_ = out_of_memory_ = false;
  bytes_max_ = bytes_max;
  bytes_ = 0;
  count_ = 0;
}

AnswerText::Piece* AnswerText::find(PieceKind kind, std::uint64_t key) {
  if (!kept_) return nullptr;
  for (std::size_t i = count_; i != 0; --i) {
    Piece& piece = pieces_[i - 1];
    if (piece.kind == kind && piece.key == key) return &piece;
  }
  if (count_ == pieces_.size()) {
    too_long_ = true;
    return nullptr;
  }
  Piece& piece = pieces_[count_++];
  piece.kind = kind;
  piece.key = key;
  piece.is_canonical = false;
  piece.name.clear();
  piece.bytes.clear();
  return &piece;
}

void AnswerText::append(List<char>& to, std::string_view text) {
  if (too_long_ || text.size() > bytes_max_ - bytes_) {
    too_long_ = true;
    return;
  }
  bytes_ += text.size();
  if (!to.append(text.data(), text.size())) out_of_memory_ = true;
}

void AnswerText::add(PieceKind kind, std::uint64_t key, std::string_view text) {
  if (text.empty() && kind != PieceKind::kCall) return;
  if (Piece* piece = find(kind, key); piece != nullptr) append(piece->bytes, text);
}

void AnswerText::name(std::uint64_t key, std::string_view name) {
  if (Piece* piece = find(PieceKind::kCall, key); piece != nullptr) append(piece->name, name);
}

void AnswerText::replace(std::uint64_t key, std::string_view text) {
  if (text.empty()) return;
  Piece* piece = find(PieceKind::kText, key);
  if (piece == nullptr) return;
  const std::string_view before = view(piece->bytes);
  append(piece->bytes, text.starts_with(before) ? text.substr(before.size()) : text);
}

// Into the bytes that a body's object becomes, in one piece.
bool AnswerText::flatten(const Json& arguments, List<char>& into) {
  Canonical canonical;
  PromptStream stream;
  if (!stream.begin_prompt() || !canonical.write(arguments, stream)) return false;
  stream.end_prompt();
  const Prompt& prompt = stream.prompt(0);
  into.clear();
  for (std::size_t i = 0; i < prompt.segment_count; ++i) {
    const pickd_slice& part = stream.segments(prompt)[i];
    append(into, {static_cast<const char*>(part.data), part.size});
  }
  return !stream.out_of_memory();
}

void AnswerText::canonical_calls(JsonParser& parser) {
  for (std::size_t i = 0; i < count_; ++i) {
    Piece& piece = pieces_[i];
    if (piece.kind != PieceKind::kCall || piece.is_canonical) continue;
    JsonBuffer text;
    Json root;
    const std::string_view bytes = piece.bytes.empty() ? "{}" : view(piece.bytes);
    if (!text.append(bytes.data(), bytes.size())) {
      out_of_memory_ = true;
      return;
    }
    text.pad();
    // What is no JSON stays text; the next turn will not match, and nothing else is harmed.
    if (parser.parse(text.data(), text.size(), root) != ParseResult::kDone) continue;
    bytes_ -= piece.bytes.size();
    if (!flatten(root, piece.bytes)) out_of_memory_ = true;
    piece.is_canonical = true;
  }
}

void AnswerText::call_json(std::uint64_t key, std::string_view name, const Json& arguments) {
  this->name(key, name);
  Piece* piece = find(PieceKind::kCall, key);
  if (piece == nullptr) return;
  if (!flatten(arguments, piece->bytes)) out_of_memory_ = true;
  piece->is_canonical = true;
}

void AnswerText::write_piece(MessageWriter& writer, const Piece& piece) const {
  const std::string_view bytes = view(piece.bytes);
  switch (piece.kind) {
    case PieceKind::kReasoning: writer.reasoning(bytes); break;
    case PieceKind::kText: writer.text(bytes); break;
    case PieceKind::kCall:
      writer.call_begin(view(piece.name));
      if (piece.is_canonical) {
        writer.stream().raw(bytes.data(), bytes.size());
      } else {
        writer.stream().text(bytes);
      }
      break;
  }
}

void AnswerText::write(MessageWriter& writer, bool by_kind) const {
  if (!by_kind) {
    for (std::size_t i = 0; i < count_; ++i) write_piece(writer, pieces_[i]);
    return;
  }
  for (const PieceKind kind : {PieceKind::kReasoning, PieceKind::kText, PieceKind::kCall}) {
    for (std::size_t i = 0; i < count_; ++i) {
      if (pieces_[i].kind == kind) write_piece(writer, pieces_[i]);
    }
  }
}

void AnswerText::write_text(PromptStream& stream) const {
  for (std::size_t i = 0; i < count_; ++i) {
    if (pieces_[i].kind == PieceKind::kText) stream.text(view(pieces_[i].bytes));
  }
}

void AnswerText::shrink(std::size_t keep_bytes) {
  for (Piece& piece : pieces_) {
    piece.name.clear();
    piece.name.shrink(keep_bytes);
    piece.bytes.clear();
    piece.bytes.shrink(keep_bytes);
  }
}

}  // namespace pickd::body
