import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Pod } from "../../../../../src/api/kubernetes.ts";
import { apiRequest } from "../../../../support/clusters/api-request.ts";
import { IMAGE, onEngineClusters } from "../../../../support/engines/clusters.ts";
import { giveFiles } from "../../../../support/engines/given-files.ts";
import { startTekton, type Tekton } from "../../../../support/engines/tekton.ts";
import { applyAll, kubectl } from "../../../../support/harness/kubectl.ts";
import { evict, podGone, podOf, podsOf, podThat } from "../../../../support/harness/pods-of.ts";
import { makeVolume } from "../../../../support/harness/volumes.ts";
import { eventually, eventuallyPasses } from "../../../../support/harness/wait.ts";
import { ROOT } from "../../../../support/legation/cli.ts";

const SHIP = join(ROOT, "examples", "engines", "tekton", "pipeline.yaml");
const patient = { timeoutMs: 180_000, intervalMs: 500 };

/** The fields of a TaskRun or PipelineRun that these tests read. */
interface Run {
  readonly metadata: { readonly name: string };
  readonly status?: {
    readonly conditions?: readonly { readonly status: string; readonly reason: string; readonly message: string }[];
    readonly podName?: string;
    readonly results?: readonly { readonly name: string; readonly value: unknown }[];
    readonly retriesStatus?: readonly object[];
    readonly skippedTasks?: readonly { readonly name: string }[];
    readonly steps?: readonly { readonly name: string; readonly terminated?: { readonly exitCode: number } }[];
    readonly sidecars?: readonly { readonly terminated?: { readonly exitCode: number; readonly message?: string } }[];
  };
}

function step(name: string, text: string): object {
  return { name, image: IMAGE, command: ["sh", "-c", text] };
}

function taskRun(name: string, taskSpec: object, spec: object = {}): object {
  return { apiVersion: "tekton.dev/v1", kind: "TaskRun", metadata: { name }, spec: { taskSpec, ...spec } };
}

const isRunning = ({ status }: Pod): boolean =>
  status?.phase === "Running" && (status.containerStatuses ?? []).every(({ state }) => state?.running !== undefined);

onEngineClusters((clusters) => {
  let tekton: Tekton;
  beforeAll(async () => {
    tekton = await startTekton(clusters().host, clusters().directory);
  }, 900_000);
  afterAll(() => tekton?.stop(), 180_000);

  async function namespace(onFinished: (cleanUp: () => Promise<void>) => void): Promise<string> {
    const name = await clusters().namespace(onFinished);
    await giveFiles(clusters().west, name, tekton.given);
    return name;
  }

  /** Waits until a run has ended, and returns it. */
  async function ended(name: string, run: string): Promise<Run> {
    return eventually(async () => {
      const { text } = await apiRequest(clusters().host, "GET", `/apis/tekton.dev/v1/namespaces/${name}/${run}`);
      const found = JSON.parse(text) as Run;
      const status = found.status?.conditions?.[0]?.status;
      if (status === "True" || status === "False") return found;
      throw new Error(text);
    }, patient);
  }

  const outcome = ({ status }: Run): string | undefined => status?.conditions?.[0]?.reason;

  test.concurrent("returns a TaskRun's results to the byte and exit codes, and stops its sidecar", async ({
    onTestFinished,
  }) => {
    const name = await namespace(onTestFinished);
    // If the image is replaced by the same one, the second start ends at once.
    const waits = "test -e /work/started && exit 0; touch /work/started; trap 'exit 0' TERM; sleep 600 & wait";
    const sidecar = { ...step("registry", waits), volumeMounts: [{ name: "work", mountPath: "/work" }] };
    const all = taskRun("all", {
      results: [{ name: "greeting" }, { name: "list", type: "array" }],
      steps: [
        step("one", 'printf \' é\\n"x"\\n\' > $(results.greeting.path); printf \'["a","b"]\' > $(results.list.path)'),
        { ...step("two", "exit 5"), onError: "continue" },
        step("three", "test $(cat $(steps.step-two.exitCode.path)) = 5"),
      ],
      sidecars: [sidecar],
      volumes: [{ name: "work", emptyDir: {} }],
    });
    await applyAll(clusters().host, [all], ["-n", name]);
    const run = await ended(name, "taskruns/all");
    expect(outcome(run), JSON.stringify(run)).toBe("Succeeded");
    expect(run.status?.results).toMatchObject([
      { name: "greeting", value: ' é\n"x"\n' },
      { name: "list", value: ["a", "b"] },
    ]);
    expect(run.status?.steps?.map(({ terminated }) => terminated?.exitCode)).toEqual([0, 5, 0]);
    await eventuallyPasses(async () => {
      const { status } = await ended(name, "taskruns/all");
      expect(status?.sidecars).toMatchObject([
        { terminated: { exitCode: 0, message: expect.stringContaining("stopped by nop image") } },
      ]);
    }, patient);
    expect((await podsOf(clusters().client, name)).map(({ spec }) => spec?.nodeName)).toEqual(["legation-west"]);
  });

  test.concurrent("shares a claim between a PipelineRun's tasks by its affinity assistant, while Legation's controller is killed", async ({
    onTestFinished,
  }) => {
    const { host, client, member, legation, directory } = clusters();
    const name = await namespace(onTestFinished);
    const path = join(directory, name);
    mkdirSync(path);
    await makeVolume(member, { name, storageClassName: name, path }, onTestFinished);
    const ship = readFileSync(SHIP, "utf8").replaceAll("busybox:1.37", IMAGE).replace("standard", name);
    await kubectl(host, ["apply", "-n", name, "-f", "-"], { input: ship });
    const assistant = await eventually(
      async () => (await podsOf(client, name)).find(({ metadata }) => metadata.name.startsWith("affinity-assistant-")),
      patient,
    );
    await podThat(client, name, "ship-1-fetch-pod", ({ spec }) => spec?.nodeName === "legation-west", patient);
    await legation.controller.stop("SIGKILL");
    await legation.controller.start();
    const run = await ended(name, "pipelineruns/ship-1");
    expect(outcome(run), JSON.stringify(run)).toBe("Completed");
    expect(run.status?.skippedTasks).toMatchObject([{ name: "deploy" }]);
    expect(run.status?.results).toMatchObject([{ name: "digest", value: expect.stringMatching(/^[0-9a-f]{64}$/) }]);
    await podGone(member, name, assistant.metadata.name, undefined, patient);
    const tasks = (await podsOf(member, name)).map(({ metadata }) => metadata.name);
    expect(tasks).toEqual(["build", "fetch", "notify", "test-0", "test-1"].map((task) => `ship-1-${task}-pod`));
    await kubectl(host, ["delete", "pipelinerun/ship-1", "-n", name]);
    await eventuallyPasses(async () => {
      expect([...(await podsOf(client, name)), ...(await podsOf(member, name))]).toEqual([]);
    }, patient);
  });

  test.concurrent("ends a cancelled TaskRun in the member, and retries one whose pod is evicted there", async ({
    onTestFinished,
  }) => {
    const { host, client, member } = clusters();
    const name = await namespace(onTestFinished);
    const long = { steps: [step("step", "sleep 600")] };
    // The second attempt has another host name.
    const evicted = { steps: [step("step", "case $HOSTNAME in *-retry1) exit 0; esac; sleep 600")] };
    const runs = [taskRun("cancelled", long), taskRun("evicted", evicted, { retries: 1 })];
    await applyAll(host, runs, ["-n", name]);
    await Promise.all(["cancelled-pod", "evicted-pod"].map((pod) => podThat(client, name, pod, isRunning, patient)));
    await evict(member, name, "evicted-pod");
    const cancel = JSON.stringify({ spec: { status: "TaskRunCancelled" } });
    await kubectl(host, ["patch", "taskrun/cancelled", "-n", name, "--type=merge", "-p", cancel]);
    expect(outcome(await ended(name, "taskruns/cancelled"))).toBe("TaskRunCancelled");
    await podGone(client, name, "cancelled-pod", undefined, patient);
    expect(await podOf(member, name, "cancelled-pod")).toBeUndefined();
    const run = await ended(name, "taskruns/evicted");
    expect(outcome(run), JSON.stringify(run)).toBe("Succeeded");
    expect(run.status).toMatchObject({ podName: "evicted-pod-retry1" });
    expect(run.status?.retriesStatus).toHaveLength(1);
  });
});
