// What the tests of the endpoints share: records in plain memory, a table over them, specs in a
// line.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/endpoints/endpoint_table.hpp"
#include "tests/endpoints/reservation_fixture.hpp"

namespace pickd::endpoints::test {

inline EndpointSpec spec(const std::string& name, const std::string& address = "",
                         std::vector<std::string> models = {}) {
  EndpointSpec made;
  made.name = name;
  made.address = address.empty() ? name + ":8000" : address;
  made.models = std::move(models);
  return made;
}

class EndpointTableTest : public ::testing::Test {
 protected:
  explicit EndpointTableTest(std::uint32_t ids = 8)
      : ids_(ids),
        records_(new abi::EndpointRecord[ids]()),
        table_({records_.get(), ids, &high_water_, 500}, store_) {}

  static constexpr std::uint64_t kTick = 1000;

  void add(const std::string& name, std::uint64_t tick = kTick) {
    const auto added = table_.add(spec(name), "test", tick);
    ASSERT_TRUE(added.ok()) << added.error().text;
  }
  const TopologyEndpoint& endpoint(std::string_view name) const {
    const TopologyEndpoint* found = store_.current().find_name(name);
    if (found == nullptr) throw std::runtime_error("no endpoint " + std::string(name));
    return *found;
  }
  abi::EndpointRecord& record(std::string_view name) { return records_[endpoint(name).id]; }
  abi::LifeWord life(std::string_view name) { return {record(name).life.load()}; }
  std::uint64_t handle(std::string_view name) {
    return abi::endpoint_handle(endpoint(name).id, endpoint(name).generation);
  }
  abi::EndpointState state(std::string_view name) {
    return static_cast<abi::EndpointState>(record(name).state.load());
  }

  std::uint32_t ids_;
  abi::Word high_water_{1};
  std::unique_ptr<abi::EndpointRecord[]> records_;
  TopologyStore store_;
  EndpointTable table_;
};

}  // namespace pickd::endpoints::test
