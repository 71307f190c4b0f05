#include "daemon/base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>

namespace pickd::base {

void start_log(const std::string& level) {
  auto logger =
      std::make_shared<spdlog::logger>("pickd", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
  logger->set_level(spdlog::level::from_str(level == "warn" ? "warning" : level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace pickd::base
