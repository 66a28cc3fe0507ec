"""An application of Spark that has done a job, and stays."""

import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("relayed").getOrCreate()
print(spark.range(1000).count())
time.sleep(3600)
