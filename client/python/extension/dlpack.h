// DLPack's structures (dmlc.github.io/dlpack/latest/c_api.html). Array libraries pass memory to
// each other in these structures. This file has only the part for host tensors. The standard fixes
// the layout of the structures, so they never change.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_PYTHON_EXTENSION_DLPACK_H_
#define SYSTOLE_CLIENT_PYTHON_EXTENSION_DLPACK_H_

#include <cstdint>

namespace systole::python {

struct DLDevice {
  int32_t device_type = 1;  // kDLCPU
  int32_t device_id = 0;
};

struct DLDataType {
  uint8_t code = 0;
  uint8_t bits = 0;
  uint16_t lanes = 1;
};

struct DLTensor {
  void* data = nullptr;
  DLDevice device;
  int32_t ndim = 0;
  DLDataType dtype;
  int64_t* shape = nullptr;
  int64_t* strides = nullptr;  // Counted in elements.
  uint64_t byte_offset = 0;
};

// The content of a capsule "dltensor".
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx = nullptr;
  void (*deleter)(DLManagedTensor* self) = nullptr;
};

struct DLPackVersion {
  uint32_t major = 1;
  uint32_t minor = 0;
};

// The content of a capsule "dltensor_versioned".
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx = nullptr;
  void (*deleter)(DLManagedTensorVersioned* self) = nullptr;
  uint64_t flags = 0;  // Bit 0: read-only.
  DLTensor dl_tensor;
};

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_DLPACK_H_
