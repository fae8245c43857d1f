#include "server/rpc/catalogue.h"

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/interrupt/interrupt.h"
#include "core/record/tfrecord/tfrecord_shard.h"
#include "core/storage/stores/stored_file.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/server/rpc/test_catalogue.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;

std::string GoodShard() { return ShardBuilder().Add("abc").Add("defg").Build(); }

Catalogue MustOpen(const std::string& text) {
  v1::ServerConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config));
  absl::StatusOr<Catalogue> catalogue = Catalogue::Open(config, {});
  EXPECT_THAT(catalogue, IsOk());
  return *std::move(catalogue);
}

std::string DatasetText(const std::string& name, const std::string& pattern) {
  return absl::StrCat("datasets { name: '", name, "' shards: '", pattern, "' } ");
}

TEST(CatalogueTest, ShardsMayLieInTheMemoryOfTheProcess) {
  ASSERT_THAT(PutStored("mem://catalogue/a", GoodShard()), IsOk());
  const Catalogue catalogue = MustOpen(
      absl::StrCat(DatasetText("good", "mem://catalogue/*"), DatasetText("away", "ftp://b/a")));
  ASSERT_THAT(FindIn(catalogue, "good"), IsOk());
  EXPECT_EQ((*FindIn(catalogue, "good"))->num_records(), 2);
  EXPECT_THAT(catalogue.refused(), ElementsAre(Key("away")));
}

TEST(CatalogueTest, OneBadDatasetDoesNotKeepTheOthersFromBeingServed) {
  const TempFolder folder;
  folder.Write("good.tfrecord", GoodShard());
  folder.Write("packed-0.tfrecord", GoodShard());
  folder.Write("packed-1.tfrecord", "\x1f\x8b\x08 the rest of a gzip file");
  folder.Write("daisy.jpg", "\xff\xd8\xff\xe0 the rest of a JPEG file");
  folder.Write("cut.tfrecord", GoodShard().substr(0, 10));
  const Catalogue catalogue = MustOpen(absl::StrCat(
      DatasetText("good", folder / "good.tfrecord"), DatasetText("packed", folder / "packed-*"),
      DatasetText("cut", folder / "cut*"), DatasetText("images", folder / "*.jpg"),
      DatasetText("nothing", folder / "nothing*")));
  EXPECT_THAT(catalogue.CheckServes(), IsOk());
  EXPECT_THAT(catalogue.datasets(), ElementsAre(Key("good")));
  EXPECT_THAT(catalogue.refused(),
              ElementsAre(Key("cut"), Key("images"), Key("nothing"), Key("packed")));
  EXPECT_THAT(FindIn(catalogue, "good"), IsOk());
  const auto refused = [](const std::string& what) {
    return StatusIs(absl::StatusCode::kFailedPrecondition,
                    AllOf(HasSubstr("does not serve"), HasSubstr(what), Not(HasSubstr("/"))));
  };
  EXPECT_THAT(FindIn(catalogue, "packed"), refused("\"packed-1.tfrecord\""));
  EXPECT_THAT(FindIn(catalogue, "packed"), refused("does not begin as gzip does"));
  EXPECT_THAT(
      FindIn(catalogue, "images"),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("does not serve"), HasSubstr("/daisy.jpg\""),
                     HasSubstr("none of the 1 image files"), Not(HasSubstr(folder.path())))));
  EXPECT_THAT(FindIn(catalogue, "cut"), refused("cut short"));
  EXPECT_THAT(FindIn(catalogue, "nothing"), refused("no file matches"));
  EXPECT_THAT(catalogue.refused().find("nothing")->second.status.message(),
              HasSubstr(folder / "nothing*"))
      << "the server's operator must see the pattern";
}

TEST(CatalogueTest, ErrorsOfUnreadableDatasetsShowFoldersOnlyToTheOperator) {
  const TempFolder folder;
  folder.Write("good.tfrecord", GoodShard());
  // A link to itself cannot be opened, not even by root.
  ASSERT_EQ(symlink("odd.tfrecord", (folder / "odd.tfrecord").c_str()), 0);
  std::filesystem::create_directories(folder / "deep/inner");
  const Catalogue catalogue = MustOpen(absl::StrCat(
      DatasetText("good", folder / "good.tfrecord"), DatasetText("folder", folder / "deep"),
      DatasetText("missing", folder / "missing/*"), DatasetText("odd", folder / "odd.tfrecord")));
  ASSERT_THAT(catalogue.refused(), ElementsAre(Key("folder"), Key("missing"), Key("odd")));
  for (const auto& [name, refusal] : catalogue.refused()) {
    EXPECT_THAT(refusal.status.message(), HasSubstr(folder.path()));
    EXPECT_THAT(FindIn(catalogue, name),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr("does not serve"), Not(HasSubstr(folder.path())))));
  }
}

TEST(CatalogueTest, CheckServesFailsIfEveryDatasetWasRefused) {
  const TempFolder folder;
  folder.Write("packed.tfrecord", "\xff\xd8\xff\xe0 and so on");
  EXPECT_THAT(MustOpen(DatasetText("raw", folder / "packed.tfrecord")).CheckServes(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'raw'"), HasSubstr("JPEG"), HasSubstr(folder.path()))));
  EXPECT_THAT(MustOpen(DatasetText("raw", folder / "none*")).CheckServes(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder / "none*")));
  EXPECT_THAT(MustOpen(absl::StrCat(DatasetText("b", folder / "none*"),
                                    DatasetText("a", folder / "packed.tfrecord")))
                  .CheckServes(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'a'"), HasSubstr("nor any of 1 others"))));
}

TEST(CatalogueTest, ADatasetWithMissingShardsRecordsOrBytesIsRefusedWithAReason) {
  const TempFolder folder;
  folder.Write("a-0.tfrecord", GoodShard());
  folder.Write("a.manifest",
               "shards { name: 'a-0.tfrecord' records: 2 bytes: 39 } "
               "shards { name: 'a-1.tfrecord' records: 9 bytes: 90 }");
  folder.Write("b-0.tfrecord", GoodShard());
  const auto expecting = [&](const std::string& name, const std::string& what) {
    return absl::StrCat("datasets { name: '", name, "' shards: '", folder / "b-*", "' ", what,
                        "} ");
  };
  const Catalogue catalogue = MustOpen(absl::StrCat(
      DatasetText("lost", folder / "a-*"), expecting("whole", "expect_records: 2 expect_bytes: 39"),
      expecting("fewer", "expect_records: 3"), expecting("shorter", "expect_bytes: 40")));
  EXPECT_THAT(catalogue.datasets(), ElementsAre(Key("whole")));
  const auto refused = [](const std::string& what) {
    return StatusIs(absl::StatusCode::kFailedPrecondition,
                    AllOf(HasSubstr(what), Not(HasSubstr("/"))));
  };
  EXPECT_THAT(FindIn(catalogue, "lost"), refused("shard \"a-1.tfrecord\" is missing"));
  EXPECT_THAT(FindIn(catalogue, "fewer"), refused("have 2 records, expect_records says 3"));
  EXPECT_THAT(FindIn(catalogue, "shorter"), refused("have 39 bytes, expect_bytes says 40"));
}

TEST(CatalogueTest, PartlyDamagedShardsAreServedAndTheirDamageIsListed) {
  const TempFolder folder;
  folder.Write("a-0.tfrecord", "");
  folder.Write("a-1.tfrecord", GoodShard().substr(0, 30));  // Cut in the second record.
  folder.Write("a-2.tfrecord", WithFlippedBit(GoodShard(), 0));
  const Catalogue catalogue = MustOpen(DatasetText("a", folder / "a-*.tfrecord"));
  ASSERT_THAT(FindIn(catalogue, "a"), IsOk());
  const Dataset& dataset = **FindIn(catalogue, "a");
  EXPECT_EQ(dataset.num_damaged_records(), 2);
  const std::vector<DamageLog::Entry> damaged = dataset.DamagedRecords(100);
  ASSERT_EQ(damaged.size(), 2u);
  EXPECT_EQ(damaged[0].shard, "a-1.tfrecord");
  EXPECT_EQ(damaged[0].record, 1);
  EXPECT_EQ(damaged[0].offset, 19);
  EXPECT_EQ(damaged[1].shard, "a-2.tfrecord");
  EXPECT_EQ(damaged[1].record, 2);
  EXPECT_EQ(damaged[1].offset, 0);
  EXPECT_EQ(dataset.DamagedRecords(1).size(), 1u);
}

TEST(CatalogueTest, RefusalsOfDatasetsDoNotShowSecretsInAddresses) {
  const TempFolder folder;
  folder.Write("good.tfrecord", GoodShard());
  // No request is sent, because these web addresses are refused at once.
  const Catalogue catalogue = MustOpen(
      absl::StrCat(DatasetText("good", folder / "good.tfrecord"),
                   DatasetText("password", "https://user:SECRET@host/a.tfrecord"),
                   DatasetText("glob", "https://host/a-*.tfrecord?sig=SECRET"),
                   "datasets { name: 'mixed' shards: '", folder / "good.tfrecord",
                   "' shards: 'HTTPS://host/a?SECRET' }", "datasets { name: 'expecting' shards: '",
                   folder / "good.tfrecord", "' expect_records: 7 }"));
  EXPECT_EQ(catalogue.refused().size(), 4u);
  for (const auto& [name, refusal] : catalogue.refused()) {
    EXPECT_THAT(std::string(refusal.status.message()), Not(HasSubstr("SECRET"))) << name;
    EXPECT_THAT(refusal.reason, Not(HasSubstr("SECRET"))) << name;
  }
  v1::ServerConfig config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      DatasetText("https://user:SECRET@host/a?x", folder / "good.tfrecord"), &config));
  EXPECT_THAT(Catalogue::Open(config, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("dataset name"), Not(HasSubstr("SECRET")))));
}

TEST(CatalogueTest, ErrorsForClientsDoNotShowTheAddressesOfShardServers) {
  StubObjects objects;
  const std::string host = objects.server().Url("");
  const std::string good = objects.Put("/dir/good.tfrecord", GoodShard());
  objects.Put("/dir/packed.tfrecord", "\x1f\x8b\x08 the rest of a gzip file");
  objects.Put("/dir/few.tfrecord", GoodShard());
  objects.SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.target == "/dir/forbidden.tfrecord") return Reply(403, "");
    if (request.target == "/dir/round.tfrecord") {
      return Reply(302, "", {{"Location", request.target}});
    }
    return std::nullopt;
  });
  std::string config;
  for (const char* name : {"forbidden", "round", "missing", "packed"}) {
    absl::StrAppend(&config, "datasets { name: '", name, "' shards: '", good, "' shards: '", host,
                    "/dir/", name, ".tfrecord' } ");
  }
  absl::StrAppend(&config, "datasets { name: 'few' shards: '", host,
                  "/dir/few.tfrecord' expect_records: 7 } ",
                  DatasetText("glob", host + "/dir/a-*.tfrecord"));
  const Catalogue catalogue = MustOpen(config);
  EXPECT_EQ(catalogue.refused().size(), 6u);
  for (const auto& [name, refusal] : catalogue.refused()) {
    for (const std::string& said :
         {refusal.reason, std::string(FindIn(catalogue, name).status().message())}) {
      EXPECT_THAT(said, AllOf(Not(HasSubstr("127.0.0.1")), Not(HasSubstr("dir")))) << name;
    }
    EXPECT_THAT(std::string(refusal.status.message()), HasSubstr("127.0.0.1")) << name;
  }
  EXPECT_THAT(catalogue.refused().find("forbidden")->second.reason,
              AllOf(HasSubstr("\"forbidden.tfrecord\""), HasSubstr("PERMISSION_DENIED")));
  EXPECT_THAT(catalogue.refused().find("few")->second.reason, HasSubstr("expect_records"));
}

InterruptFlag* raised_while_opening = nullptr;
int opened = 0;

// Like the format TFRecord, except that opening a shard raises the interrupt flag.
constexpr ShardFormat kRaising = {.name = "TFRecord",
                                  .begins = nullptr,
                                  .ending = {},
                                  .open = [](ShardFile file, const ShardOptions& options) {
                                    ++opened;
                                    raised_while_opening->Raise();
                                    return TfRecordFormat().open(std::move(file), options);
                                  }};
constexpr const ShardFormat* kFormats[] = {&kRaising};

TEST(CatalogueTest, AnInterruptCancelsOpeningInsteadOfRefusingADataset) {
  const TempFolder folder;
  folder.Write("a.tfrecord", GoodShard());
  v1::ServerConfig config;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat(DatasetText("a", folder / "a.tfrecord"),
                   DatasetText("b", folder / "a.tfrecord")),
      &config));
  InterruptFlag unwanted;
  raised_while_opening = &unwanted;
  const InterruptScope scope(unwanted);
  for (const int expected : {1, 0}) {  // The second Open() begins with a raised flag.
    opened = 0;
    EXPECT_THAT(Catalogue::Open(config, {.formats = kFormats}),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("'a'")));
    EXPECT_EQ(opened, expected);
  }
}

TEST(CatalogueTest, TheErrorForAnUnknownDatasetListsKnownAndSimilarNames) {
  const TempFolder folder;
  folder.Write("a.tfrecord", GoodShard());
  std::string config;
  for (int i = 0; i < 25; ++i) {
    config += DatasetText(absl::StrCat("flowers-", 10 + i), folder / "a.tfrecord");
  }
  const Catalogue catalogue = MustOpen(config);
  EXPECT_THAT(
      FindIn(catalogue, "flower-30"),
      StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr("'flowers-29' and 5 more"),
                                                  HasSubstr("did you mean 'flowers-30'?"))));
  EXPECT_THAT(FindIn(catalogue, std::string(3'000'000, '\n')),
              StatusIs(absl::StatusCode::kNotFound, Not(HasSubstr("\n"))));
  EXPECT_LT(FindIn(catalogue, std::string(3'000'000, 'x')).status().message().size(), 1000u);
}

}  // namespace
}  // namespace systole
