#include "core/record/zip/zip_format.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/example/example_builder.h"
#include "core/example/tensorflow_example.h"
#include "core/memory/little_endian.h"
#include "core/record/source/record_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string Joined(const std::vector<std::string>& payloads) {
  std::string record(ZipHeaderBytes(payloads.size()), '\0');
  for (size_t i = 0; i < payloads.size(); ++i) {
    StoreU64Le(payloads[i].size(), record.data() + i * 8);
    record += payloads[i];
  }
  return record;
}

ZipFormat FormatOf(std::vector<ZipNamesOfMember> members) {
  std::vector<const ExampleFormat*> formats(members.size(), &TensorFlowExample());
  return {std::move(formats), std::make_shared<const ZipNames>(std::move(members))};
}

// Names and values of the int64 features, in order.
absl::StatusOr<std::vector<std::string>> Decoded(const ZipFormat& format,
                                                 absl::string_view record) {
  MadeText made;
  std::vector<std::string> features;
  const absl::Status status = format.Decode(record, made, [&](const FeatureView& feature) {
    std::vector<int64_t> values(static_cast<size_t>(feature.count()));
    EXPECT_THAT(feature.CopyInt64s(absl::MakeSpan(values)), IsOk());
    features.push_back(absl::StrCat(feature.name(), "=", values[0]));
  });
  if (!status.ok()) return status;
  return features;
}

std::string Numbers(const std::string& name, int64_t value) {
  return ExampleBuilder().AddInt64s(name, {value}).Serialize();
}

TEST(ZipFormatTest, FeaturesOfAllMembersHaveTheirPrefixes) {
  // The name "b/x" is made in advance. The name "b/y" is made for the record.
  const ZipFormat format = FormatOf({{.dataset = "a", .prefix = "", .features = {"x"}},
                                     {.dataset = "b", .prefix = "b/", .features = {"x"}},
                                     {.dataset = "c", .prefix = "c/", .features = {}}});
  const std::string two = ExampleBuilder().AddInt64s("x", {2}).AddInt64s("y", {3}).Serialize();
  EXPECT_THAT(Decoded(format, Joined({Numbers("x", 1), two, Numbers("x", 4)})),
              IsOkAndHolds(ElementsAre("x=1", "b/x=2", "b/y=3", "c/x=4")));
}

TEST(ZipFormatTest, PartSizesThatDoNotMatchTheRecordAreDataLoss) {
  const std::string record = Joined({"abc", "", "de"});
  std::vector<absl::string_view> parts(3);
  ASSERT_THAT(SplitZip(record, absl::MakeSpan(parts)), IsOk());
  EXPECT_THAT(parts, ElementsAre("abc", "", "de"));
  // A record that is cut at any byte is refused. A record with an additional byte is refused, too.
  for (size_t size = 0; size < record.size(); ++size) {
    EXPECT_THAT(SplitZip(record.substr(0, size), absl::MakeSpan(parts)),
                StatusIs(absl::StatusCode::kDataLoss, _))
        << size;
  }
  EXPECT_THAT(SplitZip(record + "f", absl::MakeSpan(parts)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("1 bytes after its parts")));
  // These sizes are wrong, but their sum overflows to the right sum.
  std::string wraps = record;
  StoreU64Le(~uint64_t{0}, wraps.data());
  StoreU64Le(4, wraps.data() + 8);
  EXPECT_THAT(SplitZip(wraps, absl::MakeSpan(parts)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("part 0")));
}

TEST(ZipFormatTest, TheErrorForADamagedPartHasItsDatasetAndItsIndex) {
  const ZipFormat format =
      FormatOf({{.dataset = "photos", .prefix = ""}, {.dataset = "depths", .prefix = "d/"}});
  const auto error = Decoded(format, Joined({Numbers("x", 1), "no example"})).status();
  EXPECT_THAT(error, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the record of 'depths': ")));
  EXPECT_EQ(PartAtFault(error), std::optional<size_t>(1));
  EXPECT_EQ(PartAtFault(absl::DataLossError("x")), std::nullopt);
}

TEST(ZipFormatTest, PrefixedNamesMadePerRecordHaveASizeLimit) {
  const ZipFormat format =
      FormatOf({{.dataset = "a", .prefix = ""}, {.dataset = "b", .prefix = std::string(64, 'p')}});
  const auto many = [](int count) {
    ExampleBuilder builder;
    for (int i = 0; i < count; ++i) builder.AddInt64s(absl::StrCat(i), {1});
    return builder.Serialize();
  };
  const int fit = static_cast<int>(ZipNames::kMaxMadeBytes / (64 + 64 + 5));
  EXPECT_THAT(Decoded(format, Joined({many(1), many(fit)})), IsOkAndHolds(SizeIs(fit + 1)));
  const auto error = Decoded(format, Joined({many(1), many(2 * fit)})).status();
  EXPECT_THAT(error, StatusIs(absl::StatusCode::kDataLoss,
                              AllOf(HasSubstr("'b'"), HasSubstr("prefixed names"))));
  // The names of known features are made in advance, up to kMaxKnownNames. The others are made for
  // each record, and count towards the bound.
  const auto known = [&](size_t count) {
    ZipNamesOfMember member = {.dataset = "b", .prefix = std::string(64, 'p')};
    for (size_t i = 0; i < count; ++i) member.features.push_back(absl::StrCat(i));
    return FormatOf({{.dataset = "a", .prefix = ""}, std::move(member)});
  };
  constexpr int kKnown = static_cast<int>(ZipNames::kMaxKnownNames);
  EXPECT_THAT(Decoded(known(kKnown + fit), Joined({many(1), many(kKnown + fit / 2)})), IsOk());
  EXPECT_THAT(Decoded(known(kKnown + 2 * fit), Joined({many(1), many(kKnown + 2 * fit)})),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("prefixed names")));
  // Without a prefix no name is made.
  EXPECT_THAT(Decoded(format, Joined({many(2 * fit), many(1)})), IsOk());
}

}  // namespace
}  // namespace systole
