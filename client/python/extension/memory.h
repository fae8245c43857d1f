// The memory of one step, for Python. NumPy arrays are views of it, and array libraries get it by
// DLPack. The memory goes back to its feed when the last array is gone. Any thread may call
// DLPack's deleter or give the memory back, even after the interpreter has ended, because neither
// uses Python.
//
// Thread-compatible value type; copies share the memory.
#ifndef SYSTOLE_CLIENT_PYTHON_EXTENSION_MEMORY_H_
#define SYSTOLE_CLIENT_PYTHON_EXTENSION_MEMORY_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "nanobind/nanobind.h"

namespace systole::python {

class Memory {
 public:
  Memory(std::shared_ptr<const uint8_t> bytes, int64_t size)
      : bytes_(std::move(bytes)), size_(size) {}
  // Fresh memory of `size` bytes on a 64-byte boundary. Raises MemoryError if too little memory is
  // free.
  static Memory Allocate(int64_t size);

  const std::shared_ptr<const uint8_t>& bytes() const { return bytes_; }
  // The memory is writable, because a step belongs to its trainer alone.
  uint8_t* data() const { return const_cast<uint8_t*>(bytes_.get()); }
  int64_t size() const { return size_; }
  uint64_t address() const { return reinterpret_cast<uint64_t>(bytes_.get()); }

  // A DLPack capsule of the tensor at `address`, which the caller found inside this memory.
  // `strides` are counted in elements. `code` and `bits` are as in DLDataType.
  nanobind::capsule ToDlpack(uint64_t address, std::vector<int64_t> shape,
                             std::vector<int64_t> strides, int code, int bits, bool versioned,
                             bool read_only) const;

 private:
  std::shared_ptr<const uint8_t> bytes_;
  int64_t size_;
};

void DeclareMemory(nanobind::module_& module);

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_MEMORY_H_
