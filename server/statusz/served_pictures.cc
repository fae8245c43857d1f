#include "server/statusz/served_pictures.h"

#include <algorithm>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/picture/image_output.h"
#include "core/tensor/dtype.h"

namespace systole {
namespace {

// The first places of `slice` that hold an example: at most `most` places.
std::vector<int64_t> FirstValidSlots(const CoreSlice& slice, int64_t most) {
  const TensorView valid = slice.layout().View(slice.layout().valid_index(), slice.data());
  std::vector<int64_t> slots;
  for (int64_t slot = 0; slot < slice.layout().per_core_batch(); ++slot) {
    if (static_cast<int64_t>(slots.size()) == most) break;
    if (valid.bytes()[static_cast<size_t>(slot)] != 0) slots.push_back(slot);
  }
  return slots;
}

void AddPictures(const CoreSlice& slice, const SliceTensor& tensor, ImageOutput image,
                 absl::string_view output, PictureSheet& sheet) {
  const int64_t pixels =
      std::max<int64_t>(int64_t{image.width()} * image.every() * image.height() * image.every(), 1);
  const int64_t most = std::min<int64_t>(kMaxSheetPictures, kMaxSheetPixels / pixels);
  if (most == 0) {
    sheet.how = absl::StrCat("the images of output '", output, "' are too large to be shown here");
    return;
  }
  const uint8_t* const values = slice.data() + tensor.offset;
  const std::vector<int64_t> slots = FirstValidSlots(slice, most);
  if (slots.empty()) {
    sheet.how = "this part of the step has no example";
    return;
  }
  for (const int64_t slot : slots) image.Widen(values, slot);
  sheet.how = absl::StrCat("output '", output, "', ", image.HowText());
  for (const int64_t slot : slots) {
    absl::StatusOr<ShownPicture> picture = image.Picture(values, slot);
    if (!picture.ok()) continue;
    sheet.pictures.push_back({.jpeg = std::move(picture->jpeg),
                              .width = picture->width,
                              .height = picture->height,
                              .slot = slot});
  }
}

}  // namespace

PictureSheet SheetOf(const FeedPlan& plan, const CoreSlice& slice) {
  PictureSheet sheet = {
      .step = slice.step(), .core = slice.core(), .how = "this feed has no images"};
  for (const v1::Output& output : plan.spec().outputs()) {
    const int index = slice.layout().IndexOf(output.name());
    if (index < 0) continue;
    const SliceTensor& tensor = slice.layout().tensors()[static_cast<size_t>(index)];
    absl::StatusOr<std::optional<ImageOutput>> image =
        ImageOutput::Create(output, tensor, kMaxSheetPictureEdge);
    if (!image.ok() || !image->has_value()) continue;
    AddPictures(slice, tensor, **std::move(image), output.name(), sheet);
    break;
  }
  return sheet;
}

std::shared_ptr<const PictureSheet> ServedPictures::Look() {
  const absl::Duration now = clock_();
  MutexLock lock(mu_);
  if (sheet_ != nullptr && now - made_at_ > kSheetLife) sheet_ = nullptr;
  if (sheet_ == nullptr || now - made_at_ >= kSheetInterval) is_wanted_ = true;
  return sheet_;
}

std::function<void(const CoreSlice&)> ServedPictures::TapOf(std::shared_ptr<const FeedPlan> plan,
                                                            std::vector<std::string> datasets) {
  return [this, plan = std::move(plan), datasets = std::move(datasets)](const CoreSlice& slice) {
    if (!is_wanted_.load(std::memory_order_relaxed) || !is_wanted_.exchange(false)) return;
    PictureSheet sheet = SheetOf(*plan, slice);
    sheet.datasets = datasets;
    Keep(std::move(sheet));
  };
}

void ServedPictures::Keep(PictureSheet sheet) {
  const absl::Duration now = clock_();
  MutexLock lock(mu_);
  sheet.number = ++sheets_;
  sheet_ = std::make_shared<const PictureSheet>(std::move(sheet));
  made_at_ = now;
}

}  // namespace systole
