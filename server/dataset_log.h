// Lines of the log about datasets that a server begins to serve, or refuses.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_DATASET_LOG_H_
#define SYSTOLE_SERVER_DATASET_LOG_H_

#include <string>

#include "core/dataset/dataset.h"
#include "core/log/event_log.h"
#include "server/rpc/catalogue.h"

namespace systole {

// What the dataset holds, what its shards' indexes noted, and its first damaged records.
void LogServed(const Dataset& dataset, EventLog& events);

void LogRefused(const std::string& name, const Refusal& refusal, EventLog& events);

}  // namespace systole

#endif  // SYSTOLE_SERVER_DATASET_LOG_H_
