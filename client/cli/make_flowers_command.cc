// `systole make-flowers`: a data set for demos and tests, drawn from a seed.

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/flower_set.h"
#include "client/cli/progress_bar.h"
#include "client/cli/thread_count.h"
#include "client/json/json_writer.h"
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
    options.Optional("--images", "N", &images_, "How many, over all kinds");
    options.Optional("--seed", "S", &seed_, "Another seed draws other flowers");
    options.Optional("--threads", "N", &threads_, "Threads; 0 = one for each processor");
  }

  absl::Status Run(const Console& console) override {
    SYSTOLE_ASSIGN_OR_RETURN(const int threads, ThreadCount(threads_));
    absl::StatusOr<FlowerSet> set;
    {
      ProgressBar bar(console.err, console.err_is_terminal, "drawing", images_);
      set = MakeFlowerSet(dir_, {.images = images_, .seed = seed_, .threads = threads},
                          [&](int64_t more) { bar.Add(more); });
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
  std::string dir_;
  int64_t images_ = 3600;
  uint64_t seed_ = 1;
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeMakeFlowersCommand() { return std::make_unique<MakeFlowersCommand>(); }

}  // namespace systole
