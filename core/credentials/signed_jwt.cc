#include "core/credentials/signed_jwt.h"

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/json/json_writer.h"
#include "openssl/bio.h"
#include "openssl/err.h"
#include "openssl/evp.h"
#include "openssl/pem.h"

namespace systole {
namespace {

// Without this, OpenSSL would ask on the terminal for the password of an encrypted key.
int NoPassword(char*, int, int, void*) { return -1; }

// OpenSSL keeps the reason of a failure in a queue of the thread. This function empties the queue.
// Otherwise a later failure in TLS would report the old reason.
template <typename T>
T WithoutNotes(T result) {
  ERR_clear_error();
  return result;
}

std::string HeaderOf(const JwtClaims& claims) {
  JsonWriter json;
  json.BeginObject().Field("alg", "RS256").Field("typ", "JWT");
  if (!claims.key_id.empty()) json.Field("kid", claims.key_id);
  json.EndObject();
  return json.text();
}

std::string TextOf(const JwtClaims& claims) {
  JsonWriter json;
  json.BeginObject()
      .Field("iss", claims.issuer)
      .Field("scope", claims.scope)
      .Field("aud", claims.audience)
      .Field("iat", int64_t{absl::ToUnixSeconds(claims.begin)})
      .Field("exp", int64_t{absl::ToUnixSeconds(claims.end)})
      .EndObject();
  return json.text();
}

}  // namespace

absl::StatusOr<std::string> SignedJwt(const JwtClaims& claims, absl::string_view private_key_pem) {
  const std::unique_ptr<BIO, int (*)(BIO*)> bytes(
      BIO_new_mem_buf(private_key_pem.data(), static_cast<int>(private_key_pem.size())), &BIO_free);
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(
      PEM_read_bio_PrivateKey(bytes.get(), nullptr, &NoPassword, nullptr), &EVP_PKEY_free);
  if (key == nullptr || EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_RSA) {
    return WithoutNotes(absl::InvalidArgumentError(
        "has a private_key that is not an RSA key in PEM without a password; make it anew"));
  }
  std::string token = absl::StrCat(absl::WebSafeBase64Escape(HeaderOf(claims)), ".",
                                   absl::WebSafeBase64Escape(TextOf(claims)));
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                   &EVP_MD_CTX_free);
  std::string signature(static_cast<size_t>(EVP_PKEY_get_size(key.get())), '\0');
  size_t size = signature.size();
  if (context == nullptr ||
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                     reinterpret_cast<const unsigned char*>(token.data()), token.size()) != 1) {
    return WithoutNotes(
        absl::InvalidArgumentError("has a private_key that cannot sign; make it anew"));
  }
  signature.resize(size);
  return absl::StrCat(token, ".", absl::WebSafeBase64Escape(signature));
}

}  // namespace systole
