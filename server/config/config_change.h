// What differs between the config that a server runs with and the config that it has read again.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_CONFIG_CONFIG_CHANGE_H_
#define SYSTOLE_SERVER_CONFIG_CONFIG_CHANGE_H_

#include <string>
#include <vector>

#include "systole/v1/config.pb.h"

namespace systole {

struct ConfigChange {
  // Datasets that only the new config has.
  std::vector<v1::DatasetConfig> added;
  // Names of datasets that only the old config has.
  std::vector<std::string> removed;
  // Names of datasets that both configs have, but with different settings (shards, compression,
  // expectations or columns).
  std::vector<std::string> changed;
  // Whether `access` differs in a part that a running server can change.
  bool access = false;
  // The other fields that differ, as a config file names them. A running server cannot change them.
  std::vector<std::string> fixed;
};

// Both configs are complete (CompleteConfig), and neither has two datasets of one name.
ConfigChange ChangeOf(const v1::ServerConfig& before, const v1::ServerConfig& now);

}  // namespace systole

#endif  // SYSTOLE_SERVER_CONFIG_CONFIG_CHANGE_H_
