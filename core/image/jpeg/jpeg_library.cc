#include "core/image/jpeg/jpeg_library.h"

#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
// Included last, because it needs <cstdio> and defines many macros.
#include "jpeglib.h"

namespace systole {
namespace {

#define SYSTOLE_STRINGIZE_(x) #x
#define SYSTOLE_STRINGIZE(x) SYSTOLE_STRINGIZE_(x)
constexpr char kHeadersVersion[] = SYSTOLE_STRINGIZE(LIBJPEG_TURBO_VERSION);
#undef SYSTOLE_STRINGIZE
#undef SYSTOLE_STRINGIZE_

struct KnownBuild {
  const char* build_id;
  const char* version;
};

// Build ids, as `readelf -n` of the library prints them. Add a build here once the tests of golden
// digests pass with it.
constexpr KnownBuild kKnownBuilds[] = {
    // Debian 12: libjpeg62-turbo 1:2.1.5-2 of amd64 and of arm64.
    {"75b71ddb85234be3659c097f2561a765b45993bd", "2.1.5"},
    {"d4f1a722750c068981dd36c9a7b90e87f88fa7f5", "2.1.5"},
};

// Enough for SHA-1's 20 bytes, and for other build ids. The id is part of the content version,
// whose length is limited.
constexpr size_t kMaxBuildIdBytes = 32;

struct MappedLibrary {
  std::string build_id;  // Empty if there is none, or if libjpeg is linked into this module.
  uintptr_t code_begin = 0;
  uintptr_t code_end = 0;
};

struct Search {
  uintptr_t address;      // An address in the library.
  uintptr_t own_address;  // An address in the module that this code is in.
  MappedLibrary found;
};

// dl_iterate_phdr calls this for each module until it returns something other than 0.
int VisitModule(dl_phdr_info* info, size_t, void* data) {
  Search& search = *static_cast<Search*>(data);
  const absl::Span<const ElfW(Phdr)> headers(info->dlpi_phdr, info->dlpi_phnum);
  const auto begin_of = [info](const ElfW(Phdr) & header) -> uintptr_t {
    return info->dlpi_addr + header.p_vaddr;
  };
  const auto is_mapped = [&](uintptr_t begin, size_t size) {
    return std::any_of(headers.begin(), headers.end(), [&](const ElfW(Phdr) & header) {
      return header.p_type == PT_LOAD && begin >= begin_of(header) && size <= header.p_memsz &&
             begin - begin_of(header) <= header.p_memsz - size;
    });
  };
  if (!is_mapped(search.address, 1)) return 0;
  // The build id of a program that libjpeg is linked into is not libjpeg's.
  const bool is_own = is_mapped(search.own_address, 1);
  for (const ElfW(Phdr) & header : headers) {
    const uintptr_t begin = begin_of(header);
    if (header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0) {
      if (search.found.code_end == 0) search.found.code_begin = begin;
      search.found.code_end = begin + header.p_memsz;
    }
    if (header.p_type == PT_NOTE && !is_own && search.found.build_id.empty() &&
        is_mapped(begin, header.p_memsz)) {
      search.found.build_id = BuildIdOfNotes(
          absl::string_view(reinterpret_cast<const char*>(begin), header.p_memsz), header.p_align);
    }
  }
  return 1;
}

const MappedLibrary& Library() {
  static const MappedLibrary& library = *new MappedLibrary([] {
    jpeg_error_mgr errors;
    // `error_exit` points into libjpeg itself. By contrast, the address of a function that libjpeg
    // exports may be that of a mere jump in this program.
    Search search = {.address = reinterpret_cast<uintptr_t>(jpeg_std_error(&errors)->error_exit),
                     .own_address = reinterpret_cast<uintptr_t>(&kKnownBuilds)};
    dl_iterate_phdr(VisitModule, &search);
    return search.found;
  }());
  return library;
}

}  // namespace

std::string BuildIdOfNotes(absl::string_view notes, size_t alignment) {
  const size_t align = alignment == 8 ? 8 : 4;
  const auto padded = [align](size_t bytes) { return (bytes + align - 1) / align * align; };
  ElfW(Nhdr) header;
  while (notes.size() >= sizeof(header)) {
    std::memcpy(&header, notes.data(), sizeof(header));
    notes.remove_prefix(sizeof(header));
    const size_t name_bytes = padded(header.n_namesz);
    if (name_bytes > notes.size() || header.n_descsz > notes.size() - name_bytes) break;
    if (header.n_type == NT_GNU_BUILD_ID &&
        notes.substr(0, header.n_namesz) == absl::string_view("GNU\0", 4) && header.n_descsz >= 1 &&
        header.n_descsz <= kMaxBuildIdBytes) {
      return absl::BytesToHexString(notes.substr(name_bytes, header.n_descsz));
    }
    notes.remove_prefix(std::min(notes.size(), name_bytes + padded(header.n_descsz)));
  }
  return "";
}

std::string JpegVersionOfBuild(absl::string_view build_id) {
  for (const KnownBuild& known : kKnownBuilds) {
    if (build_id == known.build_id) return absl::StrCat("libjpeg-turbo-", known.version);
  }
  if (build_id.empty()) return absl::StrCat("libjpeg-unknown-headers-", kHeadersVersion);
  return absl::StrCat("libjpeg-build-", build_id);
}

const std::string& JpegLibraryVersion() {
  static const std::string& version = *new std::string(JpegVersionOfBuild(Library().build_id));
  return version;
}

bool IsJpegLibraryCode(uintptr_t address) {
  return address >= Library().code_begin && address < Library().code_end;
}

}  // namespace systole
