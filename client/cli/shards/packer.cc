#include "client/cli/shards/packer.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/shards/image_shrinker.h"
#include "client/cli/shards/image_tree.h"
#include "client/cli/shards/pack_output.h"
#include "client/shard_set/shard_set.h"
#include "core/image/jpeg/jpeg_decoder.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/image/png/png_decoder.h"
#include "core/interrupt/interrupt.h"
#include "core/record/each_shard.h"
#include "core/record/images/class_labels.h"
#include "core/record/images/image_record.h"
#include "core/record/source/record_source.h"
#include "core/record/tfrecord/record_writer.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/stored_file.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

constexpr int kColourChannels = 3;
constexpr int kDefaultQuality = 90;
constexpr int64_t kLargestShortSide = 16384;  // The resizer's limit.

absl::Status CheckOptions(const PackOptions& options) {
  if (options.resize_short.has_value() &&
      (*options.resize_short < 1 || *options.resize_short > kLargestShortSide)) {
    return absl::InvalidArgumentError(absl::StrCat("--resize-short is ", *options.resize_short,
                                                   ", want 1 to ", kLargestShortSide, " pixels"));
  }
  if (options.quality.has_value() && (*options.quality < 1 || *options.quality > 100)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--quality is ", *options.quality, ", want 1 to 100"));
  }
  if (options.raw && options.quality.has_value()) {
    return absl::InvalidArgumentError("--raw stores pixels and has no --quality; give one of them");
  }
  if (options.threads < 1) return absl::InvalidArgumentError("want at least 1 thread");
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  return GetStored(path, kDefaultMaxRecordBytes);
}

struct DecodedImage {
  int stored_channels = 0;  // Channels in the file: 1 or 3.
  RgbImage image;
};

absl::StatusOr<DecodedImage> DecodeWholePng(absl::string_view png) {
  SYSTOLE_ASSIGN_OR_RETURN(const PngInfo info, ReadPngHeader(png, kColourChannels));
  DecodedImage decoded{info.is_grey ? 1 : kColourChannels, {info.width, info.height, {}}};
  decoded.image.pixels.resize(static_cast<size_t>(info.width) * info.height * kColourChannels);
  SYSTOLE_RETURN_IF_ERROR(DecodePng(png, kColourChannels, absl::MakeSpan(decoded.image.pixels)));
  return decoded;
}

absl::StatusOr<DecodedImage> DecodeWhole(JpegDecoder& decoder, absl::string_view file) {
  if (LooksLikePng(file)) return DecodeWholePng(file);
  SYSTOLE_ASSIGN_OR_RETURN(const ImageInfo info, decoder.ReadHeader(file));
  DecodedImage decoded{info.components == 1 ? 1 : kColourChannels, {info.width, info.height, {}}};
  decoded.image.pixels.resize(static_cast<size_t>(info.width) * info.height * kColourChannels);
  SYSTOLE_RETURN_IF_ERROR(
      decoder.Decode(WholeImage(info.height, info.width), absl::MakeSpan(decoded.image.pixels)));
  return decoded;
}

// `error` with the name of the file.
absl::Status AboutFile(const ImageFile& file, const absl::Status& error) {
  return absl::Status(error.code(),
                      absl::StrCat(ForeignText(ShownName(file.path)), ": ", error.message()));
}

// Returns whether `error` is about the file `path`, and not about its store. `error` comes from
// reading this file. If the file is on a server, only the error that the file is too large is
// certain to be about the file.
bool IsOfFileAlone(const absl::Status& error, const std::string& path) {
  return IsOnServer(path) ? absl::IsResourceExhausted(error) : !IsOutage(error);
}

// Returns why the file cannot be packed; empty if it can be. Returns an error if the content of the
// file could not be checked.
absl::StatusOr<std::string> CheckFile(const ImageFile& file) {
  SYSTOLE_ASSIGN_OR_RETURN(JpegDecoder decoder, JpegDecoder::Create());
  const absl::StatusOr<std::string> bytes = ReadFile(file.path);
  absl::Status wrong = bytes.status();
  bool is_bad = IsOfFileAlone(wrong, file.path);
  if (bytes.ok()) {
    wrong = DecodeWhole(decoder, *bytes).status();
    is_bad = !absl::IsUnavailable(wrong) && !absl::IsCancelled(wrong);  // Unavailable: no memory.
  }
  if (wrong.ok()) return std::string();
  if (!is_bad) return AboutFile(file, wrong);
  return wrong.message().empty() ? wrong.ToString() : std::string(wrong.message());
}

absl::StatusOr<std::string> MakeRecord(JpegDecoder& decoder, const ImageFile& file,
                                       absl::string_view class_name, const PackOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(std::string stored, ReadFile(file.path));
  SYSTOLE_ASSIGN_OR_RETURN(DecodedImage decoded, DecodeWhole(decoder, stored));
  RgbImage& image = decoded.image;
  int channels = decoded.stored_channels;
  bool shrunk = false;
  if (options.resize_short.has_value()) {
    shrunk = std::min(image.width, image.height) > *options.resize_short;
    SYSTOLE_ASSIGN_OR_RETURN(
        image, ShrinkShortSide(std::move(image), static_cast<int>(*options.resize_short)));
  }
  if (options.raw) {
    channels = kColourChannels;
    stored.assign(image.pixels.begin(), image.pixels.end());
  } else if (shrunk || options.quality.has_value()) {
    channels = kColourChannels;
    const int quality = static_cast<int>(options.quality.value_or(kDefaultQuality));
    SYSTOLE_ASSIGN_OR_RETURN(stored, EncodeJpeg(image.pixels, image.width, image.height,
                                                kColourChannels, {.quality = quality}));
  }
  return ImageRecord(stored, {.name = std::string(class_name), .label = file.label},
                     {.height = image.height, .width = image.width, .channels = channels});
}

std::vector<int64_t> Labels(const ImageTree& tree) {
  std::vector<int64_t> labels;
  labels.reserve(tree.files.size());
  for (const ImageFile& file : tree.files) labels.push_back(file.label);
  return labels;
}

struct ShardJob {
  std::string path;
  std::vector<int64_t> images;
};

std::vector<ShardJob> ShardJobs(const PackPlan& plan, const std::string& prefix) {
  std::vector<ShardJob> jobs;
  const auto add = [&](const std::vector<std::vector<int64_t>>& shards, const char* split) {
    for (size_t i = 0; i < shards.size(); ++i) {
      jobs.push_back({ShardPath(prefix, split, i, shards.size()), shards[i]});
    }
  };
  add(plan.train, "train");
  add(plan.validation, "validation");
  return jobs;
}

// One pass over the files. Reports progress to the observer, and remembers whether to stop.
class Pass {
 public:
  Pass(const PackObserver& observer, absl::string_view name, int64_t files) : observer_(observer) {
    observer_.begins(name, files);
  }

  // Returns Cancelled once PackObserver::done has returned false.
  absl::Status Done(int64_t files) {
    if (!observer_.done(files)) stopped_ = true;
    return stopped_ ? absl::CancelledError("interrupted") : absl::OkStatus();
  }

 private:
  const PackObserver& observer_;
  std::atomic<bool> stopped_ = false;
};

// Writes one shard. Sets `shard.path` if the shard's file may exist. If there is no error, also
// sets the numbers in `shard`.
absl::Status WriteShard(const PackOutput& output, const ShardJob& job, const ImageTree& tree,
                        const PackOptions& options, Pass& pass, ShardCount& shard) {
  SYSTOLE_ASSIGN_OR_RETURN(JpegDecoder decoder, JpegDecoder::Create());
  SYSTOLE_ASSIGN_OR_RETURN(RecordWriter writer, output.CreateShard(job.path, options.compression));
  for (const int64_t i : job.images) {
    const ImageFile& file = tree.files[i];
    absl::StatusOr<std::string> record =
        MakeRecord(decoder, file, tree.classes[file.label], options);
    // In the first pass this file was whole. Since then it was replaced, or its store failed.
    if (!record.ok()) return AboutFile(file, record.status());
    SYSTOLE_RETURN_IF_ERROR(writer.Write(*record));
    SYSTOLE_RETURN_IF_ERROR(pass.Done(1));
  }
  const absl::Status closed = writer.Close();
  if (ShardSet::MayBeThere(closed)) shard.path = job.path;
  SYSTOLE_RETURN_IF_ERROR(closed);
  SYSTOLE_ASSIGN_OR_RETURN(const StoredState file, StatStored(job.path));
  shard.records = writer.num_records();
  shard.bytes = file.size_bytes;
  return absl::OkStatus();
}

// Writes all shards. Returns the first error, and begins no shard after it. Adds to `shards` every
// shard whose file may exist.
absl::Status WriteShards(const PackOutput& output, const std::vector<ShardJob>& jobs,
                         const ImageTree& tree, const PackOptions& options,
                         const PackObserver& observer, std::vector<ShardCount>& shards) {
  Pass pass(observer, "packing", static_cast<int64_t>(tree.files.size()));
  std::vector<ShardCount> begun(jobs.size());
  const absl::Status written = ForEachShard(
      static_cast<int64_t>(jobs.size()), options.threads,
      [&](int64_t i) { return WriteShard(output, jobs[i], tree, options, pass, begun[i]); });
  for (ShardCount& shard : begun) {
    if (!shard.path.empty()) shards.push_back(std::move(shard));
  }
  return written;
}

// Takes the files that are not whole JPEGs or PNGs out of `tree`.
absl::Status TakeOutBadFiles(const PackOptions& options, const PackObserver& observer,
                             ImageTree& tree, std::vector<SkippedFile>& skipped) {
  const int64_t count = static_cast<int64_t>(tree.files.size());
  Pass pass(observer, "checking", count);
  std::vector<std::string> causes(count);
  SYSTOLE_RETURN_IF_ERROR(ForEachShard(count, options.threads, [&](int64_t i) -> absl::Status {
    SYSTOLE_ASSIGN_OR_RETURN(causes[i], CheckFile(tree.files[i]));
    return pass.Done(1);
  }));
  std::vector<ImageFile> good;
  for (int64_t i = 0; i < count; ++i) {
    if (causes[i].empty()) {
      good.push_back(tree.files[i]);
    } else {
      skipped.push_back({ForeignText(ShownName(tree.files[i].path)), std::move(causes[i])});
    }
  }
  if (!skipped.empty() && (!options.skip_bad || good.empty())) {
    return absl::DataLossError(absl::StrCat(skipped.size(), " of ", count,
                                            " files are not whole JPEGs or PNGs, the first is ",
                                            skipped.front().path, ": ", skipped.front().cause,
                                            good.empty() ? "" : "; --skip-bad leaves them out"));
  }
  tree.files = std::move(good);
  return absl::OkStatus();
}

// Packs the images. After an error, the caller removes what was written.
absl::Status PackInto(PackOutput& output, const std::string& images, const std::string& out_prefix,
                      const PackOptions& options, const PackObserver& observer,
                      PackReport& report) {
  SYSTOLE_ASSIGN_OR_RETURN(ImageTree tree, ListImages(images));
  // Plans once before the files are read, so that wrong options are found early.
  SYSTOLE_RETURN_IF_ERROR(PlanPack(Labels(tree), options.plan).status());
  SYSTOLE_ASSIGN_OR_RETURN(const std::string labels, LabelsText(tree.classes));
  SYSTOLE_RETURN_IF_ERROR(output.BeginWith(labels));
  SYSTOLE_RETURN_IF_ERROR(TakeOutBadFiles(options, observer, tree, report.skipped));
  SYSTOLE_ASSIGN_OR_RETURN(const PackPlan plan, PlanPack(Labels(tree), options.plan));
  const std::vector<ShardJob> jobs = ShardJobs(plan, out_prefix);
  std::vector<std::string> paths;
  for (const ShardJob& job : jobs) paths.push_back(job.path);
  SYSTOLE_RETURN_IF_ERROR(output.MakeRoomFor(paths));
  SYSTOLE_RETURN_IF_ERROR(WriteShards(output, jobs, tree, options, observer, report.shards));
  for (const auto& shard : plan.train) report.train_images += shard.size();
  for (const auto& shard : plan.validation) report.validation_images += shard.size();
  report.classes = std::move(tree.classes);
  return output.Finish(report.shards);
}

}  // namespace

absl::StatusOr<PackReport> Pack(const std::string& images, const std::string& out_prefix,
                                const PackOptions& options, const PackObserver& observer) {
  SYSTOLE_RETURN_IF_ERROR(CheckOptions(options));
  SYSTOLE_ASSIGN_OR_RETURN(PackOutput output, PackOutput::Create(out_prefix));
  PackReport report;
  absl::Status packed = PackInto(output, images, out_prefix, options, observer, report);
  if (!packed.ok()) {
    // After an interruption `packed` may be any error.
    if (InterruptRequested()) packed = absl::CancelledError("interrupted");
    return output.Undo(packed, report.shards);
  }
  report.labels_path = output.labels_path();
  report.manifest_path = output.manifest_path();
  return report;
}

}  // namespace systole
