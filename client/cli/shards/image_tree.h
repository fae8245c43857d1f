// Lists a folder tree of images with one folder for each class, the usual form of image data sets:
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
  std::string path;   // Root included.
  int64_t label = 0;  // Index into ImageTree::classes.
};

struct ImageTree {
  std::vector<std::string> classes;  // Folder names, sorted by bytes.
  std::vector<ImageFile> files;      // Sorted by label, then file name. Not opened yet.
};

// Lists the tree at `root`: the files directly in its class folders. Links are followed. Names that
// begin with a dot and files beside the class folders are left out. An empty class folder is a
// class too.
//   NotFound          no folder `root`, no class folder in it, or no file in any of them.
//   InvalidArgument   a class folder holds a folder, so the tree is of another kind.
//   PermissionDenied  a folder cannot be read.
absl::StatusOr<ImageTree> ListImageTree(const std::string& root);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_SHARDS_IMAGE_TREE_H_
