#include "server/listener/pem.h"

#include "openssl/bio.h"
#include "openssl/err.h"
#include "openssl/evp.h"
#include "openssl/pem.h"
#include "openssl/x509.h"

namespace systole {
namespace {

struct FreeReader {
  void operator()(BIO* reader) const { BIO_free_all(reader); }
};

std::unique_ptr<BIO, FreeReader> Reader(const std::string& pem) {
  return std::unique_ptr<BIO, FreeReader>(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// Gives no password. Without this function OpenSSL would ask for one at the terminal.
int NoPassword(char*, int, int, void*) { return 0; }

}  // namespace

void FreePem::operator()(x509_st* certificate) const { X509_free(certificate); }

void FreePem::operator()(evp_pkey_st* key) const { EVP_PKEY_free(key); }

std::vector<Certificate> CertificatesIn(const std::string& pem) {
  std::vector<Certificate> all;
  const auto reader = Reader(pem);
  while (X509* const next = PEM_read_bio_X509(reader.get(), nullptr, NoPassword, nullptr)) {
    all.emplace_back(next);
  }
  ERR_clear_error();  // The error of the last read, which found no more.
  return all;
}

PrivateKey PrivateKeyIn(const std::string& pem) {
  PrivateKey key(PEM_read_bio_PrivateKey(Reader(pem).get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  return key;
}

}  // namespace systole
