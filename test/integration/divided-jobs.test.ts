import { describe, expect, onTestFinished, test } from "vitest";
import { DELEGATION_LABEL, WHOLE_KEY } from "../../src/api/keys.ts";
import type { Job, Stored } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { events, jobs, pods } from "../../src/kube/resources.ts";
import { ends, stays, template } from "../support/builders/workload.ts";
import { legationWrites } from "../support/delegated/writes.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { useQuickProbes } from "../support/harness/quick-probes.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { runCli } from "../support/legation/cli.ts";
import { legationOn } from "../support/legation/process.ts";

const legation = useLegation();
const clients = useClients();

const TWO_TO_ONE = '{"clusters": {"west": {"weight": 2}, "east": {"weight": 1}}}';
const EVEN = '{"clusters": {"*": {"weight": 1}}}';

function newNamespace(): Promise<string> {
  const labels = { [DELEGATION_LABEL]: "annotated" };
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  return freshNamespace(all, { labels, onFinished: afterFile });
}

function manifest(
  spec: object,
  { preferences = TWO_TO_ONE, pod = ends(0) }: { readonly preferences?: string; readonly pod?: Record<string, string> },
): Job {
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: "sum", annotations: { [WHOLE_KEY]: "true", "legation.dev/scheduling-preferences": preferences } },
    spec: { template: template({ restartPolicy: "Never" }, pod) as NonNullable<Job["spec"]>["template"], ...spec },
  };
}

function create(
  namespace: string,
  spec: object,
  options: { readonly preferences?: string; readonly pod?: Record<string, string> } = {},
): Promise<Stored<Job>> {
  const job = manifest(spec, options);
  return clients().host.create(jobs, { ...job, metadata: { ...job.metadata, namespace } });
}

function find(client: ClusterClient, namespace: string): Promise<Stored<Job> | undefined> {
  return client.find(jobs, { namespace, name: "sum" });
}

function specOf(job: Job | undefined): object {
  const { completions, parallelism, suspend } = job?.spec ?? {};
  return { completions, parallelism, ...(suspend === true ? { suspend } : {}) };
}

function conditionsOf(job: Job | undefined): string[] {
  return job?.status?.conditions?.filter(({ status }) => status === "True").map(({ type }) => type) ?? [];
}

async function hostShows(namespace: string, status: object, options: { timeoutMs?: number } = {}): Promise<void> {
  await eventuallyPasses(
    async () => expect((await find(clients().host, namespace))?.status).toMatchObject(status),
    options,
  );
}

function hostJob(namespace: string, condition: string, timeoutMs = 60_000): Promise<Stored<Job>> {
  return eventually(
    async () => {
      const job = await find(clients().host, namespace);
      return conditionsOf(job).includes(condition) ? job : undefined;
    },
    { what: `the host's Job with condition ${condition}`, timeoutMs },
  );
}

async function copies(namespace: string): Promise<(Stored<Job> | undefined)[]> {
  return Promise.all([find(clients().west, namespace), find(clients().east, namespace)]);
}

/** Creates a Job of six pods at once that run until they are ended, four in west and two in east. */
async function running(): Promise<string> {
  const namespace = await newNamespace();
  await create(namespace, { completions: 12, parallelism: 6 }, { pod: stays("running") });
  await hostShows(namespace, { active: 6 });
  return namespace;
}

function patchHost(namespace: string, spec: object): Promise<unknown> {
  return clients().host.patch(jobs, { namespace, name: "sum" }, { type: "merge", body: { spec } });
}

describe.concurrent("a Job with legation.dev/whole and scheduling-preferences", () => {
  test("runs its completions in proportion in the members, and shows the sum", async () => {
    const namespace = await newNamespace();
    const { host, west, east } = clients();
    await create(namespace, { completions: 30, parallelism: 6 });
    await kubectl(hostCluster(), ["wait", "--for=condition=complete", "job/sum", "-n", namespace, "--timeout=60s"]);
    const here = await hostJob(namespace, "Complete");
    const [inWest, inEast] = await copies(namespace);
    expect([inWest, inEast].map((copy) => copy?.spec?.completions)).toEqual([20, 10]);
    expect([inWest, inEast].map((copy) => copy?.status?.succeeded)).toEqual([20, 10]);
    expect(here.status).toMatchObject({ succeeded: 30 });
    expect(here.status?.active ?? 0).toBe(0);
    const times = [inWest, inEast].map((copy) => copy?.status);
    expect(here.status?.startTime).toBe(times.map((status) => status?.startTime ?? "").sort()[0]);
    expect(here.status?.completionTime).toBe(times.map((status) => status?.completionTime ?? "").sort()[1]);
    expect((await host.list(pods, { namespace })).items).toEqual([]);
    const shown = await legationOn(hostCluster(), "status", "job/sum", "-n", namespace);
    expect(shown.stdout).toMatch(/: whole: Complete: 30 of 30 succeeded, 0 active\n/);
    expect(shown.stdout).toMatch(/\neast +Complete +10 of 10 +0 .*\nwest +Complete +20 of 20 +0 /);
    const { items } = await host.list(events, { namespace });
    const placed = items.find(({ involvedObject: { kind }, reason }) => kind === "Job" && reason === "Placed");
    expect(placed?.message).toBe("completions by member: east 10, west 20");
    const { others } = await legationWrites(hostCluster(), namespace);
    expect(others[0]).toBe("patch jobs");
    expect(others.length).toBeLessThan(15);

    await kubectl(hostCluster(), ["delete", "job", "sum", "-n", namespace, "--timeout=60s"]);
    expect(await copies(namespace)).toEqual([undefined, undefined]);
    await eventuallyPasses(async () => {
      const left = await Promise.all([west, east].map((client) => client.list(pods, { namespace })));
      expect(left.flatMap(({ items: own }) => own)).toEqual([]);
    });
    for (const member of ["west", "east"] as const) {
      const writes = (await legationWrites(memberCluster(member), namespace)).others;
      expect([writes[0], writes.at(-1)]).toEqual(["create jobs", "delete jobs"]);
    }
  });

  test("is divided anew when its parallelism changes, and suspended and resumed in all members", async () => {
    const namespace = await running();
    expect((await copies(namespace)).map(specOf)).toEqual([
      { completions: 8, parallelism: 4 },
      { completions: 4, parallelism: 2 },
    ]);
    await patchHost(namespace, { parallelism: 3 });
    await hostShows(namespace, { active: 3 });
    expect((await copies(namespace)).map(specOf)).toEqual([
      { completions: 8, parallelism: 2 },
      { completions: 4, parallelism: 1 },
    ]);
    await patchHost(namespace, { suspend: true });
    await hostJob(namespace, "Suspended");
    const suspended = await find(clients().host, namespace);
    expect(suspended?.status?.active ?? 0).toBe(0);
    await patchHost(namespace, { suspend: false });
    await hostShows(namespace, { active: 3 });
    expect(conditionsOf(await find(clients().host, namespace))).toEqual([]);
  });

  test("fails when a share fails, and the other is suspended, its pods ended", async () => {
    const namespace = await running();
    const { host, west, east } = clients();
    const [pod] = (await west.list(pods, { namespace })).items;
    const metadata = { annotations: ends(3) };
    await patchHost(namespace, { backoffLimit: 0 });
    await eventuallyPasses(async () => expect((await find(west, namespace))?.spec).toMatchObject({ backoffLimit: 0 }));
    const name = pod?.metadata.name ?? "";
    await west.patch(pods, { namespace, name }, { type: "merge", body: { metadata } });
    const failed = await hostJob(namespace, "Failed");
    expect(conditionsOf(failed).sort()).toEqual(["Failed", "FailureTarget"]);
    const reason = failed.status?.conditions?.find(({ type }) => type === "Failed");
    expect(reason).toMatchObject({ reason: "BackoffLimitExceeded", message: expect.stringMatching(/^west: /) });
    expect(failed.status?.active ?? 0).toBe(0);
    const other = await find(east, namespace);
    expect([specOf(other), conditionsOf(other)]).toEqual([
      { completions: 4, parallelism: 2, suspend: true },
      ["Suspended"],
    ]);
    await eventuallyPasses(async () => expect((await east.list(pods, { namespace })).items).toEqual([]));
    await host.delete(jobs, { namespace, name: "sum" }, { propagationPolicy: "Foreground" });
    await eventuallyPasses(async () => expect(await copies(namespace)).toEqual([undefined, undefined]));
  });

  test("fails when a client of a member deletes a running share there, which is not made again", async () => {
    const namespace = await running();
    await clients().east.delete(jobs, { namespace, name: "sum" }, { propagationPolicy: "Background" });
    const { status } = await hostJob(namespace, "Failed");
    const reason = status?.conditions?.find(({ type }) => type === "Failed");
    expect(reason).toMatchObject({
      reason: "DeletedInMember",
      message: expect.stringMatching(/^east: a client of east/),
    });
    const [inWest, inEast] = await copies(namespace);
    expect([conditionsOf(inWest), inEast]).toEqual([["Suspended"], undefined]);
  });

  test("keeps what a finished share did when its copy is deleted, and gives its parallelism to the others", async () => {
    const namespace = await newNamespace();
    const { west, east } = clients();
    await create(namespace, { completions: 4, parallelism: 2 }, { preferences: EVEN, pod: stays("running") });
    await hostShows(namespace, { active: 2 });
    const finish = async (client: ClusterClient): Promise<void> => {
      const { items } = await client.list(pods, { namespace });
      const body = { metadata: { annotations: ends(0) } };
      for (const { metadata } of items) {
        await client.patch(pods, { namespace, name: metadata.name }, { type: "merge", body });
      }
    };
    const complete = (client: ClusterClient): Promise<true> =>
      eventually(
        async () => {
          await finish(client);
          return conditionsOf(await find(client, namespace)).includes("Complete") ? true : undefined;
        },
        { what: "a complete share", timeoutMs: 60_000 },
      );
    await complete(west);
    await hostShows(namespace, { succeeded: 2 });
    await west.delete(jobs, { namespace, name: "sum" }, { propagationPolicy: "Background" });
    await eventuallyPasses(async () => expect((await find(east, namespace))?.spec?.parallelism).toBe(2));
    await complete(east);
    const { status } = await hostJob(namespace, "Complete");
    expect(status).toMatchObject({ succeeded: 4 });
    expect(await find(west, namespace)).toBeUndefined();
  });

  test.each(["Foreground", "Background", "Orphan"] as const)(
    "is deleted with its copies by policy %s",
    async (policy) => {
      const namespace = await running();
      await clients().host.delete(jobs, { namespace, name: "sum" }, { propagationPolicy: policy });
      await eventuallyPasses(async () => {
        expect(await find(clients().host, namespace)).toBeUndefined();
        expect(await copies(namespace)).toEqual([undefined, undefined]);
      });
    },
  );

  test("is deleted by its TTL on the host, and with it its copies", async () => {
    const namespace = await newNamespace();
    await create(namespace, { completions: 3, parallelism: 3, ttlSecondsAfterFinished: 1 });
    await eventuallyPasses(
      async () => {
        expect(await find(clients().host, namespace)).toBeUndefined();
        expect(await copies(namespace)).toEqual([undefined, undefined]);
      },
      { timeoutMs: 60_000 },
    );
  });

  test("waits for the share that a member refuses, while the other runs", async () => {
    const namespace = await newNamespace();
    const { west } = clients();
    const spec = { template: template({ restartPolicy: "Never" }, stays("running")) } as NonNullable<Job["spec"]>;
    const own = await west.create(jobs, { metadata: { name: "sum", namespace }, spec });
    await create(namespace, { completions: 6, parallelism: 3 });
    await hostShows(namespace, { succeeded: 2 });
    await eventuallyPasses(async () => {
      const { items } = await clients().host.list(events, { namespace });
      const told = items.filter(({ reason }) => reason === "NotPlaced").map(({ message = "" }) => message);
      expect(told.join()).toContain("west: Job sum is there already");
    });
    await west.delete(jobs, { namespace, name: "sum" }, { propagationPolicy: "Background" });
    expect((await find(west, namespace))?.metadata.uid).not.toBe(own.metadata.uid);
    // A refused copy is sent again after a minute.
    await hostJob(namespace, "Complete", 120_000);
    await hostShows(namespace, { succeeded: 6 });
  }, 180_000);

  test("is divided as the plan says", async () => {
    const namespace = await newNamespace();
    const input = JSON.stringify(manifest({ completions: 30, parallelism: 6 }, {}));
    const args = ["plan", "-f", "-", "-n", namespace, `--kubeconfig=${hostCluster().kubeconfig}`];
    const { code, stdout } = await runCli(args, { input });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Job .*\/sum: whole, divided over east, west\n.*\n {2}east +10 +2\n {2}west +20 +4\n/);
    await kubectl(hostCluster(), ["create", "-n", namespace, "-f", "-"], { input });
    await eventuallyPasses(async () =>
      expect((await copies(namespace)).map(specOf)).toEqual([
        { completions: 20, parallelism: 4 },
        { completions: 10, parallelism: 2 },
      ]),
    );
  });

  test.each([
    ["an Indexed Job", { completions: 3, completionMode: "Indexed" }, "write spec.completionMode: NonIndexed"],
    ["a Job without completions", { parallelism: 3 }, "divides spec.completions, which is not set"],
  ])("is refused on %s with what to write instead", async (_, spec, words) => {
    const namespace = await newNamespace();
    const input = JSON.stringify(manifest(spec, {}));
    await expect(kubectl(hostCluster(), ["create", "-n", namespace, "-f", "-"], { input })).rejects.toThrow(words);
  });

  test("has its record guarded", async () => {
    const namespace = await running();
    const forge = ["annotate", "job", "sum", "legation.dev/shares={}", "--overwrite", "-n", namespace];
    await expect(kubectl(hostCluster(), forge)).rejects.toThrow("changed by Legation's controller alone");
  });
});

describe("a divided Job whose member", () => {
  useQuickProbes();

  test("does not answer goes on in the other, and is whole again when it answers", { timeout: 240_000 }, async () => {
    const namespace = await running();
    const west = memberCluster("west");
    await west.apiServer.freeze();
    onTestFinished(() => west.apiServer.thaw());
    await eventuallyPasses(
      async () => {
        const shown = await legationOn(hostCluster(), "status", "job/sum", "-n", namespace);
        expect(shown.stdout).toContain("west is not ready");
      },
      { timeoutMs: 60_000 },
    );
    // A new leader knows the silent member's share from the record alone.
    await legation().controller.stop("SIGKILL");
    await legation().controller.start();
    await patchHost(namespace, { parallelism: 3 });
    await eventuallyPasses(async () => expect((await find(clients().east, namespace))?.spec?.parallelism).toBe(1), {
      timeoutMs: 90_000,
    });
    await hostShows(namespace, { active: 5 }, { timeoutMs: 60_000 });
    await west.apiServer.thaw();
    await hostShows(namespace, { active: 3 }, { timeoutMs: 90_000 });
    const [inWest] = await copies(namespace);
    expect(specOf(inWest)).toEqual({ completions: 8, parallelism: 2 });
  });

  test("is removed for good fails, and the other share is suspended", { timeout: 240_000 }, async () => {
    const namespace = await running();
    const forced = await legationOn(hostCluster(), "unjoin", "west", "--force", "--timeout=1s");
    expect(forced).toMatchObject({ code: 0 });
    const { status } = await hostJob(namespace, "Failed");
    const reason = status?.conditions?.find(({ type }) => type === "Failed");
    expect(reason).toMatchObject({ reason: "ClusterRemoved", message: expect.stringMatching(/^west: Cluster west/) });
    expect(conditionsOf(await find(clients().east, namespace))).toEqual(["Suspended"]);
    await legation().join("west", memberCluster("west"), "region=eu");
  });
});
