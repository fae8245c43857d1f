// Prints the picture of the rooms: draw_rooms >deploy/images/rooms.svg
#include <iostream>

#include "tests/layers/layer_rules.h"
#include "tests/layers/room_picture.h"

int main() {
  std::cout << systole::layers::RoomPicture(systole::layers::SystoleRules());
  return 0;
}
