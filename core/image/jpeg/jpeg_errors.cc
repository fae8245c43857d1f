#include "core/image/jpeg/jpeg_errors.h"

// Must come after jpeglib.h, which jpeg_errors.h includes.
#include "jerror.h"

namespace systole {
namespace {

[[noreturn]] void Raise(j_common_ptr cinfo, absl::StatusCode code) {
  JpegErrors* errors = ErrorsOf(cinfo->err);
  (*cinfo->err->format_message)(cinfo, errors->message);
  errors->code = code;
  std::longjmp(errors->jump, 1);
}

// Whether libjpeg got no memory, or needs more than the environment variable JPEGMEM allows. The
// image may be good.
bool IsLackOfMemory(int message_code) {
  return message_code == JERR_OUT_OF_MEMORY || message_code == JERR_NO_BACKING_STORE;
}

[[noreturn]] void OnError(j_common_ptr cinfo) {
  Raise(cinfo, IsLackOfMemory(cinfo->err->msg_code) ? absl::StatusCode::kUnavailable
                                                    : absl::StatusCode::kDataLoss);
}

// Whether the warning is one of those that change no pixel: an unknown colour transform or profile,
// a newer JFIF version, or padding between markers before the image data.
bool IsHarmless(const JpegErrors& errors) {
  switch (errors.manager.msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_BOGUS_ICC:
    case JWRN_JFIF_MAJOR:
      return true;
    case JWRN_EXTRANEOUS_DATA:
      return !errors.in_image_data;
    default:
      return false;
  }
}

void OnMessage(j_common_ptr cinfo, int level) {
  if (level >= 0) return;  // Trace output.
  const JpegErrors* errors = ErrorsOf(cinfo->err);
  ++cinfo->err->num_warnings;
  if (errors->fail_on_warning && !IsHarmless(*errors)) Raise(cinfo, absl::StatusCode::kDataLoss);
}

void NeverPrint(j_common_ptr) {}

}  // namespace

jpeg_error_mgr* InitErrors(JpegErrors* errors) {
  jpeg_std_error(&errors->manager);
  errors->manager.error_exit = OnError;
  errors->manager.emit_message = OnMessage;
  errors->manager.output_message = NeverPrint;
  return &errors->manager;
}

}  // namespace systole
