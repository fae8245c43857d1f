// A folder tree of images, one folder for each class, as image data sets are handed around:
//   flower_photos/LICENSE.txt                 ignored: not in a class folder
//   flower_photos/daisy/100080576_f52e8ee070_n.jpg
//   flower_photos/tulips/100930342_92e8746431_n.jpg
//
// Thread-compatible: a value.
#ifndef SYSTOLE_CLIENT_CLI_IMAGE_TREE_H_
#define SYSTOLE_CLIENT_CLI_IMAGE_TREE_H_

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

// Lists the tree at `root`: what lies directly in its folders, links followed. Names that begin
// with a dot are left out, and so are files beside the class folders. An empty class folder is a
// class.
//   NotFound          no folder `root`, no class folder in it, or no file in any of them.
//   InvalidArgument   a class folder holds a folder: a tree of another kind.
//   PermissionDenied  a folder cannot be read.
absl::StatusOr<ImageTree> ListImageTree(const std::string& root);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_IMAGE_TREE_H_
