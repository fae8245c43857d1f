// `systole make-flowers`: a data set for demos and tests, drawn from a seed.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/console/interrupt.h"
#include "client/cli/console/progress_bar.h"
#include "client/cli/console/thread_count.h"
#include "client/cli/flowers/flower_set.h"
#include "core/json/json_writer.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class MakeFlowersCommand final : public Command {
 public:
  std::string name() const override { return "make-flowers"; }
  std::string summary() const override {
    return "Draw five kinds of flowers and write them as JPEG files, a folder for each kind";
  }
  std::string example() const override {
    return "systole make-flowers data/flowers --images 3600 --seed 1";
  }

  void Declare(OptionList& options) override {
    options.Positional("DIR", &dir_, "Folder to make; class folders go into it");
    options.Optional("--images", "N", &images_, "Number of images over all kinds");
    options.Optional("--seed", "S", &seed_, "Another seed draws other flowers");
    options.Optional("--size", "PX", &size_,
                     "The long side of each picture. The short side is three quarters of it. "
                     "Default: many shapes of 160 to 360 pixels");
    options.Optional(
        "--texture", "smooth|photo", &texture_,
        "photo: as fine as photographs, so that a JPEG takes as long to decode as one "
        "of a photograph (some 89 kB at --size 500); smooth: a JPEG of half that size");
    options.Optional("--threads", "N", &threads_, "Threads; 0 = one for each processor");
  }

  absl::Status Run(const Console& console) override {
    SYSTOLE_ASSIGN_OR_RETURN(const int threads, ThreadCount(threads_));
    SYSTOLE_ASSIGN_OR_RETURN(const FlowerStyle style, Style());
    absl::StatusOr<FlowerSet> set;
    std::atomic<int64_t> drawn = 0;
    {
      const InterruptCallback interrupt(console.interrupt, [] {});  // Checked after every image.
      ProgressBar bar(console, {.label = "drawing", .total = images_});
      set = MakeFlowerSet(dir_,
                          {.images = images_, .seed = seed_, .style = style, .threads = threads},
                          [&](int64_t more) {
                            bar.Add(more);
                            drawn += more;
                            return !interrupt.requested();
                          });
    }
    if (absl::IsCancelled(set.status())) {
      return absl::CancelledError(absl::StrCat("interrupted after ", drawn.load(), " of ", images_,
                                               " images; the same command draws them all"));
    }
    SYSTOLE_RETURN_IF_ERROR(set.status());
    if (console.json) {
      JsonWriter json;
      json.BeginObject().Field("dir", dir_).Field("seed", seed_);
      json.Field("images", set->images).Field("bytes", set->bytes).Key("classes").BeginObject();
      for (int k = 0; k < kFlowerKinds; ++k) {
        json.Field(FlowerKindName(static_cast<FlowerKind>(k)), set->images_of_kind[k]);
      }
      console.out << json.EndObject().EndObject().text() << "\n";
      return absl::OkStatus();
    }
    for (int k = 0; k < kFlowerKinds; ++k) {
      console.out << FlowerKindName(static_cast<FlowerKind>(k)) << " " << set->images_of_kind[k]
                  << "\n";
    }
    console.out << set->images << " images, " << set->bytes << " bytes in " << dir_ << "\n";
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<FlowerStyle> Style() const {
    FlowerStyle style = {.photo_texture = texture_ == "photo"};
    if (!style.photo_texture && texture_ != "smooth") {
      return absl::InvalidArgumentError(
          absl::StrCat("--texture ", texture_, ": want smooth or photo"));
    }
    if (!size_.has_value()) return style;
    if (*size_ < kLeastLongSide || *size_ > kMostLongSide) {
      return absl::InvalidArgumentError(absl::StrCat("--size ", *size_, ": want ", kLeastLongSide,
                                                     " to ", kMostLongSide, " pixels"));
    }
    style.long_side = static_cast<int>(*size_);
    return style;
  }

  std::string dir_;
  int64_t images_ = 3600;
  uint64_t seed_ = 1;
  std::optional<int64_t> size_;
  std::string texture_ = "smooth";
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeMakeFlowersCommand() { return std::make_unique<MakeFlowersCommand>(); }

}  // namespace systole
