import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { freePort } from "../../../support/clusters/ports.ts";
import { airflowHome } from "../../../support/engines/airflow/home.ts";
import { IMAGE, onEngineClusters, useEngine } from "../../../support/engines/clusters.ts";
import { AIRFLOW_SETTINGS } from "../../../support/engines/python.ts";
import { givePython } from "../../../support/engines/python-in-pods.ts";
import { type EngineProgram, startProgram } from "../../../support/engines/run.ts";
import { podsOf } from "../../../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../../../support/harness/wait.ts";
import { ROOT } from "../../../support/legation/cli.ts";

// Airflow's scheduler and API server run on the machine, its workers on Kubernetes: they have the host's
// kubeconfig, and the namespace has one label.

const EXECUTOR = join(ROOT, "examples", "engines", "airflow-executor");

onEngineClusters((clusters) => {
  const airflow = useEngine("airflow");

  /** Returns the pod template of a KubernetesExecutor: its image's files, and the folder of the DAGs. */
  function workerTemplate(server: string): object {
    const env = {
      ...AIRFLOW_SETTINGS,
      PATH: `${join(airflow().folder, "bin")}:/usr/bin:/bin`,
      AIRFLOW_HOME: "/tmp/airflow",
      AIRFLOW__CORE__DAGS_FOLDER: EXECUTOR,
      AIRFLOW__CORE__EXECUTION_API_SERVER_URL: server,
    };
    const container = {
      name: "base",
      image: IMAGE,
      env: Object.entries(env).map(([name, value]) => ({ name, value })),
      volumeMounts: [{ name: "dags", mountPath: EXECUTOR }],
    };
    const volumes = [{ name: "dags", hostPath: { path: EXECUTOR } }];
    const metadata = { name: "worker" };
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata,
      spec: { restartPolicy: "Never", containers: [container], volumes },
    };
  }

  test("runs every task of a KubernetesExecutor in a worker pod of the member", { timeout: 900_000 }, async ({
    onTestFinished,
  }) => {
    const { host, west, client, member, address, directory } = clusters();
    const namespace = await clusters().namespace(onTestFinished);
    await givePython(west, namespace, airflow());
    const home = join(directory, "executor");
    const port = await freePort();
    const server = `http://${address}:${port}/execution/`;
    const template = join(home, "worker.json");
    const env = {
      ...airflowHome(airflow(), { home, dags: EXECUTOR, kubeconfig: host.kubeconfig, namespace }),
      AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION: "False",
      AIRFLOW__CORE__EXECUTOR: "KubernetesExecutor",
      AIRFLOW__CORE__EXECUTION_API_SERVER_URL: server,
      AIRFLOW__API_AUTH__JWT_SECRET: randomBytes(64).toString("hex"),
      AIRFLOW__KUBERNETES_EXECUTOR__NAMESPACE: namespace,
      AIRFLOW__KUBERNETES_EXECUTOR__IN_CLUSTER: "False",
      AIRFLOW__KUBERNETES_EXECUTOR__CONFIG_FILE: host.kubeconfig,
      AIRFLOW__KUBERNETES_EXECUTOR__POD_TEMPLATE_FILE: template,
      AIRFLOW__KUBERNETES_EXECUTOR__WORKER_CONTAINER_REPOSITORY: "localhost/busybox",
      AIRFLOW__KUBERNETES_EXECUTOR__WORKER_CONTAINER_TAG: "1",
    };
    writeFileSync(template, JSON.stringify(workerTemplate(server)));
    const start = (...args: string[]): EngineProgram => {
      const logFile = join(home, `${args[0]}.log`);
      const program = startProgram(airflow().python, ["-m", "airflow", ...args], { env, cwd: home, logFile });
      onTestFinished(async () => {
        program.kill("SIGTERM");
        await program.ended;
      });
      return program;
    };
    start("api-server", "--apps=execution", `--host=${address}`, `--port=${port}`, "--workers=1");
    const parsed = await start("dags", "reserialize").ended;
    expect(parsed).toMatchObject({ code: 0 });
    // A worker that cannot reach it has used up its attempt.
    await eventually(async () => (await fetch(`${server}health`)).ok, {
      timeoutMs: 180_000,
      what: "Airflow's API server",
    });
    const scheduler = start("scheduler");

    onTestFinished(({ task }) => {
      // The logs of scheduler and workers are deleted with the folder.
      if (task.result?.state === "fail") process.stderr.write(scheduler.output().slice(-20_000));
    });
    const workers = new Map<string, string | undefined>();
    const finished = (): string[] =>
      [...stripVTControlCharacters(scheduler.output()).matchAll(/TaskInstance Finished: .*/g)].map(([line]) => {
        const [, task] = /task_id=(\w+)/.exec(line) ?? [];
        const [, attempt] = /try_number=(\d+)/.exec(line) ?? [];
        const [, state] = /executor_state=(\w+)/.exec(line) ?? [];
        return `${task} ${attempt} ${state}`;
      });
    await eventually(
      async () => {
        for (const { metadata, spec } of await podsOf(client, namespace)) workers.set(metadata.name, spec?.nodeName);
        return /DagRun Finished: .* state=/.test(stripVTControlCharacters(scheduler.output()));
      },
      { timeoutMs: 300_000, what: "the end of the run" },
    );
    expect(stripVTControlCharacters(scheduler.output())).toMatch(/DagRun Finished: dag_id=workers.* state=success/);
    // The scheduler sees workers' pods after that. Of two attempts whose pods end together it reports one.
    await eventuallyPasses(() =>
      expect(finished()).toEqual(
        expect.arrayContaining(["measured 1 success", expect.stringMatching(/^checked [12] success$/)]),
      ),
    );
    expect([...workers.keys()].sort()).toEqual([
      expect.stringMatching(/^workers-checked-/),
      expect.stringMatching(/^workers-checked-/),
      expect.stringMatching(/^workers-measured-/),
    ]);
    expect([...new Set(workers.values())]).toEqual(["legation-west"]);
    await eventuallyPasses(async () => {
      expect(await podsOf(client, namespace)).toEqual([]);
      expect(await podsOf(member, namespace)).toEqual([]);
    });
  });
});
