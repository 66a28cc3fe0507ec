"""Runs DAGs of a file one after another in this process, as `airflow dags test` does, and writes how their tasks ended.

Usage: run.py DAG_FILE RESULT_FILE DAG_ID...
"""

import json
import sys

from airflow.dag_processing.dagbag import DagBag


def main() -> None:
    """Runs what the command line names."""
    file, result, *dag_ids = sys.argv[1:]
    bag = DagBag(file)
    ended = {}
    for dag_id in dag_ids:
        print(f"=== {dag_id}", flush=True)
        run = bag.dags[dag_id].test()
        ended[dag_id] = {task.task_id: [task.state, task.try_number] for task in run.get_task_instances()}
    with open(result, "w", encoding="utf8") as out:
        json.dump(ended, out)


main()
