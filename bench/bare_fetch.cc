#include "bench/bare_fetch.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/http/http_client_options.h"
#include "core/status/check.h"

namespace systole::bench {

struct BareFetch::Request {
  CURL* easy = nullptr;
  std::vector<char> memory;
  size_t received = 0;
  size_t wanted = 0;

  // libcurl's callback.
  static size_t Receive(char* bytes, size_t one, size_t size, void* request) {
    auto& self = *static_cast<Request*>(request);
    SYSTOLE_CHECK(one == 1 && size <= self.wanted - self.received);
    std::memcpy(self.memory.data() + self.received, bytes, size);
    self.received += size;
    return size;
  }
};

BareFetch::BareFetch(int connections) : multi_(curl_multi_init()) {
  SYSTOLE_CHECK(multi_ != nullptr);
  for (int i = 0; i < connections; ++i) {
    Request& request = *requests_.emplace_back(std::make_unique<Request>());
    request.easy = curl_easy_init();
    SYSTOLE_CHECK(request.easy != nullptr);
    curl_easy_setopt(request.easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(request.easy, CURLOPT_PROXY, "");
    curl_easy_setopt(request.easy, CURLOPT_BUFFERSIZE, static_cast<long>(kReceiveBufferBytes));
    curl_easy_setopt(request.easy, CURLOPT_WRITEFUNCTION, &Request::Receive);
    curl_easy_setopt(request.easy, CURLOPT_WRITEDATA, &request);
    curl_easy_setopt(request.easy, CURLOPT_PRIVATE, &request);
  }
  curl_multi_setopt(static_cast<CURLM*>(multi_), CURLMOPT_MAXCONNECTS,
                    static_cast<long>(connections));
}

BareFetch::~BareFetch() {
  for (const auto& request : requests_) curl_easy_cleanup(request->easy);
  curl_multi_cleanup(static_cast<CURLM*>(multi_));
}

void BareFetch::Begin(Request& request, const FetchRange& range) {
  request.wanted = static_cast<size_t>(range.size);
  request.received = 0;
  if (request.memory.size() < request.wanted) request.memory.resize(request.wanted);
  curl_easy_setopt(request.easy, CURLOPT_URL, range.url.c_str());
  curl_easy_setopt(request.easy, CURLOPT_RANGE,
                   absl::StrCat(range.offset, "-", range.offset + range.size - 1).c_str());
  SYSTOLE_CHECK(curl_multi_add_handle(static_cast<CURLM*>(multi_), request.easy) == CURLM_OK);
}

void BareFetch::Fetch(absl::Span<const FetchRange> ranges) {
  auto* const multi = static_cast<CURLM*>(multi_);
  size_t begun = 0;
  size_t ended = 0;
  for (; begun < std::min(ranges.size(), requests_.size()); ++begun) {
    Begin(*requests_[begun], ranges[begun]);
  }
  while (ended < ranges.size()) {
    int running = 0;
    SYSTOLE_CHECK(curl_multi_perform(multi, &running) == CURLM_OK);
    int left = 0;
    bool added = false;
    while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
      CURL* const easy = message->easy_handle;
      const CURLcode result = message->data.result;
      Request* request = nullptr;
      long status = 0;
      curl_easy_getinfo(easy, CURLINFO_PRIVATE, &request);
      curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
      SYSTOLE_CHECK(result == CURLE_OK && status == 206 && request->received == request->wanted);
      curl_multi_remove_handle(multi, easy);
      ++ended;
      if (begun == ranges.size()) continue;
      Begin(*request, ranges[begun++]);
      added = true;
    }
    if (!added && ended < ranges.size()) {
      SYSTOLE_CHECK(curl_multi_poll(multi, nullptr, 0, 1000, nullptr) == CURLM_OK);
    }
  }
}

}  // namespace systole::bench
