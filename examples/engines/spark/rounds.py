"""Adds up numbers in rounds, with a shuffle in each, until as many executors as told have taken part.

    spark-submit ... local:///.../rounds.py 3

With two executors at a time the third is one that Spark made for another that was lost.
"""

import socket
import sys
import time
from operator import add

from pyspark import SparkContext


def host(_: int) -> str:
    # Long enough that every executor gets some of the tasks.
    time.sleep(0.2)
    return socket.gethostname()


wanted = int(sys.argv[1])
spark = SparkContext()
seen: set[str] = set()
while len(seen) < wanted:
    total = spark.parallelize(range(100), 4).map(lambda n: (n % 3, n)).reduceByKey(add, 2).values().sum()
    hosts = sorted(set(spark.parallelize(range(8), 8).map(host).collect()))
    seen.update(hosts)
    print("sum", total, "on", *hosts, flush=True)
    time.sleep(1)
spark.stop()
