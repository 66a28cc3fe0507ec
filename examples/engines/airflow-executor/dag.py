"""Tasks that each run in a worker pod of the KubernetesExecutor: nothing in this file knows of Legation."""

import socket
from datetime import datetime, timedelta

from airflow.sdk import DAG, get_current_context, task

with DAG("workers", schedule="@once", start_date=datetime(2026, 1, 1)):

    @task
    def measured() -> dict:
        """A result, from the worker pod that it was computed in."""
        print("measuring in", socket.gethostname())
        return {"answer": 42, "pod": socket.gethostname()}

    @task(retries=1, retry_delay=timedelta(seconds=0))
    def checked(result: dict) -> str:
        """Succeeds on its second try, in another pod than the first."""
        if get_current_context()["ti"].try_number == 1:
            raise ValueError("not at once")
        return f"{result['answer']} is right"

    checked(measured())
