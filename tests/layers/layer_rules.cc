#include "tests/layers/layer_rules.h"

#include <initializer_list>
#include <string>
#include <vector>

namespace systole::layers {
namespace {

using Names = std::vector<std::string>;

Names Join(std::initializer_list<Names> lists) {
  Names all;
  for (const Names& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::vector<Room> SystoleRooms() {
  const Names status = {"core/status"};
  const Names messages = {"proto/systole/v1", "proto/text"};
  const Names ground = Join({status,
                             {"core/descriptor", "core/interrupt", "core/tensor", "core/memory",
                              "core/checksum", "core/numeric", "core/random"}});  // Levels 0 and 1.
  const Names stages =
      Join({ground,
            {"core/storage", "core/concurrency", "core/cache", "core/compression", "core/record",
             "core/example", "core/image", "core/order", "core/batch"}});
  const Names core = Join({stages, {"core/operations", "core/pipeline"}});
  const Names emulator = {"client/emulator/array",    "client/emulator/model",
                          "client/emulator/training", "client/emulator/shipped",
                          "client/emulator/chip",     "client/emulator/timing"};
  return {
      {"core/status", 0, {}},
      {"core/descriptor", 0, {}},  // Of files, sockets and memory alike.
      // For loops of every stage: below them all, and no thread of its own.
      {"core/interrupt", 0, {}},
      {"proto/systole/v1", 0, {}},
      {"proto/text", 1, status},    // Messages from text that a person wrote.
      {"core/program", 1, status},  // The process's own: its exit codes, how its malloc behaves.
      {"core/json", 1, status},     // For `--json`, reports and logs.
      {"core/tensor", 1, status},
      {"core/memory", 1, {"core/status", "core/descriptor"}},
      {"core/checksum", 1, status},
      // Secrets that let a client in, by their hashes: for the server and for `systole token`.
      {"core/token", 1, {"core/status", "core/descriptor"}},
      {"core/numeric", 1, status},
      {"core/random", 1, status},
      {"core/storage", 2, ground},
      {"core/concurrency", 2, ground},
      // What servers and feeds tell the person who runs them.
      {"core/log", 3, {"core/status", "core/json", "core/concurrency"}},
      // Values by key, in memory and on disk: knows no images.
      {"core/cache", 3, Join({ground, {"core/storage", "core/concurrency"}})},
      {"core/compression", 3, Join({ground, {"core/storage", "core/concurrency"}})},
      {"core/record", 4, Join({ground, {"core/storage", "core/compression"}})},
      {"core/example", 3, ground},
      {"core/image", 3, ground},
      {"core/order", 3, ground},
      {"core/batch", 3, ground},
      // A spec's transforms as programs: what they mean, and how they are lowered.
      {"core/operations", 4, Join({ground, {"proto/systole/v1", "core/image"}})},
      // A spec's order, for the two that must agree on it: pipeline and client.
      {"proto/order", 4, Join({ground, {"proto/systole/v1", "core/order"}})},
      // The only core room that knows messages: the feed spec is one.
      {"core/pipeline", 5, Join({stages, messages, {"core/operations", "proto/order"}})},
      // Memory shared with a peer: needs no gRPC.
      {"proto/slots", 2, Join({ground, {"proto/systole/v1"}})},
      {"proto/framing", 5, Join({ground, messages, {"core/batch"}})},
      // Who gets in, and by which certificates: knows nothing of feeds.
      {"server/door", 5, Join({ground, {"core/concurrency"}})},
      // Who may what: a configuration and tokens against what a call came with.
      {"server/access", 6,
       Join({status, {"core/concurrency", "core/token", "proto/systole/v1", "server/door"}})},
      {"server", 7,
       Join({core,
             messages,
             {"server/access", "server/door", "core/log", "core/program", "proto/framing",
              "proto/order", "proto/slots"}})},
      // The queue of one core; the emulator takes from it and knows no gRPC.
      {"client/infeed", 5, Join({ground, {"core/concurrency", "core/batch"}})},
      // Which server is asked for which steps, as a pure state machine: no gRPC, no thread, no
      // clock.
      {"client/schedule", 5, {"core/status", "core/random"}},
      // The library that trainers link.
      {"client/feed", 6,
       Join({ground,
             messages,
             {"core/storage", "core/concurrency", "core/log", "core/batch", "core/operations",
              "core/order", "proto/framing", "proto/order", "proto/slots", "client/infeed",
              "client/schedule"}})},
      // The same steps without a server.
      {"client/local", 7, Join({core, messages, {"client/feed"}})},
      // What a trainer gets, as a page: for `systole look` and for Python.
      {"client/look", 7,
       Join({ground,
             messages,
             {"core/batch", "core/operations", "core/order", "core/image", "proto/order",
              "client/html", "client/feed"}})},
      {"client/html", 6, {}},         // What all pages need.
      {"client/texture", 6, ground},  // For the benchmarks' photographs, too.
      {"client/emulator/array", 7, ground},
      // What the emulator keeps on disk, whichever room's it is.
      {"client/emulator/message_file", 6,
       Join({status, {"core/storage", "core/record", "proto/systole/v1"}})},
      // The files of deploy/ that are compiled in.
      {"client/emulator/shipped", 6, Join({status, messages})},
      {"client/emulator/model", 7, Join({ground, messages, {"client/emulator/shipped"}})},
      {"client/emulator/training", 8,
       Join({ground,
             messages,
             {"core/concurrency", "core/storage", "core/json", "client/emulator/array",
              "client/emulator/model", "client/emulator/message_file"}})},
      {"client/emulator/chip", 8,
       Join({ground,
             messages,
             {"core/json", "client/emulator/array", "client/emulator/shipped",
              "client/emulator/model"}})},
      {"client/emulator/timing", 9,
       Join({ground,
             {"core/concurrency", "core/storage", "core/batch", "proto/systole/v1", "core/json",
              "client/emulator/chip", "client/emulator/message_file"}})},
      {"client/emulator/report", 10, Join({ground, {"client/html", "core/json"}, emulator})},
      // Pictures for the demo's data set.
      {"client/cli/flowers", 10,
       Join({ground, {"core/storage", "core/concurrency", "core/image", "client/texture"}})},
      {"client/cli", 11,
       Join({core,
             messages,
             {"core/program", "core/token", "core/log", "proto/framing/grpc_log.h", "proto/order",
              "client/infeed", "client/feed", "client/look", "core/json", "client/texture",
              "client/cli/flowers", "client/emulator/report"},
             emulator})},
      // The C++ below the Python package; nothing of C++ stands on it.
      {"client/python/extension", 11,
       Join({core,
             messages,
             {"core/program/allocator.h", "core/log", "proto/framing/grpc_log.h", "client/feed",
              "client/local", "client/look"}})},
  };
}

std::vector<Library> ForeignLibraries() {
  return {
      {"abseil", {"absl/"}, {}, {}},
      {"protobuf",
       {"google/protobuf/"},
       {"core/operations/", "core/pipeline/", "proto/", "server/", "client/"},
       {}},
      {"gRPC", {"grpc/", "grpcpp/"}, {"proto/", "server/", "client/"}, {"client/emulator/"}},
      // SIMD kernels are compiled once per instruction set, each in its own .cc, so Highway cannot
      // stay behind one file; it stays in the rooms that have such kernels.
      {"Highway", {"hwy/"}, {"core/numeric/", "core/image/", "client/emulator/"}, {}},
      {"ISA-L", {"isa-l.h", "isa-l/"}, {"core/checksum/crc32c.cc"}, {}},
      {"xxHash", {"xxhash.h"}, {"core/checksum/xxh3.cc"}, {}},
      {"zlib",
       {"zlib.h"},
       {"core/compression/deflate.cc", "core/compression/compressing_sink.cc",
        "core/image/png_grey.cc"},  // PNG's own CRC-32.
       {}},
      {"Zstandard",
       {"zstd.h", "zstd_errors.h"},
       {"core/compression/zstd.cc", "core/compression/compressing_sink.cc"},
       {}},
      // Hashes tokens, looks at certificates and keys, shows what gRPC's TLS has decrypted, and
      // stays until the end. TLS itself is gRPC's.
      {"OpenSSL",
       {"openssl/"},
       {"core/token/token_table.cc", "server/door/read_observer.cc", "server/door/tls_files.cc",
        "client/cli/main.cc"},
       {}},
      {"oneDNN", {"dnnl", "oneapi/"}, {"client/emulator/array/onednn_gemm.cc"}, {}},
      // Decoder, encoder, and what they share or replace of it. Not their public headers.
      {"libjpeg",
       {"jpeglib.h", "jpegint.h", "jerror.h", "core/image/jpeg_eighth.h",
        "core/image/jpeg_entropy.h", "core/image/jpeg_errors.h"},
       {"core/image/jpeg_decoder.cc", "core/image/jpeg_encoder.cc", "core/image/jpeg_eighth.",
        "core/image/jpeg_entropy.", "core/image/jpeg_errors.", "core/image/jpeg_library.cc"},
       {}},
      {"libspng", {"spng.h"}, {"core/image/png_decoder.cc"}, {}},
      // One .cc per program: each reads its own command line.
      {"CLI11", {"CLI/"}, {"client/cli/command_line.cc", "server/main.cc"}, {}},
      {"spdlog", {"spdlog/"}, {"server/main.cc"}, {}},
      {"nanobind", {"nanobind/", "Python.h"}, {"client/python/extension/"}, {}},
  };
}

std::vector<ReservedWord> ReservedWords() {
  const Names everywhere = {"core/", "proto/", "server/", "client/"};
  return {
      {R"(\bstd::(jthread|thread|(recursive_|timed_|shared_)*mutex|condition_variable(_any)?|async|)"
       R"(lock_guard|unique_lock|scoped_lock|call_once|counting_semaphore|binary_semaphore|latch|)"
       R"(barrier)\b|\babsl::(Mutex|MutexLock|CondVar|Notification|BlockingCounter|Barrier)\b|)"
       R"(\bpthread_(create|mutex_\w+|cond_\w+)\b|)"
       R"(#\s*include\s*[<"](thread|mutex|shared_mutex|condition_variable|future|semaphore|latch|)"
       R"(barrier|pthread\.h|absl/synchronization/\w+\.h)[>"])",
       "every thread, mutex and wait lives in core/concurrency",
       everywhere,
       {"core/concurrency/"}},
      {R"(#\s*include\s*[<"](random|absl/random/\w+\.h)[>"]|\bs?rand\s*\(|\bstd::random_device\b)",
       "randomness comes from core/random, keyed by (seed, epoch, record)",
       everywhere,
       {}},
      {R"(#\s*include\s*[<"](chrono|absl/time/clock\.h)[>"]|\babsl::(Now|SleepFor)\b|\btime\s*\(\s*(0|nullptr|NULL)\s*\))",
       "a stage has no clock",
       {"core/"},
       {"core/concurrency/", "core/log/"}},  // A line of a log has a time of day.
      {R"(\bstd::(exp|exp2|expm1|log|log2|log10|log1p|pow|sin|cos|tan|asin|acos|atan|atan2|sinh|)"
       R"(cosh|tanh|cbrt|hypot|erf|erfc|tgamma|lgamma)\b)",
       "libm's transcendentals differ between CPUs; core/numeric has ours",
       {"core/", "client/emulator/"},
       // Its double path, for gradient checks with the rounding off, makes no bytes of a run.
       {"client/emulator/training/softmax_cross_entropy.cc"}},
      {R"(\bstd::(cout|cerr|clog)\b|\bf?printf\s*\(|\bstd::f?printf\s*\()",
       "core never prints",
       {"core/"},
       {"core/status/check.h"}},
      {R"(->\s*(master|main|coef|post|inputctl|marker|idct|upsample|cconvert|cquantize)\s*->)",
       "of libjpeg's private structures only the entropy decoder's is known",
       {"core/image/"},
       {}},
  };
}

}  // namespace

LayerRules SystoleRules() {
  return {
      .rooms = SystoleRooms(),
      .libraries = ForeignLibraries(),
      .reserved_words = ReservedWords(),
      .system_headers = {"arpa/",    "dirent.h",    "dlfcn.h", "fcntl.h", "fnmatch.h",
                         "glob.h",   "immintrin.h", "linux/",  "link.h",  "netdb.h",
                         "netinet/", "poll.h",      "pwd.h",   "sched.h", "setjmp.h",
                         "signal.h", "malloc.h",    "stdio.h", "sys/",    "termios.h",
                         "unistd.h", "xmmintrin.h"},
      .refused_folder_names = {"util", "utils", "common", "helpers", "helper", "misc", "base"},
      .top_level = {"CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md",
                    "bench", "client", "core", "deploy", "proto", "server", "tests"},
  };
}

}  // namespace systole::layers
