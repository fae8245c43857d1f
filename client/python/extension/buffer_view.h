// The memory of a Python object that supports the buffer protocol, such as a NumPy array.
//
// Single-thread: call with the GIL held.
#ifndef SYSTOLE_CLIENT_PYTHON_EXTENSION_BUFFER_VIEW_H_
#define SYSTOLE_CLIENT_PYTHON_EXTENSION_BUFFER_VIEW_H_

#include <cstddef>
#include <memory>

#include "absl/strings/string_view.h"
#include "nanobind/nanobind.h"

namespace systole::python {

// While a BufferView lives, its object cannot be resized or freed.
class BufferView {
 public:
  // `flags` as for PyObject_GetBuffer(). Raises BufferError if the object has no buffer with these
  // flags.
  BufferView(const nanobind::handle& object, int flags) : view_(new Py_buffer()) {
    if (PyObject_GetBuffer(object.ptr(), view_.get(), flags) != 0) throw nanobind::python_error();
  }

  const Py_buffer& get() const { return *view_; }
  // The bytes of the buffer. REQUIRES: they follow each other without gaps.
  absl::string_view bytes() const {
    return {static_cast<const char*>(view_->buf), static_cast<size_t>(view_->len)};
  }

 private:
  struct Release {
    void operator()(Py_buffer* view) const {
      PyBuffer_Release(view);  // Does nothing if there is no object.
      delete view;
    }
  };
  // On the heap, because a Py_buffer may point into itself.
  std::unique_ptr<Py_buffer, Release> view_;
};

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_BUFFER_VIEW_H_
