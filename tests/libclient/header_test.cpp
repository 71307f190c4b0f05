// pickd.h in C++: what it defines compiles under the warnings that its users may have on.
#include "pickd/pickd.h"

#include <gtest/gtest.h>

#pragma GCC diagnostic error "-Wold-style-cast"
#pragma GCC diagnostic error "-Wzero-as-null-pointer-constant"
#pragma GCC diagnostic error "-Wpedantic"
#pragma GCC diagnostic error "-Wmissing-field-initializers"

namespace {

TEST(Header, GivesStructsTheirDefaultsInCpp) {
  const pickd_options options = PICKD_OPTIONS_INIT;
  const pickd_request request = PICKD_REQUEST_INIT;
  const pickd_report_info report = PICKD_REPORT_INIT;
  const pickd_endpoint endpoint = PICKD_ENDPOINT_INIT;
  EXPECT_EQ(options.struct_size, sizeof options);
  EXPECT_EQ(request.struct_size, sizeof request);
  EXPECT_EQ(report.struct_size, sizeof report);
  EXPECT_EQ(static_cast<int>(report.kind), 0);
  EXPECT_EQ(report.output_tokens, PICKD_UNKNOWN);
  EXPECT_EQ(endpoint.struct_size, sizeof endpoint);
}

}  // namespace
