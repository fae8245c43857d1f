// Objects behind a StubHttpServer. The server serves these objects as a good file server does:
// HEAD, one range, strong ETags, If-Match. A test may answer some requests in another way.
#ifndef SYSTOLE_TESTS_CORE_HTTP_STUB_OBJECTS_H_
#define SYSTOLE_TESTS_CORE_HTTP_STUB_OBJECTS_H_

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/concurrency/mutex.h"
#include "tests/core/http/faulty_http_server.h"
#include "tests/core/http/stub_http_server.h"

namespace systole {

// `answer`, without its body if `request` is a HEAD.
inline StubAnswer Bodiless(const StubRequest& request, StubAnswer answer) {
  if (request.method == "HEAD") answer.bytes.resize(answer.bytes.find("\r\n\r\n") + 4);
  return answer;
}

// The answer of a good server that has the object `bytes`: the whole object, or the range that is
// asked for. The answer has these headers, too.
inline StubAnswer ServeBytes(const StubRequest& request, absl::string_view bytes,
                             const HttpHeaders& headers) {
  const absl::string_view range = FindHeader(request.headers, "range");
  if (range.empty()) return Bodiless(request, Reply(200, bytes, headers));
  const std::pair<std::string, std::string> ends =
      absl::StrSplit(range.substr(range.find('=') + 1), '-');
  size_t first = 0;
  size_t last = 0;
  if (!absl::SimpleAtoi(ends.first, &first) || !absl::SimpleAtoi(ends.second, &last) ||
      first >= bytes.size()) {
    return Reply(416, "", {{"Content-Range", absl::StrCat("bytes */", bytes.size())}});
  }
  last = std::min(last, bytes.size() - 1);
  HttpHeaders all = headers;
  all.emplace_back("Content-Range", absl::StrCat("bytes ", first, "-", last, "/", bytes.size()));
  return Reply(206, bytes.substr(first, last - first + 1), all);
}

// Thread-safe.
class StubObjects {
 public:
  explicit StubObjects(const StubCertificate* certificate = nullptr)
      : server_([this](const StubRequest& request) { return Usual(request); }, certificate) {}

  // Puts an object, with a new ETag, and returns its address. `target` begins with '/'.
  std::string Put(const std::string& target, std::string bytes) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    objects_[target] = {std::move(bytes), absl::StrCat("\"", ++puts_, "\"")};
    return server().Url(target);
  }
  void Remove(const std::string& target) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    objects_.erase(target);
  }
  void SetFault(FaultyHttpServer::Fault fault) { server_.SetFault(std::move(fault)); }

  StubHttpServer& server() { return server_.server(); }

  // The usual answer to a request.
  StubAnswer Usual(const StubRequest& request) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    const auto found = objects_.find(request.target.substr(0, request.target.find('?')));
    if (found == objects_.end()) return Bodiless(request, Reply(404, "no such object"));
    const auto& [bytes, etag] = found->second;
    const absl::string_view match = FindHeader(request.headers, "if-match");
    if (!match.empty() && match != etag) return Bodiless(request, Reply(412, ""));
    return ServeBytes(request, bytes, {{"ETag", etag}, {"Accept-Ranges", "bytes"}});
  }

 private:
  Mutex mu_;
  std::map<std::string, std::pair<std::string, std::string>> objects_ ABSL_GUARDED_BY(mu_);
  int puts_ ABSL_GUARDED_BY(mu_) = 0;
  FaultyHttpServer server_;  // Last, because its threads use the members above.
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_HTTP_STUB_OBJECTS_H_
