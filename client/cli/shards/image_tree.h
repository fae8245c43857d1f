// Lists images that lie in a folder for each class, the usual form of image data sets:
//   flower_photos/LICENSE.txt                 ignored: not in a class folder
//   flower_photos/daisy/100080576_f52e8ee070_n.jpg
//   flower_photos/tulips/100930342_92e8746431_n.jpg
//
// Thread-compatible: a value.
#ifndef SYSTOLE_CLIENT_CLI_SHARDS_IMAGE_TREE_H_
#define SYSTOLE_CLIENT_CLI_SHARDS_IMAGE_TREE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace systole {

struct ImageFile {
  std::string path;   // Includes the root.
  int64_t label = 0;  // Index into ImageTree::classes.
};

struct ImageTree {
  std::vector<std::string> classes;  // Folder names, sorted by bytes.
  std::vector<ImageFile> files;      // Sorted by label, then file name. None has been opened.
};

// Lists the tree at `root`: the files directly in its class folders. Links are followed. Names that
// begin with a dot and files beside the class folders are left out. An empty class folder is a
// class too.
//   NotFound          no folder `root`, no class folder in it, or no file in any of them.
//   InvalidArgument   a class folder holds a folder.
//   PermissionDenied  a folder cannot be read.
absl::StatusOr<ImageTree> ListImageTree(const std::string& root);

// The size limit for the text file of "@FILE" (see below).
inline constexpr uint64_t kMaxImageListBytes = uint64_t{256} << 20;

// Lists the images that `images` names, in any store:
//   DIR            a folder tree of this machine, as ListImageTree() lists it
//   s3://B/DIR     a folder in a bucket, with a folder for each class
//   GLOB           files in folders of their classes: "gs://B/flowers/*/*.jpg"
//   @FILE          a text file; each line has the name of an image, or a glob. Images on https://
//                  need this form, because a web server cannot list them
// For all forms the images are sorted by label, then file name. For the last three forms a folder
// is a class only if it has a file. Errors are those of ListImageTree(), ListShards() and
// GroupImages(), and of reading FILE.
absl::StatusOr<ImageTree> ListImages(const std::string& images);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_SHARDS_IMAGE_TREE_H_
