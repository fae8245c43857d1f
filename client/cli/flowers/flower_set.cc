#include "client/cli/flowers/flower_set.h"

#include <atomic>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/flowers/flower_painter.h"
#include "client/texture/photograph_texture.h"
#include "core/concurrency/worker_pool.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/status/status_macros.h"
#include "core/storage/local/file_sink.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostImages = 1'000'000;
constexpr int kSmoothQuality = 90;

FlowerKind KindOf(int64_t number) { return static_cast<FlowerKind>(number % kFlowerKinds); }

std::string FileName(int64_t number) {
  return absl::StrFormat("%s_%06d.jpg", FlowerKindName(KindOf(number)), number);
}

// Makes the folder of one kind. Checks that the folder holds only files of this set and hidden
// files. Removes the unfinished files of an earlier run.
absl::Status PrepareFolder(const fs::path& folder, FlowerKind kind, int64_t images) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot make the folder ", folder.string(), ": ", error.message()));
  }
  std::set<std::string> ours;
  for (int64_t i = static_cast<int64_t>(kind); i < images; i += kFlowerKinds) {
    ours.insert(FileName(i));
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (ours.find(name) == ours.end() && name[0] != '.') {
      return absl::AlreadyExistsError(
          absl::StrCat(folder.string(), " holds ", name,
                       ", which does not belong to this set; give a folder that is new or empty"));
    }
  }
  if (error) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot read the folder ", folder.string(), ": ", error.message()));
  }
  RemoveStaleTemporaries(folder.string(), [&](absl::string_view base_name) {
    return ours.find(std::string(base_name)) != ours.end();
  });
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> MakeFlowerJpeg(uint64_t seed, int64_t number,
                                           const FlowerStyle& style) {
  const FlowerPhoto photo = PaintFlower(KindOf(number), seed, number, style);
  return EncodeJpeg(photo.rgb, photo.width, photo.height, /*channels=*/3,
                    {.quality = style.photo_texture ? kPhotographQuality : kSmoothQuality});
}

absl::StatusOr<FlowerSet> MakeFlowerSet(const std::string& dir, const FlowerSetOptions& options,
                                        absl::FunctionRef<bool(int64_t)> progress) {
  if (options.images < 1 || options.images > kMostImages) {
    return absl::InvalidArgumentError(
        absl::StrCat("--images is ", options.images, ", want 1 to ", kMostImages));
  }
  if (options.threads < 1) return absl::InvalidArgumentError("want at least 1 thread");
  FlowerSet set;
  for (int k = 0; k < kFlowerKinds; ++k) {
    const FlowerKind kind = static_cast<FlowerKind>(k);
    set.images_of_kind[k] = (options.images - k + kFlowerKinds - 1) / kFlowerKinds;
    const fs::path folder = fs::path(dir) / std::string(FlowerKindName(kind));
    SYSTOLE_RETURN_IF_ERROR(PrepareFolder(folder, kind, options.images));
  }

  std::vector<absl::StatusOr<uint64_t>> written(options.images, uint64_t{0});
  std::atomic<bool> stopped = false;
  WorkerPool pool(options.threads);
  ParallelFor(pool, options.images, [&](int64_t number) {
    if (stopped) return;
    const auto paint = [&]() -> absl::StatusOr<uint64_t> {
      SYSTOLE_ASSIGN_OR_RETURN(const std::string jpeg,
                               MakeFlowerJpeg(options.seed, number, options.style));
      const fs::path path =
          fs::path(dir) / std::string(FlowerKindName(KindOf(number))) / FileName(number);
      // The files are not synced to disk: after a power cut they can be made again in seconds.
      SYSTOLE_RETURN_IF_ERROR(WriteFileAtomically(path.string(), jpeg, {.sync = false}));
      return jpeg.size();
    };
    written[number] = paint();
    if (!progress(1)) stopped = true;
  });
  if (stopped) return absl::CancelledError("interrupted");
  for (const absl::StatusOr<uint64_t>& bytes : written) {
    if (!bytes.ok()) return bytes.status();
    set.bytes += *bytes;
  }
  set.images = options.images;
  return set;
}

}  // namespace systole
