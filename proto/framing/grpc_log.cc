#include "proto/framing/grpc_log.h"

#include <atomic>
#include <cstdlib>

#include "grpc/support/log.h"

namespace systole {
namespace {

std::atomic<GrpcLogSink> current_sink = nullptr;

}  // namespace

void RedirectGrpcLog(GrpcLogSink sink) {
  current_sink = sink;
  gpr_set_log_function([](gpr_log_func_args* line) {
    if (const GrpcLogSink to = current_sink; to != nullptr) to(line->message);
  });
}

void SilenceGrpcLog() {
  const char* const wanted = std::getenv("GRPC_VERBOSITY");
  if (wanted == nullptr || *wanted == '\0') RedirectGrpcLog(nullptr);
}

}  // namespace systole
