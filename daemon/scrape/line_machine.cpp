#include "daemon/scrape/line_machine.hpp"

#include <algorithm>
#include <cstring>

#include "abi/key.hpp"
#include "daemon/scrape/byte_scan.hpp"

namespace pickd::scrape {

LineMachine::LineMachine(const MetricSpecs& specs, SeriesStore& store)
    : specs_(&specs), store_(&store), kept_(specs.labels().size()), known_(specs.labels().size()) {
  text_.reserve(1024);
}

void LineMachine::begin() {
  state_ = State::kLineStart;
  samples_ = 0;
  bad_lines_ = 0;
}

const char* LineMachine::feed(const char* at, const char* end, bool one_line) {
  while (true) {
    at = pass_over(at, end);
    if (at == end) return end;
    const char letter = *at++;
    if (letter == '\n') {
      end_line();
      if (one_line) return at;
      continue;
    }
    state_ = step(letter);
  }
}

// Takes in one go what the state at hand may have many of, up to `end`.
const char* LineMachine::pass_over(const char* at, const char* end) {
  const auto from = [at](const char* to) {
    return std::string_view(at, static_cast<std::size_t>(to - at));
  };
  switch (state_) {
    case State::kComment:
    case State::kTail:
    case State::kBad: {
      const void* newline = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
      return newline == nullptr ? end : static_cast<const char*>(newline);
    }
    case State::kName: {
      const char* to = skip_name(at, end);
      name_.add(from(to));
      return to;
    }
    case State::kLabelName: {
      const char* to = at;
      while (to != end && is_name_byte(*to) && *to != ':') ++to;
      label_.add(from(to));
      return to;
    }
    case State::kEscape:
    case State::kLabelValue: {
      if (wanted_ != MetricSpecs::kNone) {
        if (state_ == State::kEscape) return at;
        const char* to = skip_unescaped(at, end);
        add_to_value(from(to));
        return to;
      }
      bool escaped = state_ == State::kEscape;
      const char* to = skip_value(at, end, &escaped);
      state_ = escaped ? State::kEscape : State::kLabelValue;
      return to;
    }
    default: return at;
  }
}

LineMachine::State LineMachine::step(char letter) {
  switch (state_) {
    case State::kLineStart: return start_line(letter);
    case State::kName:
      if (const State next = after_name(); letter != '{') {
        return is_blank(letter) ? next : State::kBad;
      }
      return State::kLabelStart;
    case State::kAfterName:
      if (letter == '{') return State::kLabelStart;
      return before_value(letter);
    case State::kLabelStart:
      if (is_blank(letter)) return State::kLabelStart;
      if (letter == '}') return State::kBeforeValue;
      if (!is_name_byte(letter) || is_digit(letter) || letter == ':') return State::kBad;
      start_label();
      label_.add({&letter, 1});
      return State::kLabelName;
    case State::kLabelName: end_label_name(); [[fallthrough]];
    case State::kBeforeEquals:
      if (letter == '=') return State::kBeforeQuote;
      return is_blank(letter) ? State::kBeforeEquals : State::kBad;
    case State::kBeforeQuote:
      if (letter == '"') return State::kLabelValue;
      return is_blank(letter) ? State::kBeforeQuote : State::kBad;
    case State::kLabelValue:  // pass_over() left a quote or a backslash
      if (letter == '\\') return State::kEscape;
      end_label_value();
      return State::kAfterLabelValue;
    case State::kEscape:
      add_to_value(letter == 'n' ? "\n" : std::string_view(&letter, 1));
      return State::kLabelValue;
    case State::kAfterLabelValue: return after_label_value(letter);
    case State::kBeforeValue: return before_value(letter);
    case State::kValue:
      if (!is_blank(letter) && letter != '#') {
        value_.add({&letter, 1});
        return State::kValue;
      }
      if (const State next = end_value(); next == State::kBad || letter != '#') return next;
      return State::kTail;
    case State::kAfterValue:
      if (letter == '#') return State::kTail;
      if (is_blank(letter)) return State::kAfterValue;
      return is_digit(letter) || letter == '-' ? State::kStamp : State::kBad;
    case State::kStamp:
      if (is_blank(letter)) return State::kTail;
      return is_digit(letter) || letter == '.' || letter == 'e' || letter == '+' || letter == '-'
                 ? State::kStamp
                 : State::kBad;
    case State::kComment:
    case State::kTail:
    case State::kBad: return state_;
  }
  return State::kBad;
}

LineMachine::State LineMachine::start_line(char letter) {
  if (is_blank(letter)) return State::kLineStart;
  if (letter == '#') return State::kComment;
  name_.clear();
  value_.clear();
  has_value_ = false;
  wanted_ = MetricSpecs::kNone;
  if (!is_name_byte(letter) || is_digit(letter)) return State::kBad;
  name_.add({&letter, 1});
  return State::kName;
}

LineMachine::State LineMachine::after_name() {
  wanted_ = name_.too_long ? MetricSpecs::kNone : specs_->find_name(name_.view());
  if (wanted_ != MetricSpecs::kNone) {
    labels_hash_ = 0;
    group_hash_ = 0;
    text_.clear();
    std::fill(kept_.begin(), kept_.end(), Kept{});
  }
  return State::kAfterName;
}

LineMachine::State LineMachine::before_value(char letter) {
  if (is_blank(letter)) return state_;
  value_.add({&letter, 1});
  return State::kValue;
}

LineMachine::State LineMachine::after_label_value(char letter) {
  if (letter == ',') return State::kLabelStart;
  if (letter == '}') return State::kBeforeValue;
  return is_blank(letter) ? State::kAfterLabelValue : State::kBad;
}

void LineMachine::start_label() {
  label_.clear();
  hash_ = 0;
}

void LineMachine::end_label_name() {
  if (wanted_ == MetricSpecs::kNone) return;
  const std::string_view name = label_.view();
  hash_ = XXH3_64bits(name.data(), name.size());
  const std::vector<std::string>& labels = specs_->labels();
  const auto at =
      static_cast<std::size_t>(std::find(labels.begin(), labels.end(), name) - labels.begin());
  kept_at_ = at == labels.size() ? kNotKept : static_cast<std::uint16_t>(at);
  of_group_ = !is_part_of_rank(at);
  block_from_ = text_.size();
  if (kept_at_ != kNotKept) kept_[kept_at_] = {text_.size(), 0, true};
}

void LineMachine::add_to_value(std::string_view piece) {
  if (wanted_ == MetricSpecs::kNone) return;
  while (!piece.empty()) {
    const std::size_t room = kBlockBytes - (text_.size() - block_from_);
    text_.append(piece.substr(0, room));
    piece.remove_prefix(std::min(room, piece.size()));
    if (text_.size() - block_from_ == kBlockBytes) hash_block();
  }
}

void LineMachine::hash_block() {
  hash_ = XXH3_64bits_withSeed(text_.data() + block_from_, text_.size() - block_from_, hash_);
  if (kept_at_ != kNotKept && text_.size() > kTextBytesMax) {
    kept_[kept_at_].present = false;  // half a value is none
    text_.resize(kept_[kept_at_].from);
    kept_at_ = kNotKept;
  } else if (kept_at_ == kNotKept) {
    text_.resize(block_from_);
  }
  block_from_ = text_.size();
}

void LineMachine::end_label_value() {
  if (wanted_ == MetricSpecs::kNone) return;
  hash_block();
  if (kept_at_ != kNotKept) kept_[kept_at_].size = text_.size() - kept_[kept_at_].from;
  // Added up, in whatever order they came.
  labels_hash_ += hash_;
  if (of_group_) group_hash_ += hash_;
}

LineMachine::State LineMachine::end_value() {
  has_value_ = !value_.too_long && parse_number(value_.view(), &number_);
  return has_value_ ? State::kAfterValue : State::kBad;
}

void LineMachine::end_line() {
  if (state_ == State::kValue) state_ = end_value();
  switch (state_) {
    case State::kLineStart:
    case State::kComment: break;
    case State::kAfterValue:
    case State::kStamp:
    case State::kTail:
      ++samples_;
      if (wanted_ != MetricSpecs::kNone) give_sample();
      break;
    default: ++bad_lines_; break;
  }
  state_ = State::kLineStart;
}

void LineMachine::give_sample() {
  for (std::size_t at = 0; at < kept_.size(); ++at) {
    const Kept& kept = kept_[at];
    known_[at] = {std::string_view(text_).substr(kept.from, kept.size), kept.present};
    if (!kept.present) known_[at].text = {};
  }
  store_->add({wanted_, labels_hash_, group_hash_, number_, known_.data()});
}

}  // namespace pickd::scrape
