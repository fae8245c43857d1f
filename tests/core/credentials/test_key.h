// Private keys for tests.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CORE_CREDENTIALS_TEST_KEY_H_
#define SYSTOLE_TESTS_CORE_CREDENTIALS_TEST_KEY_H_

#include <string>

#include "absl/strings/string_view.h"

struct evp_pkey_st;

namespace systole {

// A new RSA key.
class TestKey {
 public:
  TestKey();
  ~TestKey();
  TestKey(const TestKey&) = delete;
  TestKey& operator=(const TestKey&) = delete;

  std::string pem() const;
  // Whether `signature` is this key's RS256 signature of `text`.
  bool Verifies(absl::string_view text, absl::string_view signature) const;

  // Keys that cannot be used: one with a password, and one of another kind.
  static std::string EncryptedPem();
  static std::string EllipticPem();

 private:
  evp_pkey_st* const key_;
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_CREDENTIALS_TEST_KEY_H_
