// Decodes the images of two examples together. This takes less time than decoding one image after
// the other. Each example has a lane of its own. An image must be started before it is added.
//
// To decode an image ahead means to decode rows of it before the caller finishes the example. The
// rows that are not decoded ahead are decoded then.
//
//   Add(0, a)   Add(1, b)   Add(1, c)      an example may have several images
//   Advance() -> 0                         a is decoded ahead as far as possible, b or c in part
//   .. finish the example of lane 0 ..     Clear(0), Add(0, d), Advance(), ..
//
// Which images are decoded together, and how far ahead, changes only the time, not the pixels.
//
// Single-thread. An added image must exist until its lane is cleared.
#ifndef SYSTOLE_CORE_IMAGE_PAIRED_DECODING_H_
#define SYSTOLE_CORE_IMAGE_PAIRED_DECODING_H_

#include <array>
#include <vector>

#include "core/image/image_transformer.h"

namespace systole {

class PairedDecoding {
 public:
  static constexpr int kLanes = 2;

  // Adds an image that was started. Does nothing if no part of the image can be decoded ahead.
  void Add(int lane, ImageTransformer& image);

  // Whether images were added to the lane since Clear(). If so, the caller must finish the lane's
  // example.
  bool waits(int lane) const { return lanes_[static_cast<size_t>(lane)].waits; }

  // Decodes images of both lanes together until one lane has no image that can be decoded further
  // ahead, and returns this lane. If only one lane waits, decodes nothing and returns that lane.
  // REQUIRES: a lane waits.
  int Advance();

  // Empties the lane. Call it when the lane's example is finished or given up.
  void Clear(int lane);

 private:
  struct Lane {
    bool waits = false;
    std::vector<ImageTransformer*> images;  // Images that can be decoded further ahead.
  };

  std::array<Lane, kLanes> lanes_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_PAIRED_DECODING_H_
