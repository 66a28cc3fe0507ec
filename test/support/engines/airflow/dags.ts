import { readFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { ROOT } from "../../legation/cli.ts";
import { type EngineClusters, IMAGE } from "../clusters.ts";
import type { EngineFolder } from "../python.ts";
import { type EngineProgram, startProgram } from "../run.ts";
import { airflowHome } from "./home.ts";

const DAGS = join(ROOT, "examples", "engines", "airflow");
const RUN = join(ROOT, "test", "support", "engines", "airflow", "run.py");

/** A DAG's log, and the results of its tasks. */
export interface DagRun {
  readonly log: string;
  readonly tasks: unknown;
}

/** An Airflow that runs DAGs. */
export interface Airflow {
  /** Returns its output so far. */
  readonly said: () => string;
  readonly ended: Promise<ReadonlyMap<string, DagRun>>;
}

/** Runs DAGs of examples/ one after another, with the host's kubeconfig. */
export function startDags(
  { host, directory }: EngineClusters,
  airflow: EngineFolder,
  namespace: string,
  ...dags: string[]
): Airflow {
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
