"""A browser of Dask's dashboard: its page, and its figures by a WebSocket. Its argument is the address."""

import sys
import urllib.request

from bokeh.client import pull_session

page = urllib.request.urlopen(f"{sys.argv[1]}/status", timeout=60).read().decode()
print("page", "Dask" in page and "bokeh" in page)
with pull_session(url=f"{sys.argv[1]}/status") as session:
    print("figures", len(session.document.roots) > 0)
