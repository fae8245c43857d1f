// Sets up the C library's malloc for a process that streams.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_PROCESS_ALLOCATOR_H_
#define SYSTOLE_CORE_PROCESS_ALLOCATOR_H_

#include <cstdint>

namespace systole {

// Makes glibc's malloc keep freed memory instead of returning it to the kernel, and use at most
// `arenas` arenas (heaps, each with a lock of its own). Call KeepFreedMemory() in the first line of
// main(), before a second thread is started: later calls do not change the number of arenas.
//
// gRPC takes memory for every piece that it reads from a socket, and another thread frees this
// memory a moment later. With malloc's defaults, the memory is returned to the kernel and requested
// again each time. Then page faults take half of a client's time, and the wire runs at half its
// rate (bench/wire_bench). Programs that link jemalloc or tcmalloc do not need this call. With
// other C libraries the call has no effect.
//
// The cost is memory. Blocks of 128 KiB and more go back to the kernel when they are freed. For
// smaller blocks, an arena keeps as much memory as these blocks ever took at the same time. Of the
// free memory, at most 256 MiB lie at the arena's end. The free memory between blocks in use has no
// limit. ReturnFreedMemory() returns the free memory to the kernel.
//
// For a client, one arena is best. For a server, one arena for each decoding thread and one for all
// other threads are best. README.md has figures. REQUIRES: arenas > 0.
void KeepFreedMemory(int arenas = 1);

// Returns to the kernel every whole page that malloc holds and the program does not use. Takes some
// 0.3 ms for each MiB that it returns. Threads that need memory of an arena wait while this arena
// is searched.
void ReturnFreedMemory();

// The resident memory that belongs to this process: memory from malloc and mmap, and the memory
// files that the process has mapped. The program's own file and other mapped files do not count,
// because they belong to the page cache. 0 if the kernel does not give the number.
int64_t OwnResidentBytes();

}  // namespace systole

#endif  // SYSTOLE_CORE_PROCESS_ALLOCATOR_H_
