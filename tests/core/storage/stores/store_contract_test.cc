// Tests what all stores in the table have in common, except those that cannot list names. The
// tested stores can also be written. For a new store, FreshFolder() must say where tests may write.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/storage/stores/list_shards.h"
#include "core/storage/stores/store_table.h"
#include "core/storage/stores/stored_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/bucket/stub_bucket.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class StoreContractTest : public testing::TestWithParam<StoreRow> {
 protected:
  // The buckets are stubs in this process. The environment has their addresses and keys.
  static void SetUpTestSuite() {
    buckets_ = new Buckets();
    ::setenv("AWS_ENDPOINT_URL_S3", buckets_->s3.endpoint().c_str(), 1);
    ::setenv("AWS_ACCESS_KEY_ID", buckets_->sign.access_key_id.c_str(), 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", buckets_->sign.secret_access_key.c_str(), 1);
    ::setenv("AWS_SESSION_TOKEN", buckets_->sign.session_token.c_str(), 1);
    ::setenv("AWS_REGION", buckets_->sign.region.c_str(), 1);
    ::setenv("STORAGE_EMULATOR_HOST", buckets_->gs.endpoint().c_str(), 1);
  }
  static void TearDownTestSuite() { delete std::exchange(buckets_, nullptr); }

  // A folder for this test alone, with '/' at its end.
  std::string FreshFolder() const {
    if (GetParam().scheme.empty()) return folder_.path() + "/";
    const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
    if (Bucket() != nullptr) return Bucket()->Name(test + "/");
    return absl::StrCat(GetParam().scheme, "://", test, "/");
  }
  const Store& store() const { return GetParam().store(); }
  std::string Put(const std::string& name, absl::string_view bytes) const {
    EXPECT_THAT(PutStored(at_ + name, bytes), IsOk());
    return at_ + name;
  }

  const TempFolder folder_;
  const std::string at_ = FreshFolder();

 private:
  struct Buckets {
    const AwsSigning sign = {.access_key_id = "AKIDOFTEST",
                             .secret_access_key = "SECRETOFTEST",
                             .session_token = "SESSION",
                             .region = "eu-west-1"};
    StubBucket s3{{.sign = sign, .page_keys = 2}};
    StubBucket gs{{.is_gcs = true, .page_keys = 2}};
  };

  // Null if the store has no buckets.
  StubBucket* Bucket() const {
    if (GetParam().scheme == "s3") return &buckets_->s3;
    return GetParam().scheme == "gs" ? &buckets_->gs : nullptr;
  }

  static inline Buckets* buckets_ = nullptr;
};

TEST_P(StoreContractTest, OnlyShardsAreListedAndSortedByName) {
  for (const char* name : {"b", "a", "B", "a.idx", "a.idx.hash", "x.manifest", ".hidden"}) {
    Put(name, "");
  }
  const auto shards = IsOkAndHolds(ElementsAre(at_ + "B", at_ + "a", at_ + "b"));
  for (const std::string& pattern : {at_ + "*", at_, at_.substr(0, at_.size() - 1)}) {
    EXPECT_THAT(ListShards({pattern}), shards) << pattern;
  }
  EXPECT_THAT(ListShards({at_ + "b", at_ + "[aB]", at_ + "?"}), shards);
  EXPECT_THAT(ListShards({at_ + "*.idx"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("lie beside shards")));
}

TEST_P(StoreContractTest, PatternTakesAgreesWithListShards) {
  const std::vector<std::string> names = {"a", "ab", "b", "c-1", "c-2", "odd[1]", "odd1"};
  for (const std::string& name : names) Put(name, "");
  for (const char* pattern :
       {"", "*", "a", "a*", "?", "c-[12]", "[!a]", "odd[1]", "odd?", "none", "*/a", "\\a"}) {
    const absl::StatusOr<std::vector<std::string>> listed = ListShards({at_ + pattern});
    EXPECT_TRUE(listed.ok() || absl::IsNotFound(listed.status())) << pattern;
    for (const std::string& name : names) {
      const bool named = listed.ok() && std::count(listed->begin(), listed->end(), at_ + name) > 0;
      EXPECT_EQ(PatternTakes(at_ + pattern, at_ + name), named) << pattern << " and " << name;
    }
  }
  EXPECT_TRUE(PatternTakes(at_ + "c-*", at_ + "c-3"));
  EXPECT_TRUE(PatternTakes(at_, at_ + "missing"));
  EXPECT_FALSE(PatternTakes(at_ + "*", at_ + ".hidden"));
  EXPECT_FALSE(PatternTakes(at_ + "*", at_ + "inner/a"));
}

TEST_P(StoreContractTest, AFolderInAFolderIsRefused) {
  Put("a", "");
  if (GetParam().scheme.empty()) std::filesystem::create_directory(at_ + "inner");
  Put("inner/b", "");
  for (const std::string& pattern : {at_, at_ + "*"}) {
    EXPECT_THAT(ListShards({pattern}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(at_ + "inner\" is a folder"), HasSubstr(pattern))));
  }
  EXPECT_THAT(ListShards({at_ + "*/b"}), IsOkAndHolds(ElementsAre(at_ + "inner/b")));
  EXPECT_THAT(store().ListFolder(at_),
              IsOkAndHolds(UnorderedElementsAre(at_ + "a", at_ + "inner")));
}

TEST_P(StoreContractTest, AnOpenedSourceHasTheSizeAndIdentityThatStatReturns) {
  const std::string name = Put("a", "0123456789");
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = OpenStored(name);
  ASSERT_THAT(source, IsOk());
  const absl::StatusOr<StoredState> state = StatStored(name);
  ASSERT_THAT(state, IsOk());
  EXPECT_EQ(state->size_bytes, 10u);
  EXPECT_THAT((*source)->Size(), IsOkAndHolds(10u));
  EXPECT_EQ((*source)->identity(), state->identity);
  EXPECT_EQ((*source)->name(), name);
  EXPECT_THAT((*source)->CheckUnchanged(), IsOk());
  std::string out(4, '.');
  EXPECT_THAT((*source)->ReadAt(8, absl::MakeSpan(out)), IsOkAndHolds(2u));
  EXPECT_EQ(out, "89..");
  EXPECT_THAT((*source)->ReadAt(~uint64_t{0}, absl::MakeSpan(out)), IsOkAndHolds(0u));
}

TEST_P(StoreContractTest, IdentitiesAreShortPrintableText) {
  const absl::StatusOr<StoredState> state = StatStored(Put("a", "abc"));
  ASSERT_THAT(state, IsOk());
  EXPECT_LE(state->identity.size(), kMaxIdentityBytes);
  for (const char c : state->identity) EXPECT_TRUE(c >= ' ' && c <= '~') << state->identity;
}

TEST_P(StoreContractTest, AReplacedFileFailsTheCheckByBaseNameAndHasANewIdentity) {
  const std::string name = Put("a", "abc");
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = OpenStored(name);
  ASSERT_THAT(source, IsOk());
  Put("a", "defg");
  EXPECT_THAT((*source)->CheckUnchanged(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("shard \"a\" was replaced"), Not(HasSubstr(at_)))));
  EXPECT_NE(StatStored(name)->identity, (*source)->identity());
  EXPECT_THAT((*source)->Size(), IsOkAndHolds(3u));
}

TEST_P(StoreContractTest, ARemovedFileFailsTheCheckAndOnlyLocalFilesAreStillRead) {
  const std::string name = Put("a", "abc");
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = OpenStored(name);
  ASSERT_THAT(source, IsOk());
  EXPECT_THAT(RemoveStored(name), IsOk());
  EXPECT_THAT(RemoveStored(name), StatusIs(absl::StatusCode::kNotFound, HasSubstr(name)));
  EXPECT_THAT((*source)->CheckUnchanged(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("shard \"a\" was removed"), Not(HasSubstr(at_)))));
  if ((*source)->is_local()) {
    EXPECT_THAT(ReadWhole(**source, 3), IsOkAndHolds("abc"));
  } else {
    EXPECT_THAT(ReadWhole(**source, 3),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("a")));
  }
}

TEST_P(StoreContractTest, AWriteReplacesTheWholeFileAtCloseAndNotBefore) {
  const std::string name = Put("a", "before");
  {
    const absl::StatusOr<std::unique_ptr<ByteSink>> given_up = CreateStored(name);
    ASSERT_THAT(given_up, IsOk());
    ASSERT_THAT((*given_up)->Append("half"), IsOk());
  }
  EXPECT_THAT(GetStored(name, 100), IsOkAndHolds("before"));
  const absl::StatusOr<std::unique_ptr<ByteSink>> sink = CreateStored(name);
  ASSERT_THAT(sink, IsOk());
  ASSERT_THAT((*sink)->Append("af"), IsOk());
  ASSERT_THAT((*sink)->Append("ter"), IsOk());
  EXPECT_THAT(GetStored(name, 100), IsOkAndHolds("before"));
  EXPECT_THAT(store().ListFolder(at_), IsOkAndHolds(ElementsAre(name)));
  EXPECT_THAT((*sink)->Close(), IsOk());
  EXPECT_THAT(GetStored(name, 100), IsOkAndHolds("after"));
  EXPECT_THAT((*sink)->Close(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("")));
}

TEST_P(StoreContractTest, GetStoredRefusesAFileAboveTheByteBound) {
  const std::string name = Put("a", "12345");
  EXPECT_THAT(GetStored(name, 5), IsOkAndHolds("12345"));
  EXPECT_THAT(GetStored(name, 4),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr(name), HasSubstr("5 bytes, want at most 4"))));
}

TEST_P(StoreContractTest, WhatIsMissingIsNotFoundAndNamed) {
  Put("a", "");
  const std::string name = at_ + "none";
  const auto missing = StatusIs(absl::StatusCode::kNotFound, HasSubstr(name));
  EXPECT_THAT(OpenStored(name), missing);
  EXPECT_THAT(StatStored(name), missing);
  EXPECT_THAT(GetStored(name, 1), missing);
  EXPECT_THAT(ListShards({name}), missing);
  EXPECT_THAT(ListShards({at_ + "a", name + "-*"}), missing);
}

TEST_P(StoreContractTest, DifferentFilesHaveDifferentFullNames) {
  EXPECT_EQ(store().FullName(at_ + "a"), at_ + "a");
  EXPECT_NE(store().FullName(at_ + "a"), store().FullName(at_ + "b"));
}

// All stores except the web's, which cannot list names. tests/core/storage/web tests that store.
std::vector<StoreRow> StoresWithLists() {
  std::vector<StoreRow> rows(StoreTable().begin(), StoreTable().end());
  std::erase_if(rows, [](const StoreRow& row) { return absl::StartsWith(row.scheme, "http"); });
  return rows;
}

std::string NameOf(const testing::TestParamInfo<StoreRow>& info) {
  return std::string(info.param.scheme.empty() ? "local" : info.param.scheme);
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreContractTest, testing::ValuesIn(StoresWithLists()), NameOf);
// A store that implements only the functions for reading.
class ReadOnlyStore final : public Store {
 public:
  absl::StatusOr<std::vector<std::string>> List(const std::string&, NameFilter) const override {
    return std::vector<std::string>();
  }
  bool Takes(const std::string&, const std::string&) const override { return false; }
  absl::StatusOr<std::vector<std::string>> ListFolder(const std::string&) const override {
    return std::vector<std::string>();
  }
  absl::StatusOr<std::unique_ptr<ByteSource>> Open(const std::string&) const override {
    return absl::NotFoundError("empty");
  }
  absl::StatusOr<StoredState> Stat(const std::string&) const override {
    return absl::NotFoundError("empty");
  }
};

TEST(StoreTest, KeepingAFileNeedsWriteIndexOnlyInABucket) {
  for (const char* name : {"a.idx", "/d/a.idx", "mem://d/a.idx", "https://host/a.idx"}) {
    EXPECT_THAT(CheckMayKeep(name, /*write_index=*/false), IsOk()) << name;
  }
  for (const char* name : {"s3://bucket/d/a.idx", "gs://bucket/d/a.idx"}) {
    EXPECT_THAT(CheckMayKeep(name, /*write_index=*/true), IsOk());
    EXPECT_THAT(KeepStored(name, "bytes", /*write_index=*/false),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr(name), HasSubstr("--write-index"),
                               HasSubstr("systole index"), HasSubstr("--index-dir"))));
  }
}

TEST(StoreTest, AReadOnlyStoreRefusesWritesWithTheRemedy) {
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                AllOf(HasSubstr("ro://a.idx"), HasSubstr("--index-dir")));
  EXPECT_THAT(ReadOnlyStore().Create("ro://a.idx"), refused);
  EXPECT_THAT(ReadOnlyStore().Remove("ro://a.idx"), refused);
}

}  // namespace
}  // namespace systole
