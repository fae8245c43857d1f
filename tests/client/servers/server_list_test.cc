#include "client/servers/server_list.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<std::vector<std::string>> Read(std::vector<std::string> servers) {
  const absl::StatusOr<ServerList> list = ServerList::Create(std::move(servers));
  if (!list.ok()) return list.status();
  return list->Read();
}

TEST(ServerListTest, PlainAddressesNeverChange) {
  const absl::StatusOr<ServerList> list =
      ServerList::Create({"a:1", "unix:/run/b", "xds:///feeds", "a:1"});
  ASSERT_THAT(list, IsOk());
  EXPECT_EQ(list->period(), absl::InfiniteDuration());
  EXPECT_THAT(list->Read(), IsOkAndHolds(ElementsAre("a:1", "unix:/run/b", "xds:///feeds")));
}

TEST(ServerListTest, AFileIsReadAnewEachTime) {
  const TempFolder folder;
  const std::string path = folder.Write("servers", "a:1 # the first\n\n  # none\n\tunix:/b\r\n");
  const absl::StatusOr<ServerList> list = ServerList::Create({"file:" + path, "c:3"});
  ASSERT_THAT(list, IsOk());
  EXPECT_LT(list->period(), absl::Seconds(10));
  EXPECT_THAT(list->Read(), IsOkAndHolds(ElementsAre("a:1", "unix:/b", "c:3")));
  folder.Write("servers", "c:3\nd:4");
  EXPECT_THAT(list->Read(), IsOkAndHolds(ElementsAre("c:3", "d:4")));
}

TEST(ServerListTest, ADnsNameIsReplacedByItsAddresses) {
  EXPECT_THAT(Read({"dns:///127.0.0.1:8470"}), IsOkAndHolds(ElementsAre("127.0.0.1:8470")));
  EXPECT_THAT(Read({"dns:///localhost:8470"}), IsOkAndHolds(Contains(HasSubstr("1:8470"))));
  EXPECT_THAT(Read({"dns:///[::1]:8470"}), IsOkAndHolds(ElementsAre("[::1]:8470")));
}

TEST(ServerListTest, ANameWithoutAnAddressIsUnavailable) {
  EXPECT_THAT(Read({"dns:///no-such-host.invalid:1"}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("dns:///no-such-host.invalid:1")));
}

TEST(ServerListTest, ABadFileIsNamedWithItsLine) {
  const TempFolder folder;
  const std::string bad = folder.Write("bad", "a:1\nno address\n");
  EXPECT_THAT(Read({"file:" + bad}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(bad), HasSubstr("line 2"), HasSubstr("no address"))));
  // A file cannot refer the client to other files or names.
  EXPECT_THAT(Read({"file:" + folder.Write("more", "file:/etc/hosts\n")}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("file:/etc/hosts")));
  const std::string empty = folder.Write("empty", "# nobody\n");
  EXPECT_THAT(Read({"file:" + empty}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("lists no server")));
  EXPECT_THAT(Read({"file:" + folder / "none"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
}

TEST(ServerListTest, TheSizeOfAFileAndItsNumberOfServersAreBounded) {
  const TempFolder folder;
  std::string many;
  for (size_t i = 0; i <= kMaxServers; ++i) absl::StrAppend(&many, "host:", i + 1, "\n");
  EXPECT_THAT(Read({"file:" + folder.Write("many", many)}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("more than 4096")));
  const std::string large(static_cast<size_t>(kMaxServerFileBytes) + 1, '#');
  EXPECT_THAT(Read({"file:" + folder.Write("large", large)}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("large\" has 262145 bytes, want at most 262144")));
}

TEST(ServerListTest, InvalidAddressesAndAnEmptyListAreRefused) {
  for (const char* bad : {"", "file:", "dns:///", "dns:///name", "dns:///name:0", "xds:///", "a"}) {
    EXPECT_THAT(Read({bad}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want")))
        << bad;
  }
  EXPECT_THAT(Read({}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 0")));
}

}  // namespace
}  // namespace systole
