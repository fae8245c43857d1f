// How the C library's allocator behaves in a process that streams.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_PROCESS_ALLOCATOR_H_
#define SYSTOLE_CORE_PROCESS_ALLOCATOR_H_

#include <cstdint>

namespace systole {

// Makes glibc's malloc keep freed memory instead of returning it to the kernel, and use at most
// `arenas` heaps, each with a lock of its own. Call it in the first line of main(), before a second
// thread is started: later calls do not change the number of heaps.
//
// gRPC takes memory for every piece it reads from a socket and frees it a moment later on another
// thread. With malloc's defaults, this memory is returned to the kernel and requested again each
// time. Then page faults take half of a client's time, and the wire runs at half its rate
// (bench/wire_bench). Programs that link jemalloc or tcmalloc do not need this call. With other C
// libraries it has no effect.
//
// The cost is memory. Blocks of 128 KiB and more go back to the kernel when they are freed. For
// smaller blocks, a heap keeps as much memory as these blocks ever took at the same time. The free
// memory at the heap's end is limited to 256 MiB. The free memory between blocks in use has no
// limit. ReturnFreedMemory() gives the free memory back.
//
// One arena is best for a client. For threads that decode images, one arena each is best. README.md
// has figures. REQUIRES: arenas > 0.
void KeepFreedMemory(int arenas = 1);

// Returns to the kernel every whole page that malloc holds and the program does not use. Takes some
// 0.3 ms for each MiB that it returns. Threads that need memory of the same heap wait meanwhile.
void ReturnFreedMemory();

// The resident memory that belongs to this process: memory from malloc and mmap, and memory files
// that it has mapped. Its program and other mapped files do not count: they belong to the page
// cache. 0 if the kernel does not give the number.
int64_t OwnResidentBytes();

}  // namespace systole

#endif  // SYSTOLE_CORE_PROCESS_ALLOCATOR_H_
