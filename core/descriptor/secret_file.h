// Who may read a file that holds a secret, such as a private key.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_DESCRIPTOR_SECRET_FILE_H_
#define SYSTOLE_CORE_DESCRIPTOR_SECRET_FILE_H_

#include <sys/stat.h>
#include <sys/types.h>

namespace systole {

// Whether users other than `reader`, the user of this process, may use the secret in `file`. False
// if root owns the file and only the file's group may read it: root gave the file to this group,
// because `reader` could not read it otherwise. Kubernetes mounts a secret in this way for a pod
// that does not run as root (fsGroup), and Debian keeps keys for its services in this way.
inline bool OthersMayUse(const struct stat& file, uid_t reader) {
  const mode_t by_others = file.st_mode & (S_IRWXG | S_IRWXO);
  if (by_others == 0) return false;
  return by_others != S_IRGRP || file.st_uid != 0 || reader == 0;
}

}  // namespace systole

#endif  // SYSTOLE_CORE_DESCRIPTOR_SECRET_FILE_H_
