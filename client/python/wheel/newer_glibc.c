// The functions and variables of glibc 2.32 to 2.36 that Debian 12's libraries use, and that glibc 2.31
// lacks. A wheel brings this library, so that the libraries and programs in it also run with glibc 2.31.
// symbol_versions.py makes them use it. On a newer glibc its own functions may be found first, and do the
// same.
//
// All functions do what their manual pages say. They may be called from any thread.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

// The version of glibc's oldest functions.
#ifdef __aarch64__
#define FIRST_VERSION "GLIBC_2.17"
#else
#define FIRST_VERSION "GLIBC_2.2.5"
#endif

// glibc 2.32. Not 0 would mean that the process has a single thread, and that atomic operations may be
// left out. 0 is always right.
EXPORTED char __libc_single_threaded = 0;

// glibc 2.33. Before, these were inline functions of its headers. On 64-bit Linux the kernel's struct is
// glibc's, and stat64 is another name for stat.
EXPORTED int stat(const char* restrict path, struct stat* restrict status) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
}
EXPORTED int lstat(const char* restrict path, struct stat* restrict status) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
EXPORTED int fstat(int file, struct stat* status) {
  return (int)syscall(SYS_fstat, file, status);
}
EXPORTED int fstat64(int file, struct stat64* status) {
  return (int)syscall(SYS_fstat, file, status);
}

// glibc 2.36. For std::random_device. As glibc's, it waits until the kernel has randomness, and never
// returns anything else.
EXPORTED uint32_t arc4random(void) {
  uint32_t value;
  if (getentropy(&value, sizeof(value)) != 0) abort();
  return value;
}

// glibc 2.34 gave these functions of libresolv their names. Before, their names were macros for those with
// two underscores, which are still there.
struct __res_state;
__asm__(".symver __dn_expand, __dn_expand@" FIRST_VERSION);
__asm__(".symver __res_query, __res_query@" FIRST_VERSION);
__asm__(".symver __res_nsearch, __res_nsearch@" FIRST_VERSION);
extern int __dn_expand(const unsigned char*, const unsigned char*, const unsigned char*, char*, int);
extern int __res_query(const char*, int, int, unsigned char*, int);
extern int __res_nsearch(struct __res_state*, const char*, int, int, unsigned char*, int);
EXPORTED int dn_expand(const unsigned char* message, const unsigned char* end,
                       const unsigned char* from, char* to, int size) {
  return __dn_expand(message, end, from, to, size);
}
EXPORTED int res_query(const char* name, int class, int type, unsigned char* answer, int size) {
  return __res_query(name, class, type, answer, size);
}
EXPORTED int res_nsearch(struct __res_state* state, const char* name, int class, int type,
                         unsigned char* answer, int size) {
  return __res_nsearch(state, name, class, type, answer, size);
}

// glibc 2.34 runs the constructors of a program itself. Before, a program gave glibc the function that runs
// them: `initialize`, from the crt1.o of that time. The crt1.o of Debian 12 gives none. The loader has run
// DT_PREINIT_ARRAY and the constructors of all libraries by then.
typedef int Main(int, char**, char**);
typedef void Initializer(int, char**, char**);
typedef int Start(Main*, int, char**, Main* initialize, void (*finish)(void), void (*unload)(void), void*);

// Runs DT_INIT and DT_INIT_ARRAY of the program, as glibc 2.34 does.
static int RunConstructors(int argc, char** argv, char** environment) {
  const ElfW(Phdr)* headers = (const ElfW(Phdr)*)getauxval(AT_PHDR);
  const size_t header_count = getauxval(AT_PHNUM);
  ElfW(Addr) base = 0;  // Where the program lies in memory, less where it was linked to lie.
  const ElfW(Phdr)* dynamic = NULL;
  for (size_t i = 0; i < header_count; ++i) {
    if (headers[i].p_type == PT_PHDR) base = (ElfW(Addr))headers - headers[i].p_vaddr;
    if (headers[i].p_type == PT_DYNAMIC) dynamic = &headers[i];
  }
  if (dynamic == NULL) return 0;
  ElfW(Addr) init = 0, array = 0, array_bytes = 0;
  for (const ElfW(Dyn)* entry = (const ElfW(Dyn)*)(base + dynamic->p_vaddr);
       entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_INIT) init = entry->d_un.d_ptr;
    if (entry->d_tag == DT_INIT_ARRAY) array = entry->d_un.d_ptr;
    if (entry->d_tag == DT_INIT_ARRAYSZ) array_bytes = entry->d_un.d_val;
  }
  if (init != 0) ((Initializer*)(base + init))(argc, argv, environment);
  Initializer** const initializers = (Initializer**)(base + array);
  for (size_t i = 0; i < array_bytes / sizeof(Initializer*); ++i) {
    initializers[i](argc, argv, environment);
  }
  return 0;
}

EXPORTED int __libc_start_main(Main* main, int argc, char** argv, Main* initialize,
                               void (*finish)(void), void (*unload)(void), void* stack_end) {
  Start* const start = (Start*)dlsym(RTLD_NEXT, "__libc_start_main");
  if (start == NULL) abort();
  return start(main, argc, argv, initialize != NULL ? initialize : RunConstructors, finish, unload,
               stack_end);
}
