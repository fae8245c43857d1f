// What one pass over some records of a dataset fetches of its far shards (epoch_bytes.h).
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_PLAN_EPOCH_PARTS_H_
#define SYSTOLE_CORE_PLAN_EPOCH_PARTS_H_

#include <cstdint>

#include "core/dataset/dataset.h"
#include "core/order/mixture.h"

namespace systole {

// Some of a dataset's records: all of them, a selection, or a member of a mixture. All numbers are
// doubles. A double holds every whole number of bytes below 9 PB exactly.
struct EpochPart {
  double positions = 0;    // Records, far or not.
  double records = 0;      // Far records. In a zip, those of all members together.
  double bytes = 0;        // The bytes that one pass over the part fetches.
  double alone = 0;        // Those of `bytes` that are fetched record by record.
  double requests = 0;     // The requests of one pass.
  double held = 0;         // With WINDOW: EpochBytes::held_bytes of this part.
  double border = 0;       // The bytes that two neighbouring blocks of WINDOW both need.
  double passes = 1;       // The passes in an epoch.
  bool by_record = false;  // Whether each far record is fetched by itself.
  double kept = 0;         // Those of `bytes` that are kept once they are fetched.

  // The bytes that an epoch needs; bytes that it needs twice count twice.
  double needs() const { return bytes * passes; }
};

// Whether all far records of `dataset` are files. Files are fetched one by one, whatever order the
// feed has. In a zip, this must hold for all members.
bool ReadsEachRecord(const Dataset& dataset);

// How many datasets hold records of `dataset` that are fetched in runs: far records that are not
// files. In a zip, these are the datasets that the members read. A dataset that several members
// read counts once. If `dataset` is not a zip, the number is 0 or 1.
int64_t DatasetsInRuns(const Dataset& dataset);

// All records of `dataset`, fetched in runs of `run` bytes, or record by record if `run` is 0.
// Records that are files are always fetched one by one. O(shards).
EpochPart WholePart(const Dataset& dataset, double run);

// The part for `records`, which come from the dataset `own`. The numbers that records.RecordAt()
// returns are those of `joined`: the dataset that joins `own` with others, or `own` itself. A
// selection is estimated from a sample of at most `most` positions. `run` as for WholePart().
EpochPart PartOf(const Dataset& joined, const Dataset& own, const SelectedRecords& records,
                 int64_t most, double run);

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_EPOCH_PARTS_H_
