#include "tests/chaos/fair_share.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"

namespace systole {
namespace {

// Beside a crowd, a feed must reach at least this fraction of the rate that it reaches beside
// honest readers.
constexpr double kRateKept = 0.5;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

v1::FeedSpec FairShareTest::Spec() {
  v1::FeedSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(ChaosSpec(), &spec));
  return spec;
}

double FairShareTest::StepsPerSecond() {
  proxy(0).Set({.bytes_per_second = 100'000'000});
  const Finished finished = RunSystole({"feed", "--server", Servers(), "--spec", spec_path_,
                                        "--steps", "40", "--json", "--connect-timeout", "300"});
  proxy(0).Set({});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  return JsonNumber(finished.out, "steps_per_second");
}

void FairShareTest::CompareRates(const std::vector<double>& disturbed,
                                 const std::vector<double>& beside_honest, int honest) {
  const std::string rates = absl::StrCat(Median(disturbed), " steps/s beside the crowd, ",
                                         Median(beside_honest), " beside ", honest, " honest");
  GTEST_LOG_(INFO) << rates;
  EXPECT_GE(Median(disturbed), kRateKept * Median(beside_honest)) << rates;
}

}  // namespace systole
