#include "daemon/base/log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "daemon/base/printable.hpp"

namespace pickd::base {

namespace {

// The words of a line. Names and texts in them come from clients, files, engines and name servers.
class Words : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& line) override {
    for (const char letter : message.payload) line.push_back(is_control(letter) ? '?' : letter);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<Words>();
  }
};

}  // namespace

void start_log(const std::string& level) {
  auto logger =
      std::make_shared<spdlog::logger>("pickd", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<Words>('*').set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %*");
  logger->set_formatter(std::move(formatter));
  logger->set_level(spdlog::level::from_str(level == "warn" ? "warning" : level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace pickd::base
