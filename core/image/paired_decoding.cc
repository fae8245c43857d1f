#include "core/image/paired_decoding.h"

#include "core/status/check.h"

namespace systole {

void PairedDecoding::Add(int lane, ImageTransformer& image) {
  if (image.is_ahead()) return;
  Lane& to = lanes_[static_cast<size_t>(lane)];
  to.waits = true;
  to.images.push_back(&image);
}

void PairedDecoding::Clear(int lane) {
  Lane& cleared = lanes_[static_cast<size_t>(lane)];
  cleared.waits = false;
  cleared.images.clear();
}

int PairedDecoding::Advance() {
  SYSTOLE_CHECK(waits(0) || waits(1));
  if (!waits(1)) return 0;
  if (!waits(0)) return 1;
  auto& [a, b] = lanes_;
  while (!a.images.empty() && !b.images.empty()) {
    ImageTransformer::DecodeAhead(*a.images.back(), *b.images.back());
    for (Lane& lane : lanes_) {
      if (lane.images.back()->is_ahead()) lane.images.pop_back();
    }
  }
  return a.images.empty() ? 0 : 1;
}

}  // namespace systole
