#include "libbody/sse.hpp"

namespace pickd::body {

namespace {

// A byte order mark, the name of a field, a colon and a blank.
constexpr std::size_t kNameBytesMax = 16;

}  // namespace

void SseReader::begin(std::size_t event_bytes_max) {
  event_bytes_max_ = event_bytes_max;
  line_.clear();
  data_.clear();
  has_data_ = too_long_ = after_cr_ = false;
  first_line_ = true;
}

bool SseReader::feed(std::string_view bytes, EventSink& sink) {
  bool enough_memory = true;
  while (!bytes.empty()) {
    if (after_cr_ && bytes.front() == '\n') {
      after_cr_ = false;
      bytes.remove_prefix(1);
      continue;
    }
    after_cr_ = false;
    const std::size_t end = bytes.find_first_of("\r\n");
    if (end == std::string_view::npos) return keep(bytes) && enough_memory;
    after_cr_ = bytes[end] == '\r';
    const std::string_view rest = bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    if (line_.empty()) {
      enough_memory = line(rest, sink) && enough_memory;
    } else {
      enough_memory = keep(rest) && line(view(line_), sink) && enough_memory;
      line_.clear();
    }
  }
  return enough_memory;
}

bool SseReader::finish(EventSink& sink) {
  bool enough_memory = true;
  if (!line_.empty()) enough_memory = line(view(line_), sink);
  line_.clear();
  dispatch(sink);
  return enough_memory;
}

void SseReader::shrink(std::size_t keep_bytes) {
  line_.clear();
  line_.shrink(keep_bytes);
  data_.clear();
  data_.shrink(keep_bytes);
}

// A line that is too long is cut; enough is kept to see that the event is, too.
bool SseReader::keep(std::string_view bytes) {
  const std::size_t room = event_bytes_max_ + kNameBytesMax - line_.size();
  return line_.append(bytes.data(), bytes.size() < room ? bytes.size() : room);
}

bool SseReader::line(std::string_view line, EventSink& sink) {
  if (first_line_ && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  first_line_ = false;
  if (line.empty()) {
    dispatch(sink);
    return true;
  }
  const std::size_t colon = line.find(':');
  if (line.substr(0, colon) != "data") return true;
  std::string_view value;
  if (colon != std::string_view::npos) value = line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  return data(value);
}

bool SseReader::data(std::string_view value) {
  if (value.size() >= event_bytes_max_ || data_.size() >= event_bytes_max_ - value.size()) {
    too_long_ = true;
    data_.clear();
  }
  const bool more = has_data_;
  has_data_ = true;
  if (too_long_) return true;
  if ((more && !data_.append("\n", 1)) || !data_.append(value.data(), value.size())) {
    too_long_ = true;
    return false;
  }
  return true;
}

void SseReader::dispatch(EventSink& sink) {
  if (too_long_) {
    sink.event_too_long();
  } else if (has_data_ && data_.size() != 0) {
    data_.pad();
    sink.event(data_);
  }
  data_.clear();
  has_data_ = too_long_ = false;
}

}  // namespace pickd::body
