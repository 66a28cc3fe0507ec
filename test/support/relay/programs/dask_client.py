"""A client of Dask: computes on two workers, and brings a large result home. Its argument is the scheduler's name."""

import hashlib
import socket
import sys

from distributed import Client

client = Client(f"tcp://{sys.argv[1]}:8786", timeout="120s")
client.wait_for_workers(2, timeout="120s")
squares = client.map(lambda number: number * number, range(100))
print("sum", client.submit(sum, squares).result())
names = client.map(lambda _: socket.gethostname(), range(40), pure=False)
print("workers", len(set(client.gather(names))))
large = client.submit(lambda: bytes(range(256)) * 2**17).result()
print("large", len(large), hashlib.sha256(large).hexdigest() == hashlib.sha256(bytes(range(256)) * 2**17).hexdigest())
