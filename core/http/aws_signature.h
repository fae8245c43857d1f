// Checks the values that libcurl needs to sign a request for AWS, and adds the headers that are
// missing. For http_client.cc and transfer.cc.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_HTTP_AWS_SIGNATURE_H_
#define SYSTOLE_CORE_HTTP_AWS_SIGNATURE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/http/http_headers.h"
#include "core/http/http_message.h"

namespace systole {

// InvalidArgument if a value has bytes that would end its field in the signature or in a header.
// The message names the field and never its value. `object` is HttpNames::object().
absl::Status CheckAwsSigning(const AwsSigning& sign, absl::string_view object);

// FailedPrecondition if a libcurl of this number (curl_version_info_data::version_num) does not
// sign the caller's headers. No version before 7.86 signs them. The loaded libcurl may differ from
// the one that Systole was built with. `version` is for the message.
absl::Status CheckLibcurlSigns(unsigned version_num, absl::string_view version);

// The headers that a signature needs besides those that libcurl makes.
HttpHeaders AwsHeaders(const AwsSigning& sign);

// The value of CURLOPT_AWS_SIGV4.
std::string AwsProvider(const AwsSigning& sign);

}  // namespace systole

#endif  // SYSTOLE_CORE_HTTP_AWS_SIGNATURE_H_
