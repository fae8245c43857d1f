#include "core/process/exit_code.h"

#include <algorithm>
#include <string>

#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/folders.h"

namespace systole {
namespace {

TEST(ExitCodeTest, FollowsTheTableInTheHeader) {
  EXPECT_EQ(ExitCodeFor(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeFor(absl::DataLossError("")), 1);
  EXPECT_EQ(ExitCodeFor(absl::InvalidArgumentError("")), 2);
  EXPECT_EQ(ExitCodeFor(absl::OutOfRangeError("")), 2);
  EXPECT_EQ(ExitCodeFor(absl::FailedPreconditionError("")), 1);
  EXPECT_EQ(ExitCodeFor(absl::AlreadyExistsError("")), 2);
  EXPECT_EQ(ExitCodeFor(absl::ResourceExhaustedError("")), 2);
  EXPECT_EQ(ExitCodeFor(absl::PermissionDeniedError("")), 2);
  EXPECT_EQ(ExitCodeFor(absl::UnauthenticatedError("")), 2);
  EXPECT_EQ(ExitCodeFor(absl::NotFoundError("")), 3);
  EXPECT_EQ(ExitCodeFor(absl::UnavailableError("")), 4);
  EXPECT_EQ(ExitCodeFor(absl::DeadlineExceededError("")), 4);
  EXPECT_EQ(ExitCodeFor(absl::InternalError("")), 5);
  EXPECT_EQ(ExitCodeFor(absl::UnknownError("")), 5);
  EXPECT_EQ(ExitCodeFor(absl::UnimplementedError("")), 5);
  EXPECT_EQ(ExitCodeFor(absl::AbortedError("")), 5);
  EXPECT_EQ(ExitCodeFor(absl::CancelledError("")), 5);
}

TEST(ExitCodeTest, TheReadmeHasTheTableOfTheHelp) {
  std::string readme = ReadWholeFile(SourceFolder() + "/core/process/README.md");
  std::replace(readme.begin(), readme.end(), '\n', ' ');
  const std::string codes = kExitCodesText;
  EXPECT_NE(readme.find(codes.substr(codes.find("0 ok"))), std::string::npos);
}

}  // namespace
}  // namespace systole
