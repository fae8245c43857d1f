// Thread-safe: no state.
#ifndef SYSTOLE_CORE_CHECKSUM_UPPER_PARTS_H_
#define SYSTOLE_CORE_CHECKSUM_UPPER_PARTS_H_

namespace systole {

// Call this after each call of ISA-L. ISA-L's code for AVX-512 leaves the upper parts of the vector
// registers in use. SSE code that runs afterwards (the compiler's own, and xxHash's) then takes up
// to four times as long, because each instruction has to preserve the bits above its own 128. Does
// nothing on aarch64, which does not have this problem.
void ClearUpperParts();

}  // namespace systole

#endif  // SYSTOLE_CORE_CHECKSUM_UPPER_PARTS_H_
