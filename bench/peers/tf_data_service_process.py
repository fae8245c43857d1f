"""Runs the dispatcher or a worker of the tf.data service. Each has a process of its own, as in the
service's documentation. Arguments: `dispatcher`, or `worker PORT_OF_DISPATCHER`."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

import children

service = tf.data.experimental.service


def main():
    if sys.argv[1] == "dispatcher":
        server = service.DispatchServer(service.DispatcherConfig(port=0))
        children.serve(int(server.target.rsplit(":", 1)[1]))
    else:
        server = service.WorkerServer(service.WorkerConfig(
            dispatcher_address=f"localhost:{sys.argv[2]}", worker_address="localhost:%port%"))
        children.serve(0)


if __name__ == "__main__":
    main()
