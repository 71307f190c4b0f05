// Server-sent events out of bytes that may be cut anywhere: the data of each event, whole.
#pragma once

#include <cstddef>
#include <string_view>

#include "libbody/json.hpp"

namespace pickd::body {

// Who takes the events.
class EventSink {
 public:
  // `data` has the padding of simdjson behind it.
  virtual void event(const JsonBuffer& data) = 0;
  // An event that was longer than it may be: nothing of it was kept.
  virtual void event_too_long() = 0;

 protected:
  ~EventSink() = default;
};

class SseReader {
 public:
  void begin(std::size_t event_bytes_max);
  // False: memory is out, and the event that was being read is lost.
  bool feed(std::string_view bytes, EventSink& sink);
  // The stream has ended; an event that lacks its empty line is taken all the same.
  bool finish(EventSink& sink);
  void shrink(std::size_t keep_bytes);

 private:
  bool keep(std::string_view bytes);
  bool line(std::string_view line, EventSink& sink);
  bool data(std::string_view value);
  void dispatch(EventSink& sink);

  std::size_t event_bytes_max_ = 0;
  List<char> line_;  // the part of a line that has come
  JsonBuffer data_;  // of the event that is being read
  bool has_data_ = false;
  bool too_long_ = false;
  bool after_cr_ = false;  // a line feed that comes next ends no line of its own
  bool first_line_ = true;
};

}  // namespace pickd::body
