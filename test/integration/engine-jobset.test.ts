import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { startOperator } from "../support/engines/operator.ts";
import { ensurePrograms } from "../support/engines/programs.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster } from "../support/harness/clusters.ts";
import { applyAll, kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { podsOf } from "../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";

const legation = useLegation();
const clients = useClients();
const patient = { timeoutMs: 120_000, intervalMs: 500 };
const ENGINE_STARTS_MS = 180_000;

/** Runs the JobSet controller for all tests of the file. */
beforeAll(async () => {
  const folder = await ensurePrograms("jobset", () => {});
  const directory = mkdtempSync(join(tmpdir(), "legation-jobset-"));
  const manifests = join(folder, "config", "default");
  afterFile(async () => rmSync(directory, { recursive: true, force: true }));
  const operator = await startOperator({ host: hostCluster(), program: join(folder, "jobset"), manifests, directory });
  afterFile(() => operator.stop());
}, ENGINE_STARTS_MS);

async function apply(namespace: string, ...objects: readonly object[]): Promise<void> {
  await applyAll(hostCluster(), objects, ["-n", namespace]);
}

/** Returns a pod template whose container behaves on kwok's nodes as its annotations say. */
function template(behaviour: Record<string, string>): object {
  const annotations = Object.fromEntries(Object.entries(behaviour).map(([key, value]) => [`kwok.test/${key}`, value]));
  const resources = { requests: { cpu: "1" } };
  const containers = [{ name: "main", image: "localhost/busybox:1", resources }];
  return { metadata: { annotations }, spec: { restartPolicy: "Never", containers } };
}

function replicatedJob(name: string, pods: number, behaviour: Record<string, string>, more: object = {}): object {
  const job = { completionMode: "Indexed", completions: pods, parallelism: pods, backoffLimit: 0 };
  return { name, replicas: 1, template: { spec: { ...job, template: template(behaviour) } }, ...more };
}

/** Fails once as a whole, with its driver; its workers are created when the driver runs. */
function jobSet(name: string): object {
  const driver = replicatedJob("driver", 1, { outcome: "failed", "ends-after": "15s" });
  const ready = { dependsOn: [{ name: "driver", status: "Ready" }] };
  return {
    apiVersion: "jobset.x-k8s.io/v1alpha2",
    kind: "JobSet",
    metadata: { name },
    spec: {
      failurePolicy: { maxRestarts: 1 },
      replicatedJobs: [driver, replicatedJob("worker", 2, { outcome: "running" }, ready)],
    },
  };
}

const TIMES = ["lastTransitionTime", "startTime", "completionTime"];

async function statusOf(namespace: string, kind: string, name: string): Promise<unknown> {
  const text = await kubectl(hostCluster(), ["get", "-n", namespace, kind, name, "-o", "jsonpath={.status}"]);
  return JSON.parse(text || "{}", (key, value: unknown) => (TIMES.includes(key) ? undefined : value));
}

async function inMembers(namespace: string): Promise<string[]> {
  const found = await Promise.all([podsOf(clients().west, namespace), podsOf(clients().east, namespace)]);
  return found.flat().map(({ metadata }) => metadata.name);
}

test("restarts and fails a JobSet as on a plain cluster, each time in one member, and leaves nothing there", async () => {
  const annotations = { "legation.dev/group-by": "label:jobset.sigs.k8s.io/jobset-name" };
  const labels = { "legation.dev/delegation": "all" };
  const plain = await freshNamespace(hostCluster(), { prefix: "jobset" });
  const namespace = await freshNamespace(hostCluster(), { prefix: "jobset", labels, annotations });
  await Promise.all([plain, namespace].map((each) => apply(each, jobSet("train"))));
  await eventuallyPasses(async () => {
    const nodes = (await podsOf(clients().host, namespace)).map(({ spec }) => spec?.nodeName);
    expect(nodes).toHaveLength(3);
    expect(new Set(nodes)).toHaveLength(1);
    expect(nodes[0]).toMatch(/^legation-/);
  }, patient);
  await legation().controller.stop("SIGKILL");
  await legation().controller.start();
  await kubectl(hostCluster(), ["wait", "-n", namespace, "jobset/train", "--for=condition=Failed", "--timeout=100s"], {
    timeoutMs: 110_000,
  });
  await eventuallyPasses(async () => {
    const [ours, theirs] = [await statusOf(namespace, "jobset", "train"), await statusOf(plain, "jobset", "train")];
    expect(ours).toEqual(theirs);
    expect(ours).toMatchObject({ restarts: 1, terminalState: "Failed" });
  }, patient);
  await Promise.all(
    [plain, namespace].map((each) => kubectl(hostCluster(), ["delete", "-n", each, "jobset", "train"])),
  );
  await eventually(async () => (await inMembers(namespace)).length === 0, patient);
}, 300_000);
