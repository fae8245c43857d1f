#include "server/listener/tls_context.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "openssl/err.h"
#include "openssl/ssl.h"
#include "openssl/x509.h"
#include "openssl/x509v3.h"
#include "server/listener/pem.h"

namespace systole {
namespace {

absl::Status Refused(const char* what) {
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat("OpenSSL does not take ", what));
}

}  // namespace

void FreeTlsContext::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

absl::StatusOr<TlsContext> MakeTlsContext(const TlsMaterial& material) {
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) {
    return Refused("a new context");
  }
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  const std::vector<Certificate> chain = CertificatesIn(material.certificate);
  if (chain.empty() || SSL_CTX_use_certificate(context.get(), chain.front().get()) != 1) {
    return Refused("--tls-certificate");
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context.get(), chain[i].get()) != 1) {
      return Refused("the chain in --tls-certificate");
    }
  }
  const PrivateKey key = PrivateKeyIn(material.key);
  if (key == nullptr || SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1) {
    return Refused("--tls-key");
  }
  if (material.client_ca.empty()) return context;
  for (const Certificate& authority : CertificatesIn(material.client_ca)) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), authority.get()) != 1 ||
        SSL_CTX_add_client_CA(context.get(), authority.get()) != 1) {
      return Refused("--tls-client-ca");
    }
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return context;
}

std::vector<std::string> CertificateNames(const ssl_st* connection) {
  std::vector<std::string> names;
  const Certificate certificate(SSL_get1_peer_certificate(connection));
  if (certificate == nullptr || SSL_get_verify_result(connection) != X509_V_OK) return names;
  struct FreeNames {
    void operator()(GENERAL_NAMES* all) const { GENERAL_NAMES_free(all); }
  };
  const std::unique_ptr<GENERAL_NAMES, FreeNames> all(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; all != nullptr && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(all.get(), i);
    if (name->type != GEN_DNS && name->type != GEN_URI) continue;
    // DNS names and URIs have the same type of value.
    const ASN1_IA5STRING* const text = name->d.dNSName;
    names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                       static_cast<size_t>(ASN1_STRING_length(text)));
  }
  return names;
}

}  // namespace systole
