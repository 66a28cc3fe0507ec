"""Tasks that run in pods: nothing in this file knows of Legation."""

import json
import os
from datetime import timedelta

from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.sdk import DAG, task
from kubernetes.client import models as k8s

# Any image with a shell that the members' nodes can pull.
IMAGE = os.environ.get("POD_IMAGE", "busybox:1.37")


def in_pod(task_id: str, script: str, **settings) -> KubernetesPodOperator:
    """A task that runs a shell script in a pod of its own."""
    return KubernetesPodOperator(
        task_id=task_id,
        name=task_id,
        image=IMAGE,
        cmds=["sh", "-c", script],
        termination_grace_period=1,
        # Interval at which Airflow looks whether the pod has started.
        startup_check_interval_seconds=1,
        **settings,
    )


with DAG("results", schedule=None):
    measured = in_pod(
        "measured",
        """echo "measuring in $(hostname)"; echo '{"answer": 42}' >/airflow/xcom/return.json""",
        do_xcom_push=True,
    )

    @task
    def told(result: dict) -> None:
        """Shows what came back from the pod."""
        print(f"the pod has answered {json.dumps(result)}")

    told(measured.output)

with DAG("failing", schedule=None):
    in_pod("failing", "echo about to fail; exit 3")

with DAG("retried", schedule=None):
    in_pod(
        "retried",
        "echo this is try {{ ti.try_number }}; test {{ ti.try_number }} -gt 1",
        retries=1,
        retry_delay=timedelta(seconds=1),
    )

with DAG("killed", schedule=None):
    in_pod("killed", "sleep 600", execution_timeout=timedelta(seconds=10))

with DAG("deferred", schedule=None):
    in_pod(
        "deferred",
        """for i in 1 2 3 4 5 6; do echo "step $i"; sleep 1; done; echo '["done"]' >/airflow/xcom/return.json""",
        # The pod is Pending while it prepares, and the triggerer logs its events meanwhile.
        init_containers=[k8s.V1Container(name="prepare", image=IMAGE, command=["sleep", "8"])],
        deferrable=True,
        poll_interval=1,
        do_xcom_push=True,
    )

with DAG("lost", schedule=None):
    in_pod(
        "lost",
        "echo this is try {{ ti.try_number }}; test {{ ti.try_number }} -gt 1 || sleep 600",
        retries=1,
        retry_delay=timedelta(seconds=1),
    )

with DAG("long", schedule=None):
    in_pod("long", "for i in $(seq 12); do echo step $i; sleep 1; done")
