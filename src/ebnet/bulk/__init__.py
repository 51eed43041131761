"""Predictions for many images: folders and tar shards to a table, on all cores, resumable.

ebnet.bulk.predict_shard("net.ebn", "shard-000.tar")       # one shard as a task, for a cluster's scheduler
ebnet.bulk.predict_all("net.ebn", ["images/"], "out.csv")  # everything on this machine
"""

from ebnet.bulk.job import Outcome, predict_all
from ebnet.bulk.rows import predict_shard

__all__ = ["Outcome", "predict_all", "predict_shard"]
