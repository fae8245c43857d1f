// Decides which files are images, and makes a list of image files into the records of one shard:
//   /data/flowers/daisy/1.jpg       class "daisy", in the common folder "/data/flowers/"
//   /data/flowers/tulips/1.jpg      class "tulips"
// The class of an image is the name of the folder that the image lies in. All class folders lie in
// one folder, the common folder.
//
// Records are sorted by class, then by the file's base name, both by bytes. In an address of the
// web, class and base name are percent-encoded, and are decoded before they are compared. So the
// order depends neither on the common folder nor on the store.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_IMAGES_IMAGE_GROUP_H_
#define SYSTOLE_CORE_RECORD_IMAGES_IMAGE_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace systole {

// The most files of a group. A local file whose name has 75 bytes takes 0.2 KB of memory, and up to
// 0.4 KB while the group is opened.
inline constexpr size_t kMaxGroupFiles = size_t{1} << 25;
// The most bytes of a file's name, folders included.
inline constexpr size_t kMaxImageNameBytes = 4096;

// Whether the name ends with .jpg, .jpeg or .png, in upper or lower case. In an address, the query
// does not count.
bool HasImageName(absl::string_view name);

struct GroupedImage {
  std::string name;          // The name as it was given.
  uint32_t class_index = 0;  // Index into ImageGroup::classes.
};

struct ImageGroup {
  std::string folder;  // The common folder. It ends with '/'.
  // The query that the addresses of all images have, with its '?'. Such a query may give access to
  // the whole folder, so Beside() puts it into the addresses of other files, too. Empty if the
  // queries differ, because then each query is for one image.
  std::string query;
  std::vector<std::string> classes;  // Decoded, sorted by bytes. Each has an image.
  std::vector<GroupedImage> images;  // In the order of their records.

  // The address of a file in the common folder.
  std::string Beside(absl::string_view base_name) const {
    return absl::StrCat(folder, base_name, query);
  }
};

// The group of the images `names`. They may lie in any store, and each name comes once. If a local
// file has several names, such as "a/1.jpg" and "./a/1.jpg", one of them is kept.
//   InvalidArgument    an image lies in no class folder, class folders lie in different folders, a
//                      name is too long, or a decoded name has a '/' or a zero byte. In a store
//                      that is not local, also if two images have the same class and base name, for
//                      example because their addresses differ only in the query. The message has
//                      only the parts of names that a client may know.
//   ResourceExhausted  too many files.
absl::StatusOr<ImageGroup> GroupImages(std::vector<std::string> names);

// The name of an image in messages and in the index: "rose/1.jpg". Decodes the base name of `name`.
std::string ImageNameInGroup(absl::string_view class_name, absl::string_view name);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_IMAGES_IMAGE_GROUP_H_
