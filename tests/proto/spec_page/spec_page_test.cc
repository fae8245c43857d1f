#include "tests/proto/spec_page/spec_page.h"

#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "core/status/check.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/dynamic_message.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

std::string ContentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// Reads feed.proto with its comments.
class SpecPageTest : public testing::Test {
 protected:
  SpecPageTest() {
    google::protobuf::FileDescriptorSet files;
    SYSTOLE_CHECK(files.ParseFromString(ContentOf(SYSTOLE_FEED_DESCRIPTORS)));
    SYSTOLE_CHECK(files.file_size() == 1);
    feed_ = pool_.BuildFile(files.file(0));
    SYSTOLE_CHECK(feed_ != nullptr);
  }

  google::protobuf::DescriptorPool pool_;
  const FileDescriptor* feed_ = nullptr;
};

TEST_F(SpecPageTest, EveryFieldHasAnExampleThatParses) {
  google::protobuf::DynamicMessageFactory factory(&pool_);
  for (int i = 0; i < feed_->message_type_count(); ++i) {
    const Descriptor& message = *feed_->message_type(i);
    for (int j = 0; j < message.field_count(); ++j) {
      const FieldDescriptor& field = *message.field(j);
      // The table of operations has the examples for Transform's operations.
      if (field.real_containing_oneof() != nullptr && message.name() == "Transform") continue;
      SCOPED_TRACE(field.full_name());
      const std::string example = ExampleOf(field);
      ASSERT_NE(example, "") << "the field has no example: add one to Examples() in spec_page.cc";
      // The example of a field that all operations share is a whole output.
      const Descriptor& parent =
          message.name() == "Transform" ? *feed_->FindMessageTypeByName("Output") : message;
      const std::unique_ptr<google::protobuf::Message> parsed(factory.GetPrototype(&parent)->New());
      EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(example, parsed.get())) << example;
    }
  }
}

TEST_F(SpecPageTest, TheSpecPageIsUpToDateWithFeedProtoAndTheOperations) {
  const std::string page = SpecPage(*feed_);
  if (page == ContentOf("proto/SPEC.md")) return;  // Tests run at the top of the tree.
  std::ofstream(SYSTOLE_NEW_PAGE, std::ios::binary) << page;
  FAIL() << "proto/SPEC.md differs from feed.proto and the table of operations; update it with\n"
         << "  cp " << SYSTOLE_NEW_PAGE << " proto/SPEC.md";
}

}  // namespace
}  // namespace systole
