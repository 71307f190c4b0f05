// What other readers of JSON take and the parser does not: the model and the prompt are read all
// the same, and the body goes on as it came.
#include "libbody/mend.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/libbody/support.hpp"

namespace pickd::body {
namespace {

std::string mended(std::string text) {
  mend(text.data(), text.size());
  return text;
}

TEST(Mend, LeavesGoodJsonAsItIs) {
  const std::string good =
      R"({"a": [0, -1.5e3, 1844674407370955, true], "b": "\ud83d\ude00 \\ud83d \" 1e999 NaN"})";
  std::string text = good;
  EXPECT_FALSE(mend(text.data(), text.size()));
  EXPECT_EQ(text, good);
}

TEST(Mend, MakesNumbersNearOnes) {
  EXPECT_EQ(mended("[18446744073709551616]"), "[184467440737095516e2]");
  EXPECT_EQ(mended("[-18446744073709551616,1]"), "[-184467440737095516e2,1]");
  EXPECT_EQ(mended("[1.5e999]"), "[1.5    ]");
  EXPECT_EQ(mended("[NaN, -Infinity]"), "[0  , 0        ]");
  EXPECT_EQ(mended("[" + std::string(400, '7') + "]"),
            "[" + std::string(18, '7') + std::string(382, ' ') + "]");
}

TEST(Mend, ReplacesHalvesOfSurrogatePairs) {
  EXPECT_EQ(mended(R"(["\ud800"])"), R"(["\uFFFD"])");
  EXPECT_EQ(mended(R"(["\ud83d\ud83d\ude00 \udE00x"])"), R"(["\uFFFD\ud83d\ude00 \uFFFDx"])");
}

TEST(Mend, EndsWithTheTextWhateverItIs) {
  for (const char* text :
       {"", "\"", "\"\\", "\"\\u", "\"\\ud8", "-", "N", "1e", "\"\\ud800\\u", "I", "-e1234", "e"})
    mended(text);
  mended(std::string(400, '-'));
}

TEST(MendedBodies, AreReadWithTheirModelAndPassedOnAsTheyCame) {
  for (const std::string odd :
       {R"("seed": 18446744073709551616)", R"("temperature": NaN)", R"("user": "\ud800")"}) {
    const std::string json =
        R"({"model": "m", "messages": [{"role": "user", "content": "Hello"}], )" + odd + "}";
    const Read read(kChat, json);
    EXPECT_EQ(read.status, 0) << odd;
    EXPECT_EQ(read.model(), "m");
    EXPECT_EQ(std::string(static_cast<const char*>(read.info.bytes.data), read.info.bytes.size),
              json);
    EXPECT_NE(read.text().find("Hello"), std::string::npos) << odd;
  }
  EXPECT_EQ(Read(kChat, R"({"seed": 18446744073709551616)").status, -EBADMSG);
}

}  // namespace
}  // namespace pickd::body
