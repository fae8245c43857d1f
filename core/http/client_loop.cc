#include "core/http/client_loop.h"

#include <signal.h>

#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "openssl/crypto.h"

namespace systole {
namespace {

// The longest time, in milliseconds, between two looks for abandoned transfers. The thread is woken
// for each such transfer, so this time matters only if a wake-up is lost.
constexpr int kLongestPollMs = 1000;

// Prepares libcurl once in the process, and for the whole life of the process.
CURLcode PrepareLibcurl() {
  static const CURLcode code = [] {
    // Registers OpenSSL's exit handler. Exit handlers that are registered later run before it
    // (HttpClient::End).
    OPENSSL_init_crypto(0, nullptr);
    return curl_global_init(CURL_GLOBAL_DEFAULT);
  }();
  return code;
}

// While this object lives, the thread that made it gets no signal that is sent to the process.
// Threads that are started by this thread meanwhile never get such a signal. The signals of a
// thread's own faults, such as SIGSEGV, are not blocked, so that their handlers report the fault.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) ::sigdelset(&all, fault);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_ = {};
};

absl::Status ClientEnded() { return absl::CancelledError("the HTTP client has ended"); }

}  // namespace

absl::StatusOr<std::unique_ptr<ClientLoop>> ClientLoop::Create(const HttpClientOptions& options) {
  if (const CURLcode code = PrepareLibcurl(); code != CURLE_OK) {
    return absl::ResourceExhaustedError(
        absl::StrCat("libcurl cannot be prepared: ", curl_easy_strerror(code)));
  }
  CURLM* const multi = curl_multi_init();
  if (multi == nullptr) return absl::ResourceExhaustedError("no memory for an HTTP client");
  // ClientLoop itself runs no more transfers than connections are allowed. These limits also count
  // connections that are kept for reuse. If a transfer needs a new connection, libcurl closes the
  // oldest kept connection.
  curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, long{options.max_connections});
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, long{options.max_connections});
  curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, long{options.max_connections_per_origin});
  curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
  std::unique_ptr<ClientLoop> loop = absl::WrapUnique(new ClientLoop(options, multi));
  {
    // The thread must not take a signal that the program waits for, and the program may set up its
    // signal handling later than it starts this thread. OpenSSL also writes to connections that
    // their peers have closed, and SIGPIPE would end the process. libcurl's threads inherit the
    // blocked signals.
    const SignalsBlocked signals_blocked;
    SYSTOLE_ASSIGN_OR_RETURN(loop->thread_, WorkerPool::Create(1));
  }
  loop->thread_->Submit([loop = loop.get()] { loop->Run(); });
  return loop;
}

ClientLoop::ClientLoop(const HttpClientOptions& options, CURLM* multi)
    : options_(options), multi_(multi) {}

void ClientLoop::End() {
  {
    MutexLock lock(mu_);
    ending_ = true;
    for (Sleeper* const sleeper : wanting_room_) sleeper->wake.Signal();
    for (Sleeper* const sleeper : wanting_time_) sleeper->wake.Signal();
  }
  curl_multi_wakeup(multi_);
  thread_.reset();
}

ClientLoop::~ClientLoop() {
  End();
  {
    MutexLock lock(mu_);
    while (calls_ > 0) calls_changed_.Wait(mu_);
  }
  curl_multi_cleanup(multi_);
}

ClientLoop::Call::Call(ClientLoop& loop)
    : loop_(loop), interruptible_(HeededInterruptFlag() != nullptr) {
  MutexLock lock(loop_.mu_);
  ++loop_.calls_;
  if (interruptible_) ++loop_.interruptible_calls_;
}

ClientLoop::Call::~Call() {
  MutexLock lock(loop_.mu_);
  --loop_.calls_;
  if (interruptible_) --loop_.interruptible_calls_;
  loop_.calls_changed_.SignalAll();
}

bool ClientLoop::HasRoom() const {
  return static_cast<int>(waiting_.size()) < options_.max_waiting;
}

void ClientLoop::TellOfRoom() {
  for (Sleeper* const sleeper : wanting_room_) sleeper->wake.Signal();
}

bool ClientLoop::AddBefore(absl::Duration deadline, const std::shared_ptr<Transfer>& transfer) {
  {
    MutexLock lock(mu_);
    if (!HasRoom()) {
      // The loop's thread may be in a long poll, which began when there was no flag to check. From
      // now on the flag of the calling thread must be checked.
      curl_multi_wakeup(multi_);
      Sleeper self;
      wanting_room_.insert(&self);
      for (absl::Duration left = deadline - now_();
           !HasRoom() && !ending_ && !InterruptRequested() && left > absl::ZeroDuration();
           left = deadline - now_()) {
        self.wake.WaitFor(mu_, left);
      }
      wanting_room_.erase(&self);
    }
    if (ending_ || InterruptRequested()) {
      transfer->EndWith(ending_ ? ClientEnded() : InterruptedError());
      return true;
    }
    if (!HasRoom()) return false;
    waiting_.push_back(transfer);
  }
  curl_multi_wakeup(multi_);
  return true;
}

absl::Status ClientLoop::SleepWhile(absl::FunctionRef<bool()> waits, absl::Duration time) {
  const absl::Duration end = now_() + time;
  MutexLock lock(mu_);
  curl_multi_wakeup(multi_);  // As in AddBefore().
  Sleeper self;
  wanting_time_.insert(&self);
  for (absl::Duration left = time;
       !ending_ && !InterruptRequested() && left > absl::ZeroDuration() && waits();
       left = end - now_()) {
    self.wake.WaitFor(mu_, left);
  }
  wanting_time_.erase(&self);
  if (ending_) return ClientEnded();
  return InterruptRequested() ? InterruptedError() : absl::OkStatus();
}

void ClientLoop::WakeSleepers() {
  MutexLock lock(mu_);
  for (Sleeper* const sleeper : wanting_time_) sleeper->wake.Signal();
}

void ClientLoop::Drop(const std::shared_ptr<Transfer>& transfer) {
  {
    MutexLock lock(mu_);
    if (std::erase(waiting_, transfer) > 0) {
      TellOfRoom();
      return;
    }
  }
  curl_multi_wakeup(multi_);
}

int ClientLoop::LongestPollMs() const {
  MutexLock lock(mu_);
  return interruptible_calls_ > 0 ? static_cast<int>(absl::ToInt64Milliseconds(kInterruptLook))
                                  : kLongestPollMs;
}

void ClientLoop::Run() {
  while (StartWaiting()) {
    int running = 0;
    curl_multi_perform(multi_, &running);
    const int freed = EndFinished() + EndAbandoned() + EndInterrupted();
    // If transfers have just ended, the poll does not wait, because waiting transfers may start. A
    // thread that begins to wait after LongestPollMs() was called ends the poll by a wake-up.
    curl_multi_poll(multi_, nullptr, 0, freed > 0 ? 0 : LongestPollMs(), nullptr);
  }
  while (!active_.empty()) Remove(active_.begin()->first)->EndWith(ClientEnded());
  MutexLock lock(mu_);
  for (const std::shared_ptr<Transfer>& transfer : waiting_) transfer->EndWith(ClientEnded());
  waiting_.clear();
}

bool ClientLoop::StartWaiting() {
  std::vector<std::shared_ptr<Transfer>> starting;
  {
    MutexLock lock(mu_);
    if (ending_) return false;
    size_t room = static_cast<size_t>(options_.max_connections) - active_.size();
    for (auto at = waiting_.begin(); at != waiting_.end() && room > 0;) {
      int& of_origin = active_by_origin_[(*at)->origin()];
      if (of_origin >= options_.max_connections_per_origin) {
        ++at;
        continue;
      }
      ++of_origin;
      --room;
      starting.push_back(std::move(*at));
      at = waiting_.erase(at);
    }
    if (!starting.empty()) TellOfRoom();
  }
  for (std::shared_ptr<Transfer>& transfer : starting) Start(std::move(transfer));
  return true;
}

void ClientLoop::Start(std::shared_ptr<Transfer> transfer) {
  CURL* const handle = transfer->handle();
  active_.emplace(handle, std::move(transfer));
  if (const CURLMcode code = curl_multi_add_handle(multi_, handle); code != CURLM_OK) {
    Remove(handle)->EndWith(absl::ResourceExhaustedError(
        absl::StrCat("libcurl cannot start a transfer: ", curl_multi_strerror(code))));
  }
}

std::shared_ptr<Transfer> ClientLoop::Remove(CURL* handle) {
  curl_multi_remove_handle(multi_, handle);
  const auto found = active_.find(handle);
  std::shared_ptr<Transfer> transfer = std::move(found->second);
  active_.erase(found);
  if (const auto of_origin = active_by_origin_.find(transfer->origin()); --of_origin->second == 0) {
    active_by_origin_.erase(of_origin);
  }
  return transfer;
}

int ClientLoop::EndFinished() {
  int freed = 0;
  int left = 0;
  while (const CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;  // Removing the handle frees the message.
    Remove(message->easy_handle)->EndWith(code);
    ++freed;
  }
  return freed;
}

int ClientLoop::EndAbandoned() {
  std::vector<CURL*> abandoned;
  for (const auto& [handle, transfer] : active_) {
    if (transfer->is_abandoned()) abandoned.push_back(handle);
  }
  for (CURL* const handle : abandoned) Remove(handle);
  return static_cast<int>(abandoned.size());
}

int ClientLoop::EndInterrupted() {
  const absl::Duration now = now_();
  if (now < next_look_) return 0;
  next_look_ = now + kInterruptLook;
  {
    MutexLock lock(mu_);
    if (interruptible_calls_ == 0) return 0;
    for (const std::set<Sleeper*>* const sleepers : {&wanting_room_, &wanting_time_}) {
      for (Sleeper* const sleeper : *sleepers) {
        // A sleeper looks at its flag under mu_ before it sleeps. So either the sleeper has seen
        // the raised flag, or it gets this signal.
        if (sleeper->flag != nullptr && sleeper->flag->is_raised()) sleeper->wake.Signal();
      }
    }
    const size_t ended = std::erase_if(waiting_, [](const std::shared_ptr<Transfer>& transfer) {
      const bool interrupted = transfer->is_interrupted();
      if (interrupted) transfer->EndWith(InterruptedError());
      return interrupted;
    });
    if (ended > 0) TellOfRoom();
  }
  std::vector<CURL*> interrupted;
  for (const auto& [handle, transfer] : active_) {
    if (transfer->is_interrupted()) interrupted.push_back(handle);
  }
  // Remove() comes before EndWith(): once the caller's thread goes on, nothing may be written to
  // the caller's memory.
  for (CURL* const handle : interrupted) Remove(handle)->EndWith(InterruptedError());
  return static_cast<int>(interrupted.size());
}

}  // namespace systole
