// How the C library's allocator behaves in a process that streams.
//
// Thread-safe; meant for the first line of main().
#ifndef SYSTOLE_CORE_PROGRAM_ALLOCATOR_H_
#define SYSTOLE_CORE_PROGRAM_ALLOCATOR_H_

namespace systole {

// Makes glibc's malloc keep what is freed instead of returning it to the kernel, and use at most
// `arenas` heaps, each with a lock of its own. Call it before a second thread is started: later
// calls do not change the number of heaps.
//
// gRPC takes memory for every piece it reads from a socket and frees it a moment later on another
// thread. With the defaults each round goes through the kernel: half of a client's time is page
// faults, and the wire runs at half its rate (bench/wire_bench). Costs up to 256 MiB that stay with
// the process once used. Programs that link jemalloc or tcmalloc have the same without this call.
// No effect on other C libraries.
//
// One arena is best for a client. Threads that decode images want one each: README.md has figures.
// REQUIRES: arenas > 0.
void KeepFreedMemory(int arenas = 1);

}  // namespace systole

#endif  // SYSTOLE_CORE_PROGRAM_ALLOCATOR_H_
