import { readFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { pods } from "../../../src/kube/resources.ts";
import { airflowHome } from "../../support/engines/airflow/home.ts";
import { IMAGE, onEngineClusters } from "../../support/engines/clusters.ts";
import { type EngineFolder, ensureEngine } from "../../support/engines/python.ts";
import { type EngineProgram, startProgram } from "../../support/engines/run.ts";
import { inPhase, podsOf } from "../../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../../support/harness/wait.ts";
import { ROOT } from "../../support/legation/cli.ts";

// Airflow itself, with the DAGs of examples/: it has the host's kubeconfig, and the namespace has one label.

const DAGS = join(ROOT, "examples", "engines", "airflow");
const RUN = join(ROOT, "test", "support", "engines", "airflow", "run.py");

const patient = { timeoutMs: 400_000 };

/** A DAG's log, and the results of its tasks. */
interface DagRun {
  readonly log: string;
  readonly tasks: unknown;
}

/** An Airflow that runs DAGs. */
interface Airflow {
  /** Returns its output so far. */
  readonly said: () => string;
  readonly ended: Promise<ReadonlyMap<string, DagRun>>;
}

onEngineClusters((clusters) => {
  let airflow: EngineFolder;
  beforeAll(async () => {
    airflow = await ensureEngine("airflow", (line) => process.stderr.write(`engines: ${line}\n`));
  }, 600_000);

  /** Runs DAGs one after another. */
  function start(namespace: string, ...dags: string[]): Airflow {
    const { host, directory } = clusters();
    const home = join(directory, dags.join("-"));
    const result = join(home, "result.json");
    const program: EngineProgram = startProgram(airflow.python, [RUN, join(DAGS, "pods.py"), result, ...dags], {
      env: { ...airflowHome(airflow, { home, dags: DAGS, kubeconfig: host.kubeconfig, namespace }), POD_IMAGE: IMAGE },
      cwd: home,
      logFile: join(home, "run.log"),
    });
    const ended = program.ended.then(({ code, output }) => {
      if (code !== 0) throw new Error(`Airflow ended with ${code}:\n${output.slice(-4000)}`);
      const tasks = JSON.parse(readFileSync(result, "utf8"));
      const logs = stripVTControlCharacters(output).split(/^=== /m).slice(1);
      return new Map(dags.map((dag, index) => [dag, { log: logs[index] ?? "", tasks: tasks[dag] }]));
    });
    return { said: () => stripVTControlCharacters(program.output()), ended };
  }

  /** Waits until nothing of a finished task is left, on the host or in the member. */
  async function nothingLeft(namespace: string): Promise<void> {
    const { client, member } = clusters();
    await eventuallyPasses(async () => {
      expect(await podsOf(client, namespace)).toEqual([]);
      expect(await podsOf(member, namespace)).toEqual([]);
    });
  }

  test.concurrent("returns results, logs, failures and retries of a KubernetesPodOperator", async ({
    expect,
    onTestFinished,
  }) => {
    const namespace = await clusters().namespace(onTestFinished);
    const ended = await start(namespace, "results", "failing", "retried").ended;

    const results = ended.get("results");
    expect(results?.tasks).toEqual({ measured: ["success", 1], told: ["success", 1] });
    expect(results?.log).toMatch(/\[base\] measuring in measured-/);
    expect(results?.log).toContain('the pod has answered {"answer": 42}');

    const failing = ended.get("failing");
    expect(failing?.tasks).toEqual({ failing: ["failed", 1] });
    expect(failing?.log).toContain("[base] about to fail");
    expect(failing?.log).toMatch(/Pod failing-\w+ returned a failure/);
    expect(failing?.log).toMatch(/'exit_code': 3/);

    const retried = ended.get("retried");
    expect(retried?.tasks).toEqual({ retried: ["success", 2] });
    expect(retried?.log).toMatch(/\[base\] this is try 1[\s\S]*\[base\] this is try 2/);
    await nothingLeft(namespace);
  });

  test.concurrent("ends a KubernetesPodOperator that times out, retries one whose pod is lost, and resumes a deferred one", async ({
    expect,
    onTestFinished,
  }) => {
    const namespace = await clusters().namespace(onTestFinished);
    const running = start(namespace, "killed", "lost", "deferred");
    const { member } = clusters();
    const lose = async (): Promise<void> => {
      const first = await eventually(
        async () =>
          (await podsOf(member, namespace)).find(
            (pod) => pod.metadata.name.startsWith("lost-") && inPhase("Running")(pod),
          ),
        { ...patient, what: "the first pod of the task" },
      );
      await member.delete(pods, { namespace, name: first.metadata.name });
    };
    const [ended] = await Promise.all([running.ended, lose()]);

    const killed = ended.get("killed");
    expect(killed?.tasks).toEqual({ killed: ["failed", 1] });
    expect(killed?.log).toContain("AirflowTaskTimeout");

    const lost = ended.get("lost");
    expect(lost?.tasks).toEqual({ lost: ["success", 2] });
    expect(lost?.log).toMatch(/Pod lost-\w+ returned a failure[\s\S]*\[base\] this is try 2/);

    const deferred = ended.get("deferred");
    expect(deferred?.tasks).toEqual({ deferred: ["success", 1] });
    expect(deferred?.log).toContain("Pausing task as DEFERRED");
    // The trigger itself lists events, by the name of the pod.
    expect(deferred?.log).toMatch(/The Pod has an Event: Successfully assigned \S+ to \S+/);
    expect(deferred?.log).toMatch(/step 1[\s\S]*step 6/);
    await nothingLeft(namespace);
  });

  // Last: it disturbs all others.
  test("goes on following the log of a KubernetesPodOperator while the controller is killed and restarted", async ({
    onTestFinished,
  }) => {
    const { legation } = clusters();
    const namespace = await clusters().namespace(onTestFinished);
    const { said, ended } = start(namespace, "long");
    const follows = eventually(() => /\[base\] step 2\s/.test(said()), { ...patient, what: "a log that is followed" });
    await Promise.race([follows, ended]);
    await legation.controller.stop("SIGKILL");
    await legation.controller.start();
    const long = (await ended).get("long");
    expect(long?.tasks).toEqual({ long: ["success", 1] });
    expect(long?.log).toMatch(/\[base\] step 1\s[\s\S]*log read interrupted[\s\S]*\[base\] step 12\s/);
    await nothingLeft(namespace);
  });
});
