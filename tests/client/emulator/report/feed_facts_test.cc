#include "client/emulator/report/feed_facts.h"

#include <string>

#include "core/json/json_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole::emulator {
namespace {

using testing::IsEmpty;

TEST(FeedFactsTest, JsonHoldsDatasetSpecServersVersionAndDate) {
  JsonWriter json;
  json.BeginObject();
  AppendFacts(FactsOf({.dataset = "photos",
                       .spec = "resnet50.textproto",
                       .spec_fingerprint = 0xab,
                       .servers = "a:1, b:2",
                       .content_version = "1/jpeg62",
                       .date = "2026-11-22T05:03:10Z"}),
              json);
  EXPECT_EQ(json.EndObject().text(),
            R"({"dataset":"photos","spec":"resnet50.textproto",)"
            R"("spec_fingerprint":"00000000000000ab","servers":"a:1, b:2",)"
            R"("content_version":"1/jpeg62","date":"2026-11-22T05:03:10Z"})");
}

TEST(FeedFactsTest, AnEmptyOriginHasNoFacts) { EXPECT_THAT(FactsOf(FeedOrigin()), IsEmpty()); }

}  // namespace
}  // namespace systole::emulator
