#include "tests/core/credentials/test_key.h"

#include "core/status/check.h"
#include "openssl/bio.h"
#include "openssl/evp.h"
#include "openssl/pem.h"
#include "openssl/rsa.h"

namespace systole {
namespace {

std::string PrivatePemOf(EVP_PKEY* key, const EVP_CIPHER* cipher) {
  BIO* const memory = BIO_new(BIO_s_mem());
  unsigned char password[] = "s3cr3t";
  SYSTOLE_CHECK(PEM_write_bio_PrivateKey(memory, key, cipher,
                                         cipher == nullptr ? nullptr : password,
                                         cipher == nullptr ? 0 : 6, nullptr, nullptr) == 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(memory, &text);
  std::string pem(text, static_cast<size_t>(size));
  BIO_free(memory);
  return pem;
}

}  // namespace

TestKey::TestKey() : key_(EVP_RSA_gen(2048)) { SYSTOLE_CHECK(key_ != nullptr); }

TestKey::~TestKey() { EVP_PKEY_free(key_); }

std::string TestKey::pem() const { return PrivatePemOf(key_, nullptr); }

bool TestKey::Verifies(absl::string_view text, absl::string_view signature) const {
  EVP_MD_CTX* const context = EVP_MD_CTX_new();
  const bool good =
      EVP_DigestVerifyInit(context, nullptr, EVP_sha256(), nullptr, key_) == 1 &&
      EVP_DigestVerify(context, reinterpret_cast<const unsigned char*>(signature.data()),
                       signature.size(), reinterpret_cast<const unsigned char*>(text.data()),
                       text.size()) == 1;
  EVP_MD_CTX_free(context);
  return good;
}

std::string TestKey::EncryptedPem() {
  const TestKey key;
  return PrivatePemOf(key.key_, EVP_aes_128_cbc());
}

std::string TestKey::EllipticPem() {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  std::string pem = PrivatePemOf(key, nullptr);
  EVP_PKEY_free(key);
  return pem;
}

}  // namespace systole
