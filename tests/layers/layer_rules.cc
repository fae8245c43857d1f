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
  const Names status = {"core/text", "core/status"};
  const Names messages = {"proto/systole/v1"};
  const Names ground = Join({status,
                             {"core/descriptor", "core/interrupt", "core/tensor", "core/memory",
                              "core/checksum", "core/numeric", "core/random"}});  // Levels 0 and 1.
  const Names files = Join(
      {ground, {"core/storage", "core/storage/local", "core/storage/stores", "core/concurrency"}});
  const Names operations = {"core/operations", "core/operations/ops"};
  const Names emulator = {"client/emulator/array",    "client/emulator/model",
                          "client/emulator/training", "client/emulator/shipped",
                          "client/emulator/chip",     "client/emulator/timing"};
  // The rooms that a program uses to read a feed from servers.
  const Names feed = {"client/verdict", "client/step", "client/servers", "client/lanes",
                      "client/feed"};
  return {
      {"core/text", 0, {}},  // Text that people write and read.
      {"core/status", 0, {}},
      // The trace to which a call belongs, for the client and the server.
      {"core/trace", 0, {}},
      {"core/page", 0, {}},        // The style that pages of the client and the server share.
      {"core/descriptor", 0, {}},  // Descriptors of files, sockets and memory.
      // A flag that tells a thread to give up its work. Loops in many rooms look at the flag. The
      // room starts no thread.
      {"core/interrupt", 0, {}},
      {"proto/systole/v1", 0, {}},
      {"core/textproto", 1, status},  // Reads messages from text that a person wrote.
      {"core/process", 1, status},    // Exit codes and malloc of the process.
      {"core/json", 1, status},       // For `--json`, reports and logs.
      // Metrics and their text formats, for every room that has counters.
      {"core/metrics", 2, {"core/json"}},
      {"core/tensor", 1, status},
      {"core/memory", 1, {"core/status", "core/descriptor"}},
      {"core/checksum", 1, status},
      // Parses the XML in answers of buckets. It needs no HTTP.
      {"core/xml", 1, {}},
      // Access tokens and their hashes, for the server and for `systole token`.
      {"core/access_token", 1, Join({status, {"core/descriptor"}})},
      {"core/numeric", 2, Join({status, {"core/tensor"}})},
      {"core/random", 1, status},
      // Other rooms use this room to start threads and to wait.
      {"core/concurrency", 1, Join({status, {"core/descriptor"}})},
      // Fetches objects of the web. It has no code for shards and stores.
      {"core/http", 2, Join({status, {"core/interrupt", "core/random", "core/concurrency"}})},
      // Finds keys and tokens for buckets. It has no code for buckets. core/http signs with keys,
      // but does not look for them.
      {"core/credentials", 3,
       Join({status,
             messages,
             {"core/descriptor", "core/textproto", "core/json", "core/random", "core/concurrency",
              "core/http"}})},
      {"core/storage", 2, status},
      // The stores. No store uses another store, except that `bucket` reads objects with `web`.
      {"core/storage/local", 3, Join({status, {"core/interrupt", "core/storage"}})},
      {"core/storage/memory", 3, Join({status, {"core/storage", "core/concurrency"}})},
      {"core/storage/web", 3, Join({status, {"core/storage", "core/concurrency", "core/http"}})},
      // A bucket is a web server with lists, signatures and errors of its own.
      {"core/storage/bucket", 4,
       Join({status,
             {"core/interrupt", "core/concurrency", "core/xml", "core/http", "core/credentials",
              "core/storage", "core/storage/web"}})},
      // Finds the store for a name. Code that reads shards uses this room, and no store directly.
      {"core/storage/stores", 5,
       Join({status,
             {"core/interrupt", "core/storage", "core/storage/local", "core/storage/memory",
              "core/storage/web", "core/storage/bucket"}})},
      // Log messages of servers and feeds, for the person who runs them.
      {"core/log", 3, Join({status, {"core/json", "core/concurrency"}})},
      // Keeps values by key, in memory and on disk. It has no code for images.
      {"core/cache", 6, Join({files, {"core/metrics"}})},
      // Reads ahead from remote sources, on threads of its own, so that no thread that computes
      // waits for storage. It reads blocks of bytes, and has no code for records.
      {"core/fetch", 7,
       Join({status,
             {"core/interrupt", "core/memory", "core/checksum", "core/concurrency", "core/storage",
              "core/cache"}})},
      {"core/compression", 6, files},
      {"core/example", 3, ground},
      // The interface of a file of records, and the code that its formats share.
      {"core/record/source", 7, Join({files, {"core/compression", "core/example"}})},
      // A room for each format.
      {"core/record/tfrecord", 8,
       Join({files, {"core/compression", "core/example", "core/record/source"}})},
      {"core/record/webdataset", 8, Join({files, {"core/example", "core/record/source"}})},
      // Image files as records. Only this format looks into records: it reads the images' headers.
      {"core/record/images", 8,
       Join({files, {"core/example", "core/image", "core/record/source"}})},
      // Rows of arrays in memory as records. There are no files, so the room is not in the table of
      // formats. A row counts as many bytes as the same record would have in a TFRecord shard.
      {"core/record/arrays", 9,
       Join({ground,
             {"core/concurrency", "core/example", "core/record/source", "core/record/tfrecord"}})},
      // Joins records of several sources into one record. It uses the interface that all sources
      // have, and no format of files.
      {"core/record/zip", 8, Join({ground, {"core/example", "core/order", "core/record/source"}})},
      // The table of formats.
      {"core/record", 9,
       Join({files,
             {"core/compression", "core/record/source", "core/record/tfrecord",
              "core/record/webdataset", "core/record/images"}})},
      // The values of single features in all records, and conditions on these values. The room has
      // no code for datasets and specs.
      {"core/column", 8, Join({files, {"core/example", "core/record/source"}})},
      {"core/image/window", 3, ground},  // Rectangles of images. No pixels.
      {"core/image/png", 3, ground},
      {"core/image/jpeg", 4, Join({ground, {"core/image/window"}})},
      {"core/image/resize", 4, Join({ground, {"core/image/window"}})},
      // Code that needs several of the rooms below core/image: the fused pass, and the code that
      // finds out an image's kind.
      {"core/image", 6,
       Join({ground,
             {"core/image/window", "core/image/png", "core/image/jpeg", "core/image/resize"}})},
      {"core/order", 3, ground},
      {"core/batch", 3, ground},
      // The order of records that a spec asks for, for core/plan and for the client.
      {"core/spec", 4, Join({ground, messages, {"core/order"}})},
      // The operations. Each has its parameters, its reference implementation and its row in the
      // table.
      {"core/operations/ops", 7,
       Join({ground,
             messages,
             {"core/image/window", "core/image/png", "core/image/jpeg", "core/image/resize",
              "core/image"}})},
      // Makes a program from a spec's transforms: puts operations together, and lowers them.
      {"core/operations", 8,
       Join({ground,
             messages,
             {"core/image/window", "core/image/jpeg", "core/image", "core/operations/ops"}})},
      // Tensors as pictures for people, for `systole look` and for the server's page.
      {"core/picture", 9,
       Join({ground,
             messages,
             {"core/batch", "core/image/jpeg", "core/operations", "core/operations/ops"}})},
      // Datasets: shards that are opened under one name, their content, and whether a shard is
      // missing.
      {"core/dataset", 10,
       Join({files,
             messages,
             {"core/textproto", "core/record", "core/record/source", "core/record/zip",
              "core/column", "core/example", "core/image", "core/order"}})},
      // Checks a feed spec against a dataset, and translates the spec into a plan. The room starts
      // no thread and makes no example.
      {"core/plan", 11,
       Join({ground,
             messages,
             operations,
             {"core/storage", "core/cache", "core/record/source", "core/column", "core/example",
              "core/image/jpeg", "core/image", "core/order", "core/batch", "core/spec",
              "core/dataset"}})},
      // Makes a plan's steps: decides which stream is next, and makes examples.
      {"core/engine", 12,
       Join({ground,
             operations,
             {"core/storage", "core/concurrency", "core/metrics", "core/cache", "core/fetch",
              "core/record/source", "core/example", "core/image/jpeg", "core/image", "core/order",
              "core/batch", "core/dataset", "core/plan"}})},
      // Memory that is shared with a peer. It needs no gRPC.
      {"proto/slots", 3, Join({ground, messages})},
      // Metrics in the answer of ServerStatus, for server and client.
      {"proto/metrics", 3, Join({status, messages, {"core/metrics"}})},
      {"proto/framing", 6, Join({ground, messages, {"core/batch"}})},
      // The server's settings: a table of the flags and of the config file's fields.
      {"server/config", 2, Join({status, messages, {"core/process"}})},
      // The messages between a server and the manager of this machine's services (systemd). The
      // room uses no other code of the server.
      {"server/service_manager", 2, Join({status, {"core/descriptor", "core/concurrency"}})},
      // Decides which connections and certificates are accepted. It has no code for feeds.
      {"server/listener", 6, Join({ground, {"core/concurrency"}})},
      // Decides which client may make which call, by the config and by the client's credentials.
      {"server/access", 7,
       Join({status, messages, {"core/concurrency", "core/access_token", "server/listener"}})},
      // Memory that is lent to clients of this machine.
      {"server/slots", 7,
       Join({ground, messages, {"core/concurrency", "core/log", "proto/slots"}})},
      // Sends spans to a collector of traces. It has no code for streams and steps.
      {"server/otlp", 4,
       Join({status,
             {"core/interrupt", "core/random", "core/json", "core/concurrency", "core/log",
              "core/http", "core/trace"}})},
      // Decides which calls and steps are traced, and keeps the slowest steps. It needs no gRPC.
      {"server/traces", 5,
       Join({status,
             {"core/random", "core/json", "core/concurrency", "core/trace", "core/batch",
              "server/otlp"}})},
      // Streams: how many may run at a time, their messages, and why each one ended.
      {"server/streams", 13,
       Join({ground,
             messages,
             {"core/concurrency", "core/log", "core/batch", "core/plan", "core/engine",
              "proto/framing", "server/access", "server/slots", "server/traces"}})},
      // Services that tools expect of any gRPC server: health, reflection.
      {"server/introspection", 14,
       Join({ground,
             messages,
             {"core/concurrency", "proto/framing", "server/access", "server/streams"}})},
      // The metrics of a server. It reads the counters of rooms with lower levels.
      {"server/metrics",
       14,
       {"core/concurrency", "core/process", "core/metrics", "core/cache", "core/batch",
        "core/dataset", "core/engine", "server/listener", "server/otlp", "server/streams"}},
      // The content of a server's page for people, as text and as pictures. It needs no HTTP.
      {"server/statusz", 14,
       Join({ground,
             messages,
             {"core/page", "core/json", "core/concurrency", "core/metrics", "core/batch",
              "core/picture", "core/plan", "core/engine", "proto/framing", "server/streams"}})},
      // Serves pages over HTTP, for people, probes and monitors. It has no code for feeds: other
      // code passes it the numbers to show.
      {"server/admin", 15,
       Join({status,
             {"core/descriptor", "core/concurrency", "core/log", "core/metrics", "server/listener",
              "server/access", "server/streams", "server/traces", "server/statusz"}})},
      // The calls of Systole's own service, and the datasets that they name.
      {"server/rpc", 15,
       Join({files,
             messages,
             {"core/log",           "core/metrics",  "core/cache",      "core/compression",
              "core/record/source", "core/example",  "core/image/jpeg", "core/spec",
              "core/dataset",       "core/plan",     "core/engine",     "core/trace",
              "proto/metrics",      "proto/framing", "server/listener", "server/access",
              "server/slots",       "server/otlp",   "server/traces",   "server/streams",
              "server/metrics",     "server/statusz"}})},
      {"server", 16,
       Join({files,
             messages,
             {"core/textproto",
              "core/log",
              "core/process",
              "core/metrics",
              "core/cache",
              "core/compression",
              "core/record/source",
              "core/dataset",
              "core/image/jpeg",
              "proto/framing",
              "proto/slots",
              "server/config",
              "server/listener",
              "server/access",
              "server/slots",
              "server/otlp",
              "server/traces",
              "server/introspection",
              "server/metrics",
              "server/statusz",
              "server/admin",
              "server/rpc",
              "server/service_manager"}})},
      // The queue before one accelerator core. The emulator takes slices from this queue, so the
      // emulator needs no gRPC.
      {"client/infeed", 6, Join({ground, {"core/concurrency", "core/batch"}})},
      // Decides which server is asked for which steps. A pure state machine without gRPC, threads
      // and clocks.
      {"client/schedule", 6, {"core/status", "core/random"}},
      // Says why a trainer waits: looks at what happened to the trainer's steps during the wait.
      // The room only adds up times that other rooms have measured. It has no thread and no clock.
      {"client/verdict", 5, Join({ground, messages, {"core/batch", "core/spec"}})},
      // The steps of every feed, with or without a server. It needs no gRPC.
      {"client/step", 6,
       Join({ground,
             {"core/concurrency", "core/log", "core/metrics", "core/order", "core/batch",
              "client/verdict"}})},
      // Connects to one server, calls it and measures it.
      {"client/servers", 7,
       Join({files,
             messages,
             {"core/trace", "core/order", "core/batch", "core/spec", "proto/framing",
              "proto/slots"}})},
      // Puts the servers' answers together into whole steps, in order.
      {"client/lanes", 9,
       Join({ground,
             messages,
             {"core/concurrency", "core/log", "core/order", "core/batch", "core/spec",
              "proto/framing", "proto/slots", "client/schedule", "client/verdict", "client/step",
              "client/servers"}})},
      // The library that trainers link.
      {"client/feed", 10,
       Join({ground,
             messages,
             {"core/concurrency", "core/log", "core/metrics", "core/order", "core/batch",
              "core/spec", "proto/framing", "client/infeed", "client/step", "client/servers",
              "client/lanes"}})},
      // Feeds without a server: the trainer's process makes the steps.
      {"client/local", 13,
       Join({ground,
             messages,
             {"core/concurrency", "core/log", "core/cache", "core/order", "core/spec", "core/batch",
              "core/dataset", "core/plan", "core/engine", "client/verdict", "client/step"}})},
      // Shows the examples of a feed as a page, for `systole look` and for Python.
      {"client/look", 10,
       Join({ground,
             messages,
             operations,
             {"core/page", "core/batch", "core/order", "core/picture", "core/spec",
              "client/step"}})},
      // Noise as in photographs, for the flowers of `systole make-flowers` and for bench.
      {"client/texture", 7, ground},
      // Writes sets of shards, for `systole pack` and for Python.
      {"client/shard_set", 11,
       Join({files,
             {"core/compression", "core/record", "core/record/source", "core/record/tfrecord",
              "core/dataset"}})},
      {"client/emulator/array", 8, ground},
      // Reads and writes the files of the emulator's rooms.
      {"client/emulator/message_file", 9,
       Join({status, messages, {"core/storage", "core/record/tfrecord"}})},
      // Files of deploy/ that are compiled into the programs.
      {"client/emulator/shipped", 7, Join({status, messages, {"core/textproto"}})},
      {"client/emulator/model", 8,
       Join({ground, messages, {"core/textproto", "client/emulator/shipped"}})},
      {"client/emulator/training", 10,
       Join({files,
             messages,
             {"core/json", "client/emulator/array", "client/emulator/model",
              "client/emulator/message_file"}})},
      {"client/emulator/chip", 9,
       Join({ground,
             messages,
             {"core/textproto", "core/json", "client/emulator/array", "client/emulator/shipped",
              "client/emulator/model"}})},
      {"client/emulator/timing", 11,
       Join({files,
             messages,
             {"core/batch", "core/json", "client/emulator/chip", "client/emulator/message_file"}})},
      {"client/emulator/report", 12, Join({ground, emulator, {"core/page", "core/json"}})},
      // Pictures for the demo's data set.
      {"client/cli/flowers", 8, Join({files, {"core/image/jpeg", "client/texture"}})},
      // Options, --help, --json, the progress bar, Ctrl-C. It has no code for feeds and shards.
      {"client/cli/console", 3, Join({ground, {"core/process", "core/concurrency"}})},
      // The work of `systole pack`, `inspect` and `verify`.
      {"client/cli/shards", 12,
       Join({files,
             messages,
             {"core/json", "core/compression", "core/record", "core/record/source",
              "core/record/tfrecord", "core/record/images", "core/column", "core/example",
              "core/image/jpeg", "core/image/png", "core/image/resize", "core/image",
              "core/dataset", "core/plan", "client/shard_set"}})},
      // The work of `systole pace`, `replay` and `load`.
      {"client/cli/pacing", 13,
       Join({files,
             messages,
             emulator,
             feed,
             {"core/json", "core/metrics", "core/batch", "core/spec", "proto/metrics",
              "client/infeed", "client/emulator/report"}})},
      // A file for each command, with its options and its output.
      {"client/cli/commands", 14,
       Join({files,
             messages,
             emulator,
             feed,
             {"core/textproto",
              "core/process",
              "core/json",
              "core/metrics",
              "core/access_token",
              "core/log",
              "core/batch",
              "core/order",
              "core/spec",
              "core/record",
              "core/record/source",
              "core/column",
              "core/operations/ops",
              "core/dataset",
              "core/plan",
              "proto/framing/trainer_report.h",
              "proto/metrics",
              "client/infeed",
              "client/look",
              "client/texture",
              "client/emulator/report",
              "client/cli/console",
              "client/cli/flowers",
              "client/cli/shards",
              "client/cli/pacing"}})},
      {"client/cli",
       15,
       {"core/numeric", "core/process", "proto/framing/grpc_log.h", "client/cli/console",
        "client/cli/commands"}},
      // The C++ code of the Python package. No other C++ code uses it.
      {"client/python/extension", 15,
       Join(
           {files,
            messages,
            feed,
            {"core/textproto", "core/process/allocator.h", "core/log", "core/metrics", "core/cache",
             "core/order", "core/compression", "core/example", "core/record", "core/record/source",
             "core/record/tfrecord", "core/record/arrays", "core/dataset", "core/plan",
             "proto/framing/grpc_log.h", "client/local", "client/look", "client/shard_set"}})},
  };
}

std::vector<Library> ForeignLibraries() {
  return {
      {"abseil", {"absl/"}, {}, {}},
      {"protobuf",
       {"google/protobuf/"},
       {"core/textproto/", "core/credentials/credential_json.", "core/spec/", "core/operations/",
        "core/dataset/", "core/plan/", "core/engine/", "proto/", "server/", "client/"},
       {}},
      {"gRPC", {"grpc/", "grpcpp/"}, {"proto/", "server/", "client/"}, {"client/emulator/"}},
      // Each SIMD kernel has a .cc of its own, which is compiled once per instruction set and needs
      // Highway. Only rooms with SIMD kernels may include Highway.
      {"Highway", {"hwy/"}, {"core/numeric/", "core/image/", "client/emulator/"}, {}},
      {"ISA-L",
       {"isa-l.h", "isa-l/"},
       {"core/checksum/crc32.cc", "core/checksum/crc32c.cc", "core/image/png/idat_inflater.cc"},
       {}},
      {"xxHash", {"xxhash.h"}, {"core/checksum/xxh3.cc"}, {}},
      {"zlib",
       {"zlib.h"},
       {"core/compression/deflate.cc", "core/compression/compressing_sink.cc"},
       {}},
      {"Zstandard",
       {"zstd.h", "zstd_errors.h"},
       {"core/compression/zstd.cc", "core/compression/compressing_sink.cc"},
       {}},
      // These files use OpenSSL to hash and sign tokens, to read certificates and keys, and to
      // observe bytes that gRPC's TLS has decrypted. client/cli/main.cc switches off OpenSSL's
      // clean-up at the program's exit. core/http/client_loop.cc ends its threads before that
      // clean-up. gRPC and libcurl call OpenSSL for TLS themselves.
      {"OpenSSL",
       {"openssl/"},
       {"core/access_token/token_table.cc", "core/credentials/signed_jwt.cc",
        "core/http/client_loop.cc", "server/listener/pem.cc", "server/listener/read_observer.cc",
        "server/listener/tls_context.cc", "server/listener/tls_files.cc", "client/cli/main.cc"},
       {}},
      {"libcurl", {"curl/"}, {"core/http/"}, {}},
      {"Boost", {"boost/"}, {"server/admin/http_messages.cc", "server/admin/http_server.cc"}, {}},
      {"Expat", {"expat.h"}, {"core/xml/xml_reader.cc"}, {}},
      {"oneDNN", {"dnnl", "oneapi/"}, {"client/emulator/array/onednn_gemm.cc"}, {}},
      // libjpeg is for the decoder, the encoder, code that both share, and code that replaces a
      // part of libjpeg. The headers that other rooms include may not include libjpeg.
      {"libjpeg",
       {"jpeglib.h", "jpegint.h", "jerror.h", "core/image/jpeg/jpeg_decompressor.h",
        "core/image/jpeg/jpeg_eighth.h", "core/image/jpeg/jpeg_entropy.h",
        "core/image/jpeg/jpeg_errors.h"},
       {"core/image/jpeg/unchecked_jpeg_decoder.cc", "core/image/jpeg/jpeg_encoder.cc",
        "core/image/jpeg/jpeg_decompressor.", "core/image/jpeg/jpeg_eighth.",
        "core/image/jpeg/jpeg_entropy.", "core/image/jpeg/jpeg_errors.",
        "core/image/jpeg/jpeg_library.cc"},
       {}},
      {"libspng", {"spng.h"}, {"core/image/png/png_decoder.cc"}, {}},
      // One .cc per program, which reads the program's command line.
      {"CLI11", {"CLI/"}, {"client/cli/console/command_line.cc", "server/main.cc"}, {}},
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
       "in core/, only core/concurrency and core/log read a clock",
       {"core/"},
       {"core/concurrency/", "core/log/"}},  // Log lines have a time of day.
      {R"(\bstd::(exp|exp2|expm1|log|log2|log10|log1p|pow|sin|cos|tan|asin|acos|atan|atan2|sinh|)"
       R"(cosh|tanh|cbrt|hypot|erf|erfc|tgamma|lgamma)\b)",
       "libm's exp() and others differ between CPUs; core/numeric has our own",
       {"core/", "client/emulator/"},
       // In this file only code for `double` uses libm. This code checks gradients, and computes
       // no result of a run.
       {"client/emulator/training/softmax_cross_entropy.cc"}},
      {R"(\bstd::(cout|cerr|clog)\b|\bf?printf\s*\(|\bstd::f?printf\s*\()",
       "core never prints",
       {"core/"},
       {"core/status/check.h"}},
      {R"(->\s*(master|main|coef|post|inputctl|marker|idct|upsample|cconvert|cquantize)\s*->)",
       "of libjpeg's private structures, code may use only the entropy decoder's",
       {"core/image/"},
       {}},
  };
}

std::vector<PrecompiledHeader> PrecompiledHeaders() {
  return {
      {"algorithm", {"std::all_of",      "std::any_of",      "std::clamp",       "std::copy",
                     "std::copy_n",      "std::count",       "std::count_if",    "std::equal",
                     "std::fill",        "std::fill_n",      "std::find",        "std::find_if",
                     "std::lower_bound", "std::max",         "std::max_element", "std::min",
                     "std::minmax",      "std::min_element", "std::none_of",     "std::nth_element",
                     "std::remove_if",   "std::reverse",     "std::sort",        "std::stable_sort",
                     "std::transform",   "std::unique",      "std::upper_bound"}},
      {"functional", {"std::cref", "std::function", "std::hash", "std::ref"}},
      {"map", {"std::map", "std::multimap"}},
      {"memory",
       {"std::enable_shared_from_this", "std::make_shared", "std::make_unique", "std::shared_ptr",
        "std::unique_ptr", "std::weak_ptr"}},
      {"optional", {"std::nullopt", "std::optional"}},
      {"string", {"std::string", "std::to_string"}},
      {"utility", {"std::exchange", "std::forward", "std::move", "std::pair", "std::swap"}},
      {"variant",
       {"std::get_if", "std::holds_alternative", "std::monostate", "std::variant", "std::visit"}},
      {"vector", {"std::vector"}},
      {"absl/container/flat_hash_map.h", {"absl::flat_hash_map"}},
      {"absl/status/statusor.h", {"absl::StatusOr"}},
      {"absl/strings/str_cat.h", {"absl::StrAppend", "absl::StrCat"}},
      {"absl/strings/str_format.h", {"absl::FPrintF", "absl::StrAppendFormat", "absl::StrFormat"}},
      {"absl/strings/str_join.h", {"absl::StrJoin"}},
      {"absl/strings/str_split.h", {"absl::StrSplit"}},
      {"absl/synchronization/mutex.h",
       {"absl::CondVar", "absl::Condition", "absl::Mutex", "absl::MutexLock"}},
      {"absl/time/time.h",
       {"absl::Duration", "absl::FormatTime", "absl::Milliseconds", "absl::ParseTime",
        "absl::Seconds", "absl::Time"}},
  };
}

}  // namespace

LayerRules SystoleRules() {
  return {
      .rooms = SystoleRooms(),
      .not_linked = {"proto/systole/v1", "client/cli", "client/python/extension"},
      .generated_targets = {{"systole_proto_messages", "proto/systole/v1"},
                            {"systole_proto_service", "proto/systole/v1"},
                            {"systole_proto_grpc", ""}},  // No room: gRPC's own messages.
      .libraries = ForeignLibraries(),
      .reserved_words = ReservedWords(),
      .precompiled = PrecompiledHeaders(),
      .system_headers = {"arpa/",    "dirent.h",    "dlfcn.h", "fcntl.h", "fnmatch.h",
                         "glob.h",   "immintrin.h", "linux/",  "link.h",  "netdb.h",
                         "netinet/", "poll.h",      "pwd.h",   "sched.h", "setjmp.h",
                         "signal.h", "malloc.h",    "stdio.h", "sys/",    "termios.h",
                         "unistd.h", "xmmintrin.h"},
      .max_lines = 450,
      .max_lines_of_header_and_sources = 650,
      .refused_folder_names = {"util", "utils", "common", "helpers", "helper", "misc", "base"},
      .folders_of_other_programs = {"deploy/kubernetes/base"},  // Kustomize's usual name.
      .top_level = {"CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md",
                    "LICENSE", "README.md", "SECURITY.md", "bench", "client", "core", "deploy",
                    "proto", "server", "tests"},
  };
}

}  // namespace systole::layers
