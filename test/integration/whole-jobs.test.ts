import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { DELEGATION_LABEL, HOST_LABEL, WHOLE_KEY } from "../../src/api/keys.ts";
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
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { runCli } from "../support/legation/cli.ts";
import { legationOn } from "../support/legation/process.ts";

useLegation();
const clients = useClients();
const GROUPED = { "legation.dev/group": "a" };
const PREFERS_WEST = JSON.stringify({
  preferredDuringSchedulingIgnoredDuringExecution: [
    { weight: 1, preference: { matchExpressions: [{ key: "region", operator: "In", values: ["eu"] }] } },
  ],
});
const WEST = { "legation.dev/clusters": "west" };

function newNamespace(): Promise<string> {
  const labels = { [DELEGATION_LABEL]: "annotated" };
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  // Concurrent tests share vitest's own hook: the first to end would empty the others' namespaces.
  return freshNamespace(all, { labels, onFinished: afterFile });
}

/** Creates a Job as its author writes it. */
function create(
  namespace: string,
  spec: object,
  { annotations = {}, pod = ends(0) }: { readonly annotations?: object; readonly pod?: Record<string, string> } = {},
): Promise<Stored<Job>> {
  return clients().host.create(jobs, {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: "sum", namespace, annotations: { [WHOLE_KEY]: "true", ...annotations } },
    spec: { template: template({ restartPolicy: "Never" }, pod) as NonNullable<Job["spec"]>["template"], ...spec },
  });
}

function find(client: ClusterClient, namespace: string): Promise<Stored<Job> | undefined> {
  return client.find(jobs, { namespace, name: "sum" });
}

function conditionsOf(job: Job | undefined): string[] {
  return job?.status?.conditions?.filter(({ status }) => status === "True").map(({ type }) => type) ?? [];
}

async function reasonsOf(namespace: string): Promise<string[]> {
  const { items } = await clients().host.list(events, { namespace });
  return items.filter(({ involvedObject: { kind } }) => kind === "Job").map(({ reason = "" }) => reason);
}

function copyIn(client: ClusterClient, namespace: string): Promise<Stored<Job>> {
  return eventually(() => find(client, namespace), { what: "the copy" });
}

function hostJob(namespace: string, condition: string): Promise<Stored<Job>> {
  return eventually(
    async () => {
      const job = await find(clients().host, namespace);
      return conditionsOf(job).includes(condition) ? job : undefined;
    },
    { what: `the host's Job with condition ${condition}` },
  );
}

describe.concurrent("a Job with legation.dev/whole", () => {
  test("runs in a member with its pods there alone, shows its status, and leaves nothing behind", async () => {
    const namespace = await newNamespace();
    const { host, west, east } = clients();
    await create(namespace, { completions: 20, parallelism: 5 }, { annotations: WEST });
    await kubectl(hostCluster(), ["wait", "--for=condition=complete", "job/sum", "-n", namespace, "--timeout=60s"]);
    const [here, there] = await Promise.all([hostJob(namespace, "Complete"), copyIn(west, namespace)]);
    expect(here.status).toEqual(there.status);
    expect(here.status).toMatchObject({ succeeded: 20 });
    expect(there.spec).not.toHaveProperty("managedBy");
    expect((await host.list(pods, { namespace })).items).toEqual([]);
    expect((await west.list(pods, { namespace })).items).toHaveLength(20);
    expect(await find(east, namespace)).toBeUndefined();
    expect(await reasonsOf(namespace)).toEqual(["Placed"]);
    const shown = await legationOn(hostCluster(), "status", "job/sum", "-n", namespace);
    expect(shown.stdout).toMatch(
      /^Job .*\/sum: whole: Complete: 20 of 20 succeeded, 0 active\nCLUSTER.*\nwest +Complete +20 of 20 +0 /,
    );
    const { others } = await legationWrites(hostCluster(), namespace);
    expect(others[0]).toBe("patch jobs");
    expect(others.length).toBeLessThan(10);

    await kubectl(hostCluster(), ["delete", "job", "sum", "-n", namespace, "--timeout=60s"]);
    expect(await find(west, namespace)).toBeUndefined();
    await eventuallyPasses(async () => expect((await west.list(pods, { namespace })).items).toEqual([]));
    expect((await legationWrites(memberCluster("west"), namespace)).others).toEqual(["create jobs", "delete jobs"]);
  });

  test("is suspended, resumed and given another parallelism and pod template in its member", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    const body = (spec: object) => ({ type: "merge", body: { spec } }) as const;
    await create(namespace, { completions: 4, parallelism: 1, suspend: true }, { pod: stays("running") });
    const member = await eventually(
      async () => (await find(host, namespace))?.metadata.annotations?.["legation.dev/cluster"],
    );
    const client = member === "west" ? west : clients().east;
    await hostJob(namespace, "Suspended");
    // As Kueue does.
    const template = { spec: { nodeSelector: { "kubernetes.io/os": "linux" } } };
    // Another client of the host may have a condition of its own, as with any Job.
    const audited = { type: "Audited", status: "True" };
    const withIt = [...((await find(host, namespace))?.status?.conditions ?? []), audited];
    const status = { type: "merge", body: { status: { conditions: withIt } } } as const;
    await host.patch(jobs, { namespace, name: "sum" }, status, { subresource: "status" });
    await host.patch(jobs, { namespace, name: "sum" }, body({ suspend: false, parallelism: 3, template }));
    await eventuallyPasses(async () => expect((await find(host, namespace))?.status).toMatchObject({ active: 3 }));
    expect((await copyIn(client, namespace)).spec).toMatchObject({ suspend: false, parallelism: 3, template });
    await host.patch(jobs, { namespace, name: "sum" }, body({ suspend: true }));
    await eventuallyPasses(async () => expect((await client.list(pods, { namespace })).items).toEqual([]));
    await hostJob(namespace, "Suspended");
    await host.patch(jobs, { namespace, name: "sum" }, body({ suspend: false }));
    await eventuallyPasses(async () => {
      const job = await find(host, namespace);
      expect(job?.status).toMatchObject({ active: 3 });
      expect(conditionsOf(job)).toEqual(["Audited"]);
    });
  });

  test("fails as it fails in its member", async () => {
    const namespace = await newNamespace();
    await create(namespace, { backoffLimit: 0 }, { pod: ends(3) });
    const { status } = await hostJob(namespace, "Failed");
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({ type: "Failed", reason: "BackoffLimitExceeded" }),
    );
  });

  test("goes to another member when the first has a Job of that name, which is left alone", async () => {
    const namespace = await newNamespace();
    const { west, east } = clients();
    const spec = { template: template({ restartPolicy: "Never" }, stays("running")) } as NonNullable<Job["spec"]>;
    const own = await west.create(jobs, { metadata: { name: "sum", namespace }, spec });
    await create(namespace, {}, { annotations: { "legation.dev/cluster-affinity": PREFERS_WEST } });
    await hostJob(namespace, "Complete");
    expect((await copyIn(east, namespace)).metadata.labels?.[HOST_LABEL]).toBeDefined();
    expect((await find(west, namespace))?.metadata.uid).toBe(own.metadata.uid);
    expect((await find(west, namespace))?.metadata.labels?.[HOST_LABEL]).toBeUndefined();
  });

  test("fails when a client of the member deletes it there, and starts no second time", async () => {
    const namespace = await newNamespace();
    const { west, east } = clients();
    await create(namespace, {}, { annotations: WEST, pod: stays("running") });
    await eventuallyPasses(async () =>
      expect((await find(clients().host, namespace))?.status).toMatchObject({ active: 1 }),
    );
    await west.delete(jobs, { namespace, name: "sum" }, { propagationPolicy: "Background" });
    const { status } = await hostJob(namespace, "Failed");
    expect(status?.conditions).toContainEqual(expect.objectContaining({ type: "Failed", reason: "DeletedInMember" }));
    expect([await find(west, namespace), await find(east, namespace)]).toEqual([undefined, undefined]);
  });

  test("that two members refuse stays with the first, and its author is told of both", async () => {
    const namespace = await newNamespace();
    const { host, west, east } = clients();
    const spec = { template: template({ restartPolicy: "Never" }, stays("running")) } as NonNullable<Job["spec"]>;
    for (const member of [west, east]) await member.create(jobs, { metadata: { name: "sum", namespace }, spec });
    await create(namespace, {});
    await eventuallyPasses(async () => {
      const { items } = await host.list(events, { namespace });
      const told = items.filter(({ reason }) => reason === "NotPlaced").map(({ message = "" }) => message);
      expect(told.join()).toMatch(
        /west: .*is there already.*east: .*is there already|east: .*west: .*is there already/,
      );
    });
    const writes = async () => (await legationWrites(hostCluster(), namespace)).others;
    const before = await writes();
    expect(before.filter((write) => write === "patch jobs")).toHaveLength(1);
    await sleep(1_000);
    expect(await writes()).toEqual(before);
  });

  test("gets its marks back when a client of the member removes them, and ends as it would have", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    await create(namespace, { suspend: true }, { annotations: WEST });
    await hostJob(namespace, "Suspended");
    await host.patch(jobs, { namespace, name: "sum" }, { type: "merge", body: { spec: { suspend: false } } });
    await hostJob(namespace, "Complete");
    const running = await newNamespace();
    await create(running, {}, { annotations: WEST, pod: stays("running") });
    await eventuallyPasses(async () => expect((await find(host, running))?.status).toMatchObject({ active: 1 }));
    const { metadata } = await copyIn(west, running);
    const removed = { labels: { [HOST_LABEL]: null }, annotations: { "legation.dev/owner": null } };
    for (const key of ["labels", "annotations"] as const) {
      const body = { metadata: { [key]: removed[key] } };
      await west.patch(jobs, { namespace: running, name: "sum" }, { type: "merge", body });
      await eventuallyPasses(async () => {
        const { labels, annotations, uid } = (await copyIn(west, running)).metadata;
        expect([labels, annotations?.["legation.dev/owner"], uid]).toEqual([
          metadata.labels,
          metadata.annotations?.["legation.dev/owner"],
          metadata.uid,
        ]);
      });
    }
    expect(conditionsOf(await find(host, running))).toEqual([]);
  });

  test("that no member may have says why, and runs once one may", async () => {
    const namespace = await newNamespace();
    await create(namespace, {}, { annotations: { "legation.dev/cluster-selector": "region=mars" } });
    await eventuallyPasses(async () => expect(await reasonsOf(namespace)).toEqual(["NotPlaced"]));
    const shown = await legationOn(hostCluster(), "status", "job", "sum", "-n", namespace);
    expect(shown.stdout).toMatch(/: whole, in no member\nwaits: NotPlaced\n {2}east: .*region=mars/);
    const metadata = { annotations: { "legation.dev/cluster-selector": "region=us" } };
    await clients().host.patch(jobs, { namespace, name: "sum" }, { type: "merge", body: { metadata } });
    await hostJob(namespace, "Complete");
    await copyIn(clients().east, namespace);
  });

  test("goes where the plan says", async () => {
    const namespace = await newNamespace();
    const metadata = {
      name: "sum",
      annotations: { [WHOLE_KEY]: "true", "legation.dev/cluster-selector": "region=us" },
    };
    const spec = { template: template({ restartPolicy: "Never" }) };
    const input = JSON.stringify({ apiVersion: "batch/v1", kind: "Job", metadata, spec });
    const args = ["plan", "-f", "-", "-n", namespace, `--kubeconfig=${hostCluster().kubeconfig}`];
    const { code, stdout } = await runCli(args, { input });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Job .*\/sum: whole, in east\n {2}CLUSTER +WHY NOT\n {2}west .*region=us/);
    await kubectl(hostCluster(), ["create", "-n", namespace, "-f", "-"], { input });
    await copyIn(clients().east, namespace);
  });

  test("is deleted by its TTL on the host, and with it its copy", async () => {
    const namespace = await newNamespace();
    await create(namespace, { ttlSecondsAfterFinished: 1 }, { annotations: WEST });
    await copyIn(clients().west, namespace);
    await eventuallyPasses(async () => {
      const found = await Promise.all([clients().host, clients().west].map((client) => find(client, namespace)));
      expect(found).toEqual([undefined, undefined]);
    });
  });

  test("is made by a CronJob from its template", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    const jobTemplate = {
      metadata: { annotations: { [WHOLE_KEY]: "true", ...WEST } },
      spec: { template: template({ restartPolicy: "Never" }, ends(0)) },
    };
    const manifest = {
      apiVersion: "batch/v1",
      kind: "CronJob",
      metadata: { name: "nightly", namespace },
      spec: { schedule: "0 0 1 1 *", jobTemplate },
    };
    await kubectl(hostCluster(), ["apply", "-f", "-"], { input: JSON.stringify(manifest) });
    await kubectl(hostCluster(), ["create", "job", "sum", "--from=cronjob/nightly", "-n", namespace]);
    await hostJob(namespace, "Complete");
    expect((await host.list(pods, { namespace })).items).toEqual([]);
    expect(await find(west, namespace)).toBeDefined();
    await kubectl(hostCluster(), ["delete", "cronjob", "nightly", "-n", namespace, "--cascade=foreground"]);
    await eventuallyPasses(async () => expect(await find(west, namespace)).toBeUndefined());
  });

  test.each([
    [
      "a Deployment",
      "Deployment",
      { metadata: { annotations: { [WHOLE_KEY]: "true" } } },
      "cannot be told to leave one alone",
    ],
    [
      "a CronJob's own metadata",
      "CronJob",
      { metadata: { annotations: { [WHOLE_KEY]: "true" } } },
      "jobTemplate.metadata",
    ],
    [
      "a Job with a group",
      "Job",
      { metadata: { annotations: { [WHOLE_KEY]: "true", ...GROUPED } } },
      "remove one of the two",
    ],
  ])("is refused on %s with what to write instead", async (_, kind, { metadata }, words) => {
    const namespace = await newNamespace();
    const pod = template({ restartPolicy: kind === "Deployment" ? "Always" : "Never" });
    const specs: Record<string, object> = {
      Deployment: { selector: { matchLabels: { app: "web" } }, template: pod },
      CronJob: { schedule: "0 0 1 1 *", jobTemplate: { spec: { template: pod } } },
      Job: { template: pod },
    };
    const apiVersion = kind === "Deployment" ? "apps/v1" : "batch/v1";
    const manifest = { apiVersion, kind, metadata: { name: "sum", namespace, ...metadata }, spec: specs[kind] };
    await expect(kubectl(hostCluster(), ["apply", "-f", "-"], { input: JSON.stringify(manifest) })).rejects.toThrow(
      words,
    );
  });

  test("is refused to authors without the verb delegate, and its marks give nothing", async () => {
    const namespace = await newNamespace();
    const as = ["--as", "ann", "-n", namespace];
    await kubectl(hostCluster(), [
      "create",
      "role",
      "jobs",
      "--verb=create,get,patch,update",
      "--resource=jobs.batch,cronjobs.batch",
      "-n",
      namespace,
    ]);
    await kubectl(hostCluster(), ["create", "rolebinding", "jobs", "--role=jobs", "--user=ann", "-n", namespace]);
    const manifest = (metadata: object): string =>
      JSON.stringify({
        apiVersion: "batch/v1",
        kind: "Job",
        metadata: { name: "sum", ...metadata },
        spec: { suspend: true, template: template({ restartPolicy: "Never" }) },
      });
    const whole = { annotations: { [WHOLE_KEY]: "true" } };
    await expect(kubectl(hostCluster(), ["create", "-f", "-", ...as], { input: manifest(whole) })).rejects.toThrow(
      "may not have Jobs run in other clusters",
    );
    const forged = { labels: { [WHOLE_KEY]: "true" }, annotations: { "legation.dev/cluster": "west" } };
    await kubectl(hostCluster(), ["create", "-f", "-", ...as], { input: manifest({ ...forged, name: "forged" }) });
    const { metadata } = await clients().host.get(jobs, { namespace, name: "forged" });
    expect(metadata.labels?.[WHOLE_KEY]).toBeUndefined();
    expect(metadata.annotations?.["legation.dev/cluster"]).toBeUndefined();
    const label = ["label", "job", "forged", `${WHOLE_KEY}=true`, ...as];
    await expect(kubectl(hostCluster(), label)).rejects.toThrow("write the annotation alone");
    const cron = {
      apiVersion: "batch/v1",
      kind: "CronJob",
      metadata: { name: "nightly" },
      spec: { schedule: "0 0 1 1 *", jobTemplate: { spec: { template: template({ restartPolicy: "Never" }) } } },
    };
    await kubectl(hostCluster(), ["create", "-f", "-", ...as], { input: JSON.stringify(cron) });
    const annotated = JSON.stringify({ spec: { jobTemplate: { metadata: whole } } });
    await expect(
      kubectl(hostCluster(), ["patch", "cronjob", "nightly", "--type=merge", "-p", annotated, ...as]),
    ).rejects.toThrow("may not have Jobs run in other clusters");
    await kubectl(hostCluster(), [
      "create",
      "rolebinding",
      "edit",
      "--clusterrole=edit",
      "--user=ann",
      "-n",
      namespace,
    ]);
    await eventuallyPasses(async () => {
      await kubectl(hostCluster(), ["create", "-f", "-", ...as], { input: manifest(whole) });
    });
    await eventually(
      async () => (await find(clients().host, namespace))?.metadata.annotations?.["legation.dev/cluster"],
    );
    await kubectl(hostCluster(), ["patch", "cronjob", "nightly", "--type=merge", "-p", annotated, ...as]);
    await kubectl(hostCluster(), ["delete", "rolebinding", "edit", "-n", namespace]);
    const spec = { jobTemplate: { spec: { template: { spec: { hostNetwork: true } } } } };
    await eventually(async () => {
      const patch = [
        "patch",
        "cronjob",
        "nightly",
        "--type=merge",
        "-p",
        JSON.stringify({ spec }),
        ...as,
        "--dry-run=server",
      ];
      const refusal = await kubectl(hostCluster(), patch).catch(String);
      return refusal.includes("may not have Jobs run in other clusters");
    });
    await kubectl(hostCluster(), [
      "patch",
      "cronjob",
      "nightly",
      "--type=merge",
      "-p",
      '{"spec":{"suspend":true}}',
      ...as,
    ]);
    for (const [change, words] of [
      ["legation.dev/cluster=elsewhere", "changed by Legation's controller alone"],
      [`${WHOLE_KEY}-`, "delete the Job, and create it anew"],
    ] as const) {
      await expect(kubectl(hostCluster(), ["annotate", "job", "sum", change, "--overwrite", ...as])).rejects.toThrow(
        words,
      );
    }
  });
});
