#include "client/cli/pacing/missing_tally.h"

#include "absl/strings/str_cat.h"

namespace systole {
namespace {

// The most records that a sentence names.
constexpr size_t kMostNamed = 10;

}  // namespace

void MissingTally::Add(const FeedClientStats& stats) {
  masked_ += stats.masked_examples;
  padded_ += stats.padded_examples;
  records_.insert(stats.masked_records.begin(), stats.masked_records.end());
}

void MissingTally::Merge(const MissingTally& other) {
  masked_ += other.masked_;
  padded_ += other.padded_;
  records_.insert(other.records_.begin(), other.records_.end());
}

std::string MissingTally::MaskedText() const {
  if (masked_ == 0) return "";
  std::string text =
      absl::StrCat(masked_, masked_ == 1 ? " example is masked" : " examples are masked",
                   ": zeros stand in the place of damaged records, because the spec says "
                   "on_corrupt: MASK");
  size_t named = 0;
  for (const int64_t record : records_) {
    if (named == kMostNamed) {
      text += ", ..";
      break;
    }
    absl::StrAppend(&text, named == 0 ? " (record_id " : ", ", record);
    ++named;
  }
  if (named > 0) text += ")";
  return absl::StrCat(text,
                      ". Each damaged stretch counts as one example, but may have held several "
                      "records; `systole status` and the server's log say where the damage is and "
                      "what it is");
}

std::vector<emulator::Fact> MissingTally::Facts() const {
  return {{"masked_examples", "Masked examples", masked_, emulator::Unit::kCount},
          {"padded_examples", "Places of padding", padded_, emulator::Unit::kCount}};
}

void MissingTally::AppendTo(JsonWriter& json) const {
  emulator::AppendFacts(Facts(), json);
  AppendRecordsTo(json);
}

void MissingTally::AppendRecordsTo(JsonWriter& json) const {
  json.Key("masked_records").BeginArray();
  for (const int64_t record : records_) json.Int(record);
  json.EndArray();
}

}  // namespace systole
