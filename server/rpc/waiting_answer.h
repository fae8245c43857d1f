// A call of ResolveFeed that waits until its feed is made. No thread waits with it.
//
// Thread-safe. Owned by gRPC: deletes itself when the call is over.
#ifndef SYSTOLE_SERVER_RPC_WAITING_ANSWER_H_
#define SYSTOLE_SERVER_RPC_WAITING_ANSWER_H_

#include "grpcpp/support/server_callback.h"
#include "server/rpc/served_feeds.h"

namespace systole {

class WaitingAnswer final : public grpc::ServerUnaryReactor {
 public:
  // `feeds` gets this object's address as the id of the request.
  explicit WaitingAnswer(ServedFeeds& feeds) : feeds_(feeds) {}

  // The client is gone.
  void OnCancel() override { feeds_.Withdraw(this); }
  void OnDone() override { delete this; }

 private:
  ServedFeeds& feeds_;
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_RPC_WAITING_ANSWER_H_
