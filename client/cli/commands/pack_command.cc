// `systole pack`: packs images, which lie in a folder for each class, into TFRecord shards.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/console/interrupt.h"
#include "client/cli/console/progress_bar.h"
#include "client/cli/console/thread_count.h"
#include "client/cli/shards/packer.h"
#include "core/interrupt/interrupt.h"
#include "core/json/json_writer.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

std::string ReportAsJson(const PackReport& report) {
  JsonWriter json;
  json.BeginObject().Key("classes").BeginArray();
  for (const std::string& name : report.classes) json.String(name);
  json.EndArray().Field("labels", report.labels_path).Field("manifest", report.manifest_path);
  json.Field("train_images", report.train_images);
  json.Field("validation_images", report.validation_images);
  json.Key("shards").BeginArray();
  for (const ShardCount& shard : report.shards) {
    json.BeginObject().Field("path", shard.path).Field("records", shard.records);
    json.Field("bytes", shard.bytes).EndObject();
  }
  json.EndArray().Key("skipped").BeginArray();
  for (const SkippedFile& file : report.skipped) {
    json.BeginObject().Field("path", file.path).Field("cause", file.cause).EndObject();
  }
  return json.EndArray().EndObject().text();
}

// Which label is which class: "0 daisy, 1 dandelion, ..".
std::string LabelsText(const std::vector<std::string>& classes) {
  constexpr size_t kMostShown = 20;
  std::string text;
  for (size_t label = 0; label < std::min(classes.size(), kMostShown); ++label) {
    absl::StrAppend(&text, label == 0 ? "" : ", ", label, " ", ForeignName(classes[label]));
  }
  return classes.size() > kMostShown ? text + ", .." : text;
}

absl::StatusOr<Compression> CompressionToWrite(absl::string_view name) {
  const std::optional<Compression> named = CompressionNamed(name);
  if (named.has_value() && *named != Compression::kDetect) return *named;
  return absl::InvalidArgumentError(
      absl::StrCat("--compression is \"", ForeignText(name), "\", want none, gzip, zlib or zstd"));
}

class PackCommand final : public Command {
 public:
  std::string name() const override { return "pack"; }
  std::string summary() const override {
    return "Pack images, one folder for each class, into TFRecord shards";
  }
  std::string example() const override {
    return "systole pack data/flowers data/packed/flowers --shards 16 --validation 0.2";
  }

  void Declare(OptionList& options) override {
    options.Positional("IMAGES", &images_,
                       "JPEGs and PNGs, here or in a bucket: a folder, IMAGES/CLASS/IMAGE.jpg; a "
                       "quoted pattern, 's3://bucket/flowers/*/*.jpg'; or @FILE, a file of names. "
                       "Labels count the sorted classes from 0");
    options.Positional("OUT_PREFIX", &out_prefix_,
                       "Shards are OUT_PREFIX-train-00000-of-00016.tfrecord and so on. A path, "
                       "s3://BUCKET/PREFIX or gs://BUCKET/PREFIX");
    options.Required("--shards", "N", &shards_, "Train shards");
    options.Optional("--resize-short", "PX", &options_.resize_short,
                     "If an image's short side has more than PX pixels, shrink the image until "
                     "that side has PX, and store it as a JPEG");
    options.Optional("--quality", "Q", &options_.quality,
                     "Re-encode every image as JPEG at this quality, 1 to 100");
    options.Flag("--raw", &options_.raw, "Store pixels, [height, width, 3] uint8, not files");
    options.Optional("--validation", "FRACTION", &options_.plan.validation,
                     "Part of each class that goes to validation shards");
    options.Optional("--seed", "S", &options_.plan.seed, "Seed of the split and of the order");
    options.Optional("--compression", "KIND", &compression_,
                     "Compress each shard: zstd, gzip or zlib; gains little on JPEG");
    options.Flag("--skip-bad", &options_.skip_bad,
                 "Leave out files that are not whole JPEGs or PNGs, and list them");
    options.Optional("--threads", "N", &threads_,
                     "Threads; 0 = one for each processor. More threads hide a bucket's delay");
  }

  absl::Status Run(const Console& console) override {
    SYSTOLE_ASSIGN_OR_RETURN(options_.threads, ThreadCount(threads_));
    options_.plan.shards = shards_;
    SYSTOLE_ASSIGN_OR_RETURN(options_.compression, CompressionToWrite(compression_));
    absl::StatusOr<PackReport> report;
    {
      InterruptFlag unwanted;  // Through `scope`, also ends waits between two files.
      const InterruptCallback interrupt(console.interrupt, [&unwanted] { unwanted.Raise(); });
      const InterruptScope scope(unwanted);
      std::optional<ProgressBar> bar;
      report = Pack(images_, out_prefix_, options_,
                    {.begins =
                         [&](absl::string_view pass, int64_t files) {
                           bar.reset();  // Clears the old bar before the new one is drawn.
                           bar.emplace(console, ProgressBarOptions{.label = std::string(pass),
                                                                   .total = files});
                         },
                     .done =
                         [&](int64_t files) {
                           bar->Add(files);
                           return !unwanted.is_raised();
                         }});
    }
    SYSTOLE_RETURN_IF_ERROR(report.status());
    if (console.json) {
      console.out << ReportAsJson(*report) << "\n";
      return absl::OkStatus();
    }
    for (const ShardCount& shard : report->shards) {
      console.out << shard.path << "  " << shard.records << " records  " << shard.bytes
                  << " bytes\n";
    }
    for (const SkippedFile& file : report->skipped) {
      console.out << "skipped " << file.path << ": " << file.cause << "\n";
    }
    console.out << report->labels_path << "  " << LabelsText(report->classes) << "\n";
    console.out << report->manifest_path << "  the records and bytes of each shard\n";
    console.out << report->classes.size() << " classes, " << report->train_images
                << " train images, " << report->validation_images << " validation images\n";
    return absl::OkStatus();
  }

 private:
  std::string images_;
  std::string out_prefix_;
  int64_t shards_ = 0;
  int64_t threads_ = 0;
  std::string compression_ = "none";
  PackOptions options_;
};

}  // namespace

std::unique_ptr<Command> MakePackCommand() { return std::make_unique<PackCommand>(); }

}  // namespace systole
