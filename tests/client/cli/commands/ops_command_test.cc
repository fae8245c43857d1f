#include <string>

#include "client/cli/commands/commands.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "systole/v1/feed.pb.h"
#include "tests/client/cli/command_run.h"

namespace systole {
namespace {

using testing::HasSubstr;

TEST(OpsCommandTest, EveryOperationIsListedWithItsParametersAndAnExample) {
  const CommandRun run = RunCommand(MakeOpsCommand(), {});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, HasSubstr("decode_jpeg\n"));
  EXPECT_THAT(run.out, HasSubstr("dct: ISLOW | IFAST, channels: int32"));
  EXPECT_THAT(run.out, HasSubstr("transforms { random_crop { height: 32 width: 32 } }"));
  EXPECT_THAT(run.out, HasSubstr("mean: list of double"));
  EXPECT_THAT(run.out, HasSubstr("tf.image.resize"));
  EXPECT_THAT(run.out, HasSubstr("tf.io.decode_and_crop_jpeg"));
  EXPECT_THAT(run.out, HasSubstr("transforms { random_flip {} }\n  runs          fused, by row\n"));
  EXPECT_THAT(run.out, HasSubstr("transforms { decode_png {} }\n  runs          alone\n"));
  EXPECT_THAT(run.out, HasSubstr("cutmix\n"));
  EXPECT_THAT(run.out, HasSubstr("alpha: float, probability: float"));
  EXPECT_THAT(run.out, HasSubstr("  mix { group: 8 images: 'image' labels: 'label' cutmix {} }"));
}

TEST(OpsCommandTest, JsonListsEveryOperationWithAllFields) {
  const CommandRun run = RunCommand(MakeOpsCommand(), {"--json"});
  EXPECT_EQ(run.exit_code, 0);
  google::protobuf::Struct report;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(run.out, &report).ok()) << run.out;
  const auto& operations = report.fields().at("operations").list_value();
  EXPECT_EQ(operations.values_size(),
            v1::Transform::descriptor()->FindOneofByName("kind")->field_count() +
                2);  // These are mixup and cutmix.
  for (const google::protobuf::Value& operation : operations.values()) {
    const auto& fields = operation.struct_value().fields();
    for (const char* name : {"summary", "example", "runs", "tensorflow", "parity",
                             "combined_tensorflow", "combined_parity", "torchvision", "dali"}) {
      EXPECT_TRUE(fields.contains(name)) << fields.at("name").string_value() << " lacks " << name;
    }
  }
}

}  // namespace
}  // namespace systole
