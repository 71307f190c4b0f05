// A recording: has workers write down what they do, and hands it on, for one session at a time.
//
// Control thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "daemon/control/engine_room.hpp"
#include "daemon/workers/recorder.hpp"

namespace pickd::control {

class Recording {
 public:
  explicit Recording(EngineRoom& room) : room_(room) {}

  bool is_running() const { return session_ != 0; }
  bool is_of(std::uint64_t session) const { return session_ == session; }
  void start(std::uint64_t session);  // a number of ControlServer's, from 1
  // Whole entries, as many as fit; returns how many words.
  std::size_t take(std::span<std::uint64_t> to);
  std::uint64_t lost() const;  // entries since the start
  void stop();

 private:
  EngineRoom& room_;
  std::uint64_t session_ = 0;
  std::uint64_t lost_before_ = 0;
  // One a worker, made for the first recording and kept: a worker may be writing when one stops.
  std::vector<std::unique_ptr<workers::Recorder>> recorders_;
};

}  // namespace pickd::control
