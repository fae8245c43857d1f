#ifndef SYSTOLE_TESTS_SANITIZERS_H_
#define SYSTOLE_TESTS_SANITIZERS_H_

namespace systole {

// Whether this build runs under a sanitizer. A sanitizer makes code up to twenty times slower, and
// AddressSanitizer keeps shadow memory and freed memory.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
inline constexpr bool kSanitized = kAddressSanitizer || kThreadSanitizer;

}  // namespace systole

#endif  // SYSTOLE_TESTS_SANITIZERS_H_
