// Arrays of Python as records of a dataset, for systole.from_arrays.
#ifndef SYSTOLE_CLIENT_PYTHON_EXTENSION_ARRAY_ROWS_H_
#define SYSTOLE_CLIENT_PYTHON_EXTENSION_ARRAY_ROWS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "core/dataset/dataset.h"
#include "core/record/arrays/array_table.h"
#include "nanobind/nanobind.h"

namespace systole::python {

// Keeps the arrays alive as long as a feed may read them. Single-thread: call with the GIL held.
class ArrayRows {
 public:
  // `arrays` are tuples of a name, a dtype ("uint8", "float32" or "int64") and an array, in which
  // the bytes of a row follow each other without gaps. Each array has `rows` rows. Reads the arrays
  // once, on `threads` threads.
  ArrayRows(const nanobind::list& arrays, int64_t rows, int threads);

  int64_t num_rows() const { return table_->num_rows(); }
  // The size of the shard that WriteShard() writes.
  uint64_t shard_bytes() const { return table_->shard_bytes(); }
  std::shared_ptr<Dataset> MakeDataset(const std::string& name) const;
  // Writes all rows as one shard.
  void WriteShard(const std::string& path) const;

 private:
  std::shared_ptr<const ArrayTable> table_;
};

void DeclareArrayRows(nanobind::module_& module);

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_ARRAY_ROWS_H_
