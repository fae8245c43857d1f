// Prints as JSON the things that decide speed and are not in the repository: the libraries'
// versions and the SIMD target that this CPU gets. bench/run.sh puts this JSON into the results.
#include <cstdio>

#include "core/image/jpeg/jpeg_library.h"
#include "core/json/json_writer.h"
#include "core/numeric/simd_target.h"
#include "grpcpp/grpcpp.h"

int main() {
  const absl::Status forced = systole::ForceSimdTargetFromEnvironment();
  if (!forced.ok()) {
    std::fprintf(stderr, "versions: %s\n", forced.ToString().c_str());
    return 2;
  }
  systole::JsonWriter json;
  json.BeginObject()
      .Field("simd_target", systole::CurrentSimdTarget())
      .Field("grpc", grpc::Version())
      .Field("jpeg", systole::JpegLibraryVersion())
      .Field("compiler", __VERSION__)
      .EndObject();
  std::printf("%s\n", json.text().c_str());
  return 0;
}
