// MappableFd: what Boost.Interprocess's mapped_region wants of a thing it maps; does not own it.
#pragma once

#include <boost/interprocess/detail/os_file_functions.hpp>
#include <boost/interprocess/interprocess_fwd.hpp>
#include <boost/interprocess/mapped_region.hpp>

namespace pickd::base {

struct MappableFd {
  int fd;
  boost::interprocess::mode_t mode = boost::interprocess::read_write;

  boost::interprocess::mapping_handle_t get_mapping_handle() const { return {fd, false}; }
  boost::interprocess::mode_t get_mode() const { return mode; }
};

}  // namespace pickd::base
