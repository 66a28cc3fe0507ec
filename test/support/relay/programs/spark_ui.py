"""A browser of Spark's UI. Its argument is the address."""

import json
import sys
import urllib.request


def get(path):
    return urllib.request.urlopen(sys.argv[1] + path, timeout=60).read().decode()


(application,) = json.loads(get("/api/v1/applications"))
print("application", application["name"])
jobs = json.loads(get(f"/api/v1/applications/{application['id']}/jobs"))
print("jobs", *{job["status"] for job in jobs})
print("page", "Spark Jobs" in get("/jobs/"))
