// Checks signatures of AWS Signature Version 4, and those of Cloud Storage, as a server does: from
// the received request alone. This code shares nothing with the code that signs.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_CORE_HTTP_SIGV4_VERIFIER_H_
#define SYSTOLE_TESTS_CORE_HTTP_SIGV4_VERIFIER_H_

#include "absl/status/status.h"
#include "core/http/http_message.h"
#include "tests/core/http/stub_http_server.h"

namespace systole {

// OK if `request` is signed with the keys of `expected`, for the region and service of `expected`,
// and if the signature covers all headers that a server may want signed: host, every x-amz and
// x-goog header, range and if-match. A request must not have both x-amz and x-goog headers. The
// error says what is missing or different. The date is taken from the request and not compared with
// any clock.
absl::Status VerifySigV4(const StubRequest& request, const AwsSigning& expected);

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_HTTP_SIGV4_VERIFIER_H_
