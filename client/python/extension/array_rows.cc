#include "client/python/extension/array_rows.h"

#include <atomic>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/python/extension/buffer_view.h"
#include "client/python/extension/raise.h"
#include "client/python/extension/without_gil.h"
#include "core/interrupt/interrupt.h"
#include "core/record/arrays/array_source.h"
#include "core/record/source/record_source.h"
#include "core/record/tfrecord/record_writer.h"
#include "core/status/status_macros.h"
#include "core/tensor/dtype.h"
#include "nanobind/stl/shared_ptr.h"
#include "nanobind/stl/string.h"

namespace nb = nanobind;

namespace systole::python {
namespace {

// The arrays of a table. They are kept until a thread with the GIL frees them.
struct HeldArrays {
  std::vector<BufferView> views;
  HeldArrays* next = nullptr;
};

// Arrays that no table needs any more. This list has no lock, because a lock that another thread
// held during fork() would never become free in the child.
std::atomic<HeldArrays*> unneeded = nullptr;

int FreeUnneeded(void*) {
  for (HeldArrays* held = unneeded.exchange(nullptr); held != nullptr;) {
    HeldArrays* const next = held->next;
    delete held;
    held = next;
  }
  return 0;
}

// The last owner of a table may be a thread of the engine. Such a thread must not wait for the GIL,
// because it may hold a lock that the thread with the GIL waits for. So the thread only puts the
// arrays into the list, and Python's main thread frees them in a pending call. If too many pending
// calls wait already, the next call of FreeUnneeded() frees the arrays.
void Release(HeldArrays* held) {
  if (!nb::is_alive()) return;
  held->next = unneeded.load();
  while (!unneeded.compare_exchange_weak(held->next, held)) {
  }
  Py_AddPendingCall(FreeUnneeded, nullptr);
}

DType DTypeNamed(const std::string& name) {
  for (const DType dtype : {DType::kUint8, DType::kFloat32, DType::kInt64}) {
    if (DTypeName(dtype) == name) return dtype;
  }
  RaiseIfError(absl::InvalidArgumentError(
      absl::StrCat("the dtype is ", name, "; want uint8, float32 or int64")));
  return DType::kUint8;
}

}  // namespace

ArrayRows::ArrayRows(const nb::list& arrays, int64_t rows, int threads) {
  auto held = std::make_unique<HeldArrays>();
  std::vector<ArrayColumn> columns;
  for (const nb::handle item : arrays) {
    const nb::tuple parts = nb::cast<nb::tuple>(item);
    ArrayColumn& column = columns.emplace_back();
    column.name = nb::cast<std::string>(parts[0]);
    column.dtype = DTypeNamed(nb::cast<std::string>(parts[1]));
    const Py_buffer& view = held->views.emplace_back(parts[2], PyBUF_STRIDED_RO).get();
    if (view.ndim < 1 || view.shape[0] != rows || view.itemsize != DTypeBytes(column.dtype)) {
      RaiseIfError(absl::InternalError(
          absl::StrCat("the array '", column.name,
                       "' does not have the given type or the given number of rows")));
    }
    column.row_shape.assign(view.shape + 1, view.shape + view.ndim);
    column.data = static_cast<const char*>(view.buf);
    column.stride_bytes = view.strides[0];
  }
  const std::shared_ptr<const void> owner(held.release(), Release);
  table_ = ValueOrRaise(
      Interruptibly([&] { return ArrayTable::Create(std::move(columns), rows, owner, threads); }));
}

std::shared_ptr<Dataset> ArrayRows::MakeDataset(const std::string& name) const {
  std::vector<std::unique_ptr<const RecordSource>> shards;
  shards.push_back(std::make_unique<ArraySource>(table_));
  return ValueOrRaise(Dataset::Create(name, std::move(shards)));
}

void ArrayRows::WriteShard(const std::string& path) const {
  RaiseIfError(Interruptibly([&]() -> absl::Status {
    SYSTOLE_ASSIGN_OR_RETURN(RecordWriter writer, RecordWriter::Create(path));
    for (int64_t row = 0; row < table_->num_rows(); ++row) {
      if (InterruptRequested()) return InterruptedError();
      SYSTOLE_RETURN_IF_ERROR(writer.Write(table_->RecordOf(row)));
    }
    return writer.Close();
  }));
}

void DeclareArrayRows(nb::module_& module) {
  nb::class_<ArrayRows>(module, "ArrayRows", "Arrays as the records of a dataset.")
      .def(nb::init<const nb::list&, int64_t, int>(), nb::arg("arrays"), nb::arg("rows"),
           nb::arg("threads"))
      .def("__len__", &ArrayRows::num_rows)
      .def_prop_ro("shard_bytes", &ArrayRows::shard_bytes)
      .def("dataset", &ArrayRows::MakeDataset, nb::arg("name"))
      .def("write_shard", &ArrayRows::WriteShard, nb::arg("path"));
}

}  // namespace systole::python
