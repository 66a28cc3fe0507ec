import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { IMAGE } from "../clusters.ts";
import { airflowEnvironment, type EngineFolder } from "../python.ts";

/** An Airflow of its own. */
export interface AirflowHome {
  /** Folder of its configuration, logs and database. */
  readonly home: string;
  /** Folder of its DAGs. */
  readonly dags: string;
  readonly kubeconfig: string;
  /** Namespace of its pods. */
  readonly namespace: string;
}

/** Makes the folder, with a fresh database, and returns the variables that lead Airflow there. */
export function airflowHome({ folder }: EngineFolder, options: AirflowHome): NodeJS.ProcessEnv {
  const { home, dags, kubeconfig, namespace } = options;
  mkdirSync(home, { recursive: true });
  copyFileSync(join(folder, "home", "airflow.db"), join(home, "airflow.db"));
  // The sidecar's image is a setting, for clusters without a way to Docker Hub.
  const extra = { kube_config_path: kubeconfig, namespace, xcom_sidecar_container_image: IMAGE };
  return {
    ...airflowEnvironment(home),
    AIRFLOW__CORE__DAGS_FOLDER: dags,
    AIRFLOW_CONN_KUBERNETES_DEFAULT: JSON.stringify({ conn_type: "kubernetes", extra }),
  };
}
