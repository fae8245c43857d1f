// Patterns for a store without folders, whose objects have names with '/' in them. Store::List()
// says what a pattern is.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_STORAGE_OBJECT_NAMES_H_
#define SYSTOLE_CORE_STORAGE_OBJECT_NAMES_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/storage/store.h"

namespace systole {

// The names of objects: URLs. A name that ends with '/' is not an object, but a folder, which may
// be empty.
using ObjectNames = std::set<std::string>;

// Store::List() over these objects. The parts of a name before its last '/' are folders, as on a
// disk.
absl::StatusOr<std::vector<std::string>> ListObjects(const ObjectNames& objects,
                                                     const std::string& pattern,
                                                     Store::NameFilter wanted);

// Store::Takes() over these objects.
bool TakesObject(const ObjectNames& objects, const std::string& pattern, const std::string& name);

// Store::ListFolder() over these objects. The result has objects and folders.
std::vector<std::string> ObjectsIn(const ObjectNames& objects, const std::string& folder);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_OBJECT_NAMES_H_
