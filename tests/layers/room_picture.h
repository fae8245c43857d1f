// Draws the rooms, which are the folders of layer_rules.cc, as a picture (SVG). The picture has a
// box for each room and a row for each level, with the lowest level at the bottom. An example is
// deploy/images/rooms.svg.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_LAYERS_ROOM_PICTURE_H_
#define SYSTOLE_TESTS_LAYERS_ROOM_PICTURE_H_

#include <string>

#include "tests/layers/layer_rules.h"

namespace systole::layers {

std::string RoomPicture(const LayerRules& rules);

}  // namespace systole::layers

#endif  // SYSTOLE_TESTS_LAYERS_ROOM_PICTURE_H_
