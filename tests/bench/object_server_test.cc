#include "bench/object_server.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "bench/bare_fetch.h"
#include "core/storage/byte_source.h"
#include "core/storage/web/web_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole::bench {
namespace {

using std::chrono::milliseconds;

std::string Numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) absl::StrAppend(&text, i, ",");
  return text;
}

TEST(ObjectServerTest, AWebStoreReadsItsObjects) {
  const TempFolder folder;
  const std::string bytes = Numbers(100'000);
  const std::string path = folder.Write("a", bytes);
  const ObjectServer server(folder.path(), {.latency = milliseconds(1)});
  const WebStore store(WebStoreOptions{});
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = store.Open(server.Url(path));
  ASSERT_THAT(source, IsOk());
  EXPECT_THAT((*source)->Size(), IsOkAndHolds(bytes.size()));
  std::string read(300'000, '\0');
  EXPECT_THAT((*source)->ReadAt(1234, absl::MakeSpan(read)), IsOkAndHolds(read.size()));
  EXPECT_EQ(read, bytes.substr(1234, read.size()));
  EXPECT_THAT((*source)->CheckUnchanged(), IsOk());
}

TEST(ObjectServerTest, AFileThatIsNotThereIsNotFound) {
  const TempFolder folder;
  const ObjectServer server(folder.path(), {});
  const WebStore store(WebStoreOptions{});
  EXPECT_THAT(store.Open(server.Url(folder / "b")),
              StatusIs(absl::StatusCode::kNotFound, testing::_));
}

TEST(ObjectServerTest, ManyRequestsAtATimeAreCounted) {
  const TempFolder folder;
  const std::string path = folder.Write("a", Numbers(100'000));
  // The rate is so low that the answers take turns.
  const ObjectServer server(folder.path(),
                            {.latency = milliseconds(1), .bytes_per_second = 100'000'000});
  std::vector<FetchRange> ranges;
  int64_t bytes = 0;
  for (int i = 0; i < 40; ++i) {
    ranges.push_back({.url = server.Url(path), .offset = 10 * i, .size = 200'000 + i});
    bytes += ranges.back().size;
  }
  BareFetch fetch(/*connections=*/16);
  fetch.Fetch(ranges);
  // The server counts bytes after the kernel has taken them. The client may have them before that.
  EXPECT_TRUE(WaitUntil([&] { return server.bytes_sent() == bytes; }));
  EXPECT_EQ(server.requests(), 40);
}

}  // namespace
}  // namespace systole::bench
