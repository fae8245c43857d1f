// Turns libjpeg's errors into a status code and a message, for the files of core/image/jpeg that
// use libjpeg.
//
// libjpeg reports an error by a callback that must not return. We leave the callback by longjmp,
// which destroys no locals. So every function between RunGuarded's setjmp and the callback has only
// trivial locals. Such functions are called steps. The same rule holds for functions of these files
// that libjpeg calls back during a step.
//
// Single-thread. Each libjpeg decoder or encoder has its own JpegErrors.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_JPEG_ERRORS_H_
#define SYSTOLE_CORE_IMAGE_JPEG_JPEG_ERRORS_H_

#include <csetjmp>
#include <cstdio>

#include "absl/status/status.h"
// Included last, because it needs <cstdio> and defines many macros.
#include "jpeglib.h"

namespace systole {

struct JpegErrors {
  jpeg_error_mgr manager;  // Must be first: ErrorsOf() casts its address to JpegErrors*.
  std::jmp_buf jump;
  // The error that ended a step: DataLoss, or Unavailable for lack of memory.
  char message[JMSG_LENGTH_MAX];
  absl::StatusCode code;
  // Set by the user.
  bool fail_on_warning;
  bool in_image_data;  // Past the header.
};

// Returns the pointer for `err` of a libjpeg object. `errors` must outlive that object. The fields
// of `errors` that the user sets may have any values, and the other fields must be zero.
jpeg_error_mgr* InitErrors(JpegErrors* errors);

// The inverse of InitErrors(), for callbacks.
inline JpegErrors* ErrorsOf(jpeg_error_mgr* manager) {
  return reinterpret_cast<JpegErrors*>(manager);
}

// Runs step(state). Returns false if the step ended by a jump to `errors->jump`, as it does on an
// error.
template <typename State>
bool RunGuarded(JpegErrors* errors, void (*step)(State*), State* state) {
  if (setjmp(errors->jump) != 0) return false;
  step(state);
  return true;
}

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_JPEG_ERRORS_H_
