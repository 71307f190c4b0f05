// libpickd with exceptions, for measurements.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "pickd/pickd.h"

namespace pickd::bench {

struct CloseClient {
  void operator()(pickd_client* client) const { pickd_close(client); }
};
struct FreeResult {
  void operator()(pickd_result* result) const { pickd_result_free(result); }
};
using Client = std::unique_ptr<pickd_client, CloseClient>;
using ResultHandle = std::unique_ptr<pickd_result, FreeResult>;

inline Client open_client(const std::string& socket, std::uint32_t keys_max, std::uint32_t flags) {
  pickd_options options = PICKD_OPTIONS_INIT;
  options.socket_path = socket.c_str();
  options.name = "pickd-bench";
  options.keys_max = keys_max;
  options.flags = flags;
  pickd_client* client = nullptr;
  if (const int code = pickd_open(&options, &client); code != 0) {
    throw std::runtime_error(socket + ": " + pickd_strerror(code));
  }
  return Client(client);
}

inline void check(int code, const char* what) {
  if (code != 0) throw std::runtime_error(std::string(what) + ": " + pickd_strerror(code));
}

}  // namespace pickd::bench
