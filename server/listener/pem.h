// Reads certificates and keys from PEM texts into OpenSSL's objects.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_LISTENER_PEM_H_
#define SYSTOLE_SERVER_LISTENER_PEM_H_

#include <memory>
#include <string>
#include <vector>

struct evp_pkey_st;
struct x509_st;

namespace systole {

struct FreePem {
  void operator()(x509_st* certificate) const;
  void operator()(evp_pkey_st* key) const;
};
using Certificate = std::unique_ptr<x509_st, FreePem>;
using PrivateKey = std::unique_ptr<evp_pkey_st, FreePem>;

// All certificates of `pem`, in order, up to the first that is malformed.
std::vector<Certificate> CertificatesIn(const std::string& pem);

// The first key of `pem`. Null if there is none, or if it has a password.
PrivateKey PrivateKeyIn(const std::string& pem);

}  // namespace systole

#endif  // SYSTOLE_SERVER_LISTENER_PEM_H_
