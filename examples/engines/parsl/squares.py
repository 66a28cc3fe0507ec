"""Functions that run in pods: nothing in this file knows of Legation.

Usage: squares.py NAMESPACE IMAGE ADDRESS, the last being where pods reach this machine.
"""

import os
import sys

import parsl
from parsl import python_app
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.providers import KubernetesProvider


@python_app
def square(number: int) -> tuple:
    """A square, and the pod that it was computed in."""
    import socket
    import time

    time.sleep(1)
    return number * number, socket.gethostname()


@python_app
def refused() -> None:
    """An error that comes back as it was raised."""
    raise ValueError("not with me")


def main() -> None:
    """Computes in pods, and says what came back."""
    namespace, image, address = sys.argv[1:]
    provider = KubernetesProvider(
        namespace=namespace,
        image=image,
        init_blocks=2,
        max_blocks=2,
        init_cpu=0.1,
        max_cpu=1,
        init_mem="64Mi",
        max_mem="512Mi",
        # Where the worker's packages are, when the image has them in no folder of its own PATH.
        worker_init=f"cd /tmp; export PATH={os.path.dirname(sys.executable)}:$PATH",
    )
    executor = HighThroughputExecutor(
        label="pods",
        address=address,
        max_workers_per_node=1,
        # The keys would be files of this machine, which pods have no volume for.
        encrypted=False,
        worker_logdir_root="/tmp",
        provider=provider,
    )
    with parsl.load(Config(executors=[executor], strategy="none")):
        results = [square(number) for number in range(8)]
        for future in results:
            print("square", *future.result(), flush=True)
        try:
            refused().result()
        except ValueError as error:
            print("refused", error, flush=True)


if __name__ == "__main__":
    main()
