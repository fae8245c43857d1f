// Tests images on a web server: which requests read them, and what errors and notes say.
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/record/images/image_folder.h"
#include "core/record/images/image_record.h"
#include "core/record/shard_formats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/record/images/image_files.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

using FarImagesTest = ImageFilesTest;

// Reads all bytes of far_bytes(), and passes them to ReadFetched(). Returns each record that
// ReadFetched() makes of these bytes, or the record's error.
std::vector<std::string> ReadAhead(const RecordSource& shard) {
  std::string bytes(static_cast<size_t>(shard.size_bytes()), '-');
  const absl::Status read =
      ReadExactlyAt(*shard.far_bytes(), 0, absl::MakeSpan(bytes.data(), bytes.size()));
  std::vector<int64_t> all(static_cast<size_t>(shard.num_records()));
  std::iota(all.begin(), all.end(), 0);
  AlignedBuffer scratch;
  std::vector<std::string> got;
  shard
      .ReadFetched(
          all,
          [&](const ByteSource& /*far*/,
              const RecordSpan& span) -> absl::StatusOr<absl::string_view> {
            if (!read.ok()) return read;
            return absl::string_view(bytes).substr(span.offset, span.size);
          },
          scratch,
          [&](size_t, absl::StatusOr<absl::string_view> payload) {
            got.push_back(payload.ok() ? std::string(*payload) : payload.status().ToString());
            return absl::OkStatus();
          })
      .IgnoreError();
  return got;
}

TEST_F(FarImagesTest, ImagesReadAheadGiveTheSameRecordsAsDirectReads) {
  StubObjects objects;
  std::vector<std::string> names;
  for (const std::string name : {"a/1.jpg", "a/2.jpg", "b/1.png", "b/2.PNG"}) {
    names.push_back(objects.Put("/x/" + name, ReadWholeFile(folder_ / name)));
  }
  names.push_back(objects.Put("/x/b/3.png", "no image"));
  const auto there = OpenShard(GroupShards(names)->front(), {.index_dir = folder_.path()});
  ASSERT_THAT(there, IsOk());
  ASSERT_NE((*there)->far_bytes(), nullptr);
  EXPECT_EQ(MustOpenAll()->far_bytes(), nullptr);
  std::vector<std::string> want;
  AlignedBuffer scratch;
  for (int64_t record = 0; record < 5; ++record) {
    const auto payload = (*there)->ReadRecord(record, scratch);
    want.push_back(payload.ok() ? std::string(*payload) : payload.status().ToString());
  }
  EXPECT_EQ(ReadAhead(**there), want);
  EXPECT_THAT(want.back(), HasSubstr("3.png"));
  // Any part of far_bytes() can be read by itself.
  const uint64_t size = (*there)->size_bytes();
  std::string whole(size, '-');
  ASSERT_THAT(ReadExactlyAt(*(*there)->far_bytes(), 0, absl::MakeSpan(whole.data(), size)), IsOk());
  for (uint64_t offset = 1; offset < size; offset += 37) {
    std::string part(std::min<uint64_t>(101, size - offset), '-');
    ASSERT_THAT(
        ReadExactlyAt(*(*there)->far_bytes(), offset, absl::MakeSpan(part.data(), part.size())),
        IsOk());
    EXPECT_TRUE(part == whole.substr(offset, part.size())) << offset;
  }
}

// If one image has no ETag, a cache could serve this image's old bytes after the image changed.
TEST_F(FarImagesTest, AFolderWithAnImageWithoutETagHasNoCacheIdentity) {
  StubObjects objects;
  objects.SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.target != "/bare/b/1.png") return std::nullopt;
    return ServeBytes(request, ReadWholeFile(folder_ / "b/1.png"), {{"Accept-Ranges", "bytes"}});
  });
  const auto identity = [&](const std::string& root) {
    std::vector<std::string> names;
    for (const std::string name : {"a/1.jpg", "b/1.png"}) {
      names.push_back(objects.Put(root + name, ReadWholeFile(folder_ / name)));
    }
    const auto there = OpenShard(GroupShards(names)->front(), {.index_dir = folder_.path()});
    EXPECT_THAT(there, IsOk());
    return (*there)->far_bytes()->identity();
  };
  EXPECT_NE(identity("/x/"), "");
  EXPECT_EQ(identity("/bare/"), "");  // b/1.png has no ETag.
}

TEST_F(FarImagesTest, ReadingAheadReportsAnImageThatChangedOnTheServer) {
  StubObjects objects;
  std::vector<std::string> names;
  for (const std::string name : {"a/1.jpg", "b/1.png"}) {
    names.push_back(objects.Put("/x/" + name, ReadWholeFile(folder_ / name)));
  }
  const auto there = OpenShard(GroupShards(names)->front(), {.index_dir = folder_.path()});
  ASSERT_THAT(there, IsOk());
  objects.Put("/x/b/1.png", "another one");
  std::string bytes((*there)->size_bytes(), '-');
  EXPECT_THAT((*there)->far_bytes()->ReadAt(0, absl::MakeSpan(bytes.data(), bytes.size())),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("1.png")));
}

// One request is enough even if the store no longer uses the answers that it got when the folder
// was opened. The errors of fail() make the store forget these answers.
TEST_F(FarImagesTest, AnImageIsReadWithOneRequest) {
  StubObjects objects;
  std::vector<std::string> names;
  for (const std::string name : {"a/1.jpg", "b/1.png"}) {
    names.push_back(objects.Put("/x/" + name, ReadWholeFile(folder_ / name)));
  }
  const auto shard = OpenShard(GroupShards(names)->front(), {.index_dir = folder_.path()});
  ASSERT_THAT(shard, IsOk());
  const auto fail = [&] {
    objects.SetFault([](const StubRequest&) -> std::optional<StubAnswer> {
      return StubAnswer{.bytes = Head(403, {{"content-length", "0"}})};
    });
    AlignedBuffer scratch;
    for (const int64_t record : {0, 1}) EXPECT_FALSE((*shard)->ReadRecord(record, scratch).ok());
    objects.SetFault(nullptr);
  };
  const auto requests_of = [&objects](auto read) {
    const size_t before = objects.server().requests().size();
    read();
    std::vector<std::string> requests;
    const std::vector<StubRequest> all = objects.server().requests();
    for (size_t i = before; i < all.size(); ++i) {
      requests.push_back(absl::StrCat(all[i].method, " ", all[i].target, " ",
                                      FindHeader(all[i].headers, "if-match").empty() ? "" : "if"));
    }
    return requests;
  };
  fail();
  EXPECT_THAT(requests_of([&] { EXPECT_THAT(Read(**shard), SizeIs(2)); }),
              ElementsAre("GET /x/a/1.jpg if", "GET /x/b/1.png if"));
  fail();
  EXPECT_THAT(requests_of([&] { EXPECT_THAT(ReadAhead(**shard), SizeIs(2)); }),
              ElementsAre("GET /x/a/1.jpg if", "GET /x/b/1.png if"));

  fail();
  objects.Put("/x/b/1.png", ReadWholeFile(folder_ / "a/1.jpg"));
  AlignedBuffer scratch;
  EXPECT_THAT((*shard)->ReadRecord(1, scratch),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("\"1.png\" was replaced")));
  objects.Remove("/x/b/1.png");
  EXPECT_THAT((*shard)->ReadRecord(1, scratch),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("\"1.png\" was removed")));
}

TEST_F(FarImagesTest, AForbiddenLabelsFileIsAnErrorAndNotTreatedAsMissing) {
  StubObjects objects;
  const std::string name = objects.Put("/x/a/1.jpg", ReadWholeFile(folder_ / "a/1.jpg"));
  objects.SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.target != "/x/labels.txt") return std::nullopt;
    return StubAnswer{.bytes = Head(403, {{"content-length", "0"}})};
  });
  const auto shards = GroupShards({name});
  ASSERT_THAT(shards, IsOk());
  EXPECT_THAT(OpenShard(shards->front(), {.index_dir = folder_.path()}),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("labels.txt"), HasSubstr("decides the labels"))));
}

// A query that all images have may be a token for the whole folder. Such a token is valid for
// labels.txt, too. A query of a single image may be a signature that is valid for this image only.
TEST_F(FarImagesTest, AQueryCommonToAllImagesIsAlsoSentForIndexAndLabels) {
  StubObjects objects;
  objects.Put("/x/labels.txt", "z\na\n");
  objects.SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (absl::EndsWith(request.target, "?token=secret")) return std::nullopt;
    return StubAnswer{.bytes = Head(404, {{"content-length", "0"}})};
  });
  std::vector<std::string> names;
  for (const std::string base : {"1.jpg", "2.jpg"}) {
    names.push_back(objects.Put("/x/a/" + base, ReadWholeFile(folder_ / ("a/" + base))) +
                    "?token=secret");
  }
  const auto labelled = OpenShard(GroupShards(names)->front());
  ASSERT_THAT(labelled, IsOk());
  EXPECT_THAT(Read(**labelled)[0], Eq(ImageRecord(Jpeg(1), {.name = "a", .label = 1},
                                                  {.height = 8, .width = 12, .channels = 3})));
  EXPECT_THAT((*labelled)->note(), Not(HasSubstr("secret")));
  const auto requests = [&objects] {
    std::vector<std::string> targets;
    for (const StubRequest& request : objects.server().requests()) {
      targets.push_back(request.target);
    }
    return targets;
  };
  EXPECT_THAT(requests(),
              AllOf(Contains("/x/images.idx?token=secret"), Not(Contains("/x/labels.txt"))));

  objects.SetFault(nullptr);
  names[1] = objects.server().Url("/x/a/2.jpg?token=another");
  ASSERT_THAT(OpenShard(GroupShards(names)->front()), IsOk());
  EXPECT_THAT(requests(), AllOf(Contains("/x/images.idx"), Contains("/x/labels.txt")));
}

TEST_F(FarImagesTest, ImagesOfAWebServerAreNamedWithoutTheirSecretQuery) {
  StubObjects objects;
  std::vector<std::string> names;
  for (const std::string name : {"a/1.jpg", "a/2.jpg", "b/1.png", "b/2.PNG"}) {
    names.push_back(objects.Put("/x/" + name, ReadWholeFile(folder_ / name)) + "?sig=SECRET");
  }
  const auto shards = GroupShards(names);
  ASSERT_THAT(shards, IsOk());
  const ShardOptions options = {.index_dir = folder_.path()};
  const auto there = OpenShard(shards->front(), options);
  ASSERT_THAT(there, IsOk());
  EXPECT_EQ((*there)->note(), "");
  EXPECT_EQ(Read(**there), Read(*MustOpenAll()));
  EXPECT_THAT(ReadWholeFile(IndexPathOf(shards->front(), folder_.path())),
              Not(HasSubstr("SECRET")));

  objects.Put("/x/a/1.jpg", Jpeg(3));
  AlignedBuffer scratch;
  EXPECT_THAT((*there)->ReadRecord(0, scratch),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("1.jpg"), Not(HasSubstr("SECRET")))));
  EXPECT_THAT((*there)->ReadRecord(1, scratch), IsOk());
  const std::string beside = OpenShard(GroupShards({names[1]})->front()).value()->note();
  EXPECT_THAT(beside, AllOf(HasSubstr("index not kept"), Not(HasSubstr("SECRET"))));
}

}  // namespace
}  // namespace systole
