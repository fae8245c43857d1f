#include "client/python/extension/memory.h"

#include <new>
#include <string>
#include <utility>

#include "client/python/extension/dlpack.h"
#include "core/memory/aligned_buffer.h"
#include "nanobind/stl/vector.h"

namespace nb = nanobind;

namespace systole::python {
namespace {

// The content of a capsule, together with the owner of the tensor's memory.
template <typename Managed>
struct Exported {
  Managed managed;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  std::shared_ptr<const uint8_t> bytes;
};

// Frees the content of a capsule that was not consumed. A consumed capsule has another name,
// because its consumer renamed it.
template <typename Managed>
void DropCapsule(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

template <typename Managed>
nb::capsule Export(std::unique_ptr<Exported<Managed>> exported, const char* name,
                   PyCapsule_Destructor drop) {
  Managed& managed = exported->managed;
  managed.dl_tensor.ndim = static_cast<int32_t>(exported->shape.size());
  managed.dl_tensor.shape = exported->shape.data();
  managed.dl_tensor.strides = exported->strides.data();
  managed.manager_ctx = exported.get();
  managed.deleter = [](Managed* self) {
    delete static_cast<Exported<Managed>*>(self->manager_ctx);
  };
  PyObject* const capsule = PyCapsule_New(&managed, name, drop);
  if (capsule == nullptr) throw nb::python_error();
  exported.release();  // The capsule owns this content now.
  return nb::steal<nb::capsule>(capsule);
}

constexpr char kPlain[] = "dltensor";
constexpr char kVersioned[] = "dltensor_versioned";

template <typename Managed>
std::unique_ptr<Exported<Managed>> Prepare(const Memory& memory, uint64_t address,
                                           std::vector<int64_t> shape, std::vector<int64_t> strides,
                                           int code, int bits) {
  auto exported = std::make_unique<Exported<Managed>>();
  exported->bytes = memory.bytes();
  exported->shape = std::move(shape);
  exported->strides = std::move(strides);
  exported->managed.dl_tensor.data = memory.data() + (address - memory.address());
  exported->managed.dl_tensor.dtype = {.code = static_cast<uint8_t>(code),
                                       .bits = static_cast<uint8_t>(bits)};
  return exported;
}

int FillBuffer(PyObject* self, Py_buffer* view, int flags) {
  const Memory* const memory = nb::inst_ptr<Memory>(self);
  return PyBuffer_FillInfo(view, self, memory->data(), static_cast<Py_ssize_t>(memory->size()),
                           /*readonly=*/0, flags);
}

PyType_Slot kSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(FillBuffer)}, {0, nullptr}};

}  // namespace

Memory Memory::Allocate(int64_t size) {
  absl::StatusOr<AlignedBuffer> buffer = AlignedBuffer::Create(size);
  if (!buffer.ok()) throw std::bad_alloc();
  auto owner = std::make_shared<AlignedBuffer>(*std::move(buffer));
  return {std::shared_ptr<const uint8_t>(owner, owner->data()), size};
}

nb::capsule Memory::ToDlpack(uint64_t address, std::vector<int64_t> shape,
                             std::vector<int64_t> strides, int code, int bits, bool versioned,
                             bool read_only) const {
  if (!versioned) {
    return Export(
        Prepare<DLManagedTensor>(*this, address, std::move(shape), std::move(strides), code, bits),
        kPlain, [](PyObject* capsule) { DropCapsule<DLManagedTensor>(capsule, kPlain); });
  }
  auto exported = Prepare<DLManagedTensorVersioned>(*this, address, std::move(shape),
                                                    std::move(strides), code, bits);
  exported->managed.flags = read_only ? 1 : 0;
  return Export(std::move(exported), kVersioned, [](PyObject* capsule) {
    DropCapsule<DLManagedTensorVersioned>(capsule, kVersioned);
  });
}

void DeclareMemory(nb::module_& module) {
  nb::class_<Memory>(module, "Memory", nb::type_slots(kSlots),
                     "The memory of one step. Supports the buffer protocol.")
      .def_static("allocate", &Memory::Allocate, nb::arg("size"),
                  "Fresh memory on a 64-byte boundary.")
      .def_prop_ro("address", &Memory::address)
      .def("__len__", &Memory::size)
      .def("to_dlpack", &Memory::ToDlpack, nb::arg("address"), nb::arg("shape"), nb::arg("strides"),
           nb::arg("code"), nb::arg("bits"), nb::arg("versioned"), nb::arg("read_only"),
           "A DLPack capsule of a tensor inside this memory.");
}

}  // namespace systole::python
