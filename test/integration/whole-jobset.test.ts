import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { DELEGATION_LABEL, WHOLE_KEY } from "../../src/api/keys.ts";
import { startOperator } from "../support/engines/operator.ts";
import { ensurePrograms } from "../support/engines/programs.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { applyAll, kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { podsOf } from "../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { allowTypes, forbidTypes } from "../support/legation/allow-types.ts";

// JobSet's controller runs in one member; the host and the other member have its definition alone.
useLegation();
const clients = useClients();
const patient = { timeoutMs: 120_000, intervalMs: 500 };
const ENGINE_STARTS_MS = 180_000;
const NAME = "jobsets.jobset.x-k8s.io";
const GROUP = "jobset.x-k8s.io";

beforeAll(async () => {
  const folder = await ensurePrograms("jobset", () => {});
  const directory = mkdtempSync(join(tmpdir(), "legation-jobset-"));
  const manifests = join(folder, "config", "default");
  afterFile(async () => rmSync(directory, { recursive: true, force: true }));
  const west = memberCluster("west");
  const operator = await startOperator({ host: west, program: join(folder, "jobset"), manifests, directory });
  afterFile(() => operator.stop());
  const { apiVersion, kind, metadata, spec } = JSON.parse(await kubectl(west, ["get", "crd", NAME, "-o", "json"]));
  const definition = {
    apiVersion,
    kind,
    metadata: { name: metadata.name },
    spec: { ...spec, conversion: { strategy: "None" } },
  };
  for (const cluster of [hostCluster(), memberCluster("east")]) {
    await kubectl(cluster, ["apply", "--server-side", "-f", "-"], { input: JSON.stringify(definition) });
    afterFile(async () => {
      await kubectl(cluster, ["delete", "crd", NAME]);
    });
  }
  const joined = { host: hostCluster(), members: { west, east: memberCluster("east") } };
  await allowTypes([NAME], joined);
  afterFile(() => forbidTypes([NAME], joined));
  const type = await kubectl(hostCluster(), ["get", `delegatedtype/${NAME}`, "-o", "jsonpath={.spec}"]);
  expect(JSON.parse(type)).toMatchObject({ exclusive: true, managedBy: "/spec/managedBy" });
}, ENGINE_STARTS_MS);

/** A JobSet of two workers on kwok's nodes, which run for some seconds. */
function jobSet(annotations: object): object {
  const behaviour = { "kwok.test/ends-after": "3s" };
  const containers = [{ name: "main", image: "localhost/busybox:1", resources: { requests: { cpu: "1" } } }];
  const template = { metadata: { annotations: behaviour }, spec: { restartPolicy: "Never", containers } };
  const job = { completionMode: "Indexed", completions: 2, parallelism: 2, backoffLimit: 0, template };
  return {
    apiVersion: `${GROUP}/v1alpha2`,
    kind: "JobSet",
    metadata: { name: "train", annotations: { [WHOLE_KEY]: "true", ...annotations } },
    spec: { replicatedJobs: [{ name: "worker", replicas: 1, template: { spec: job } }] },
  };
}

function newNamespace(): Promise<string> {
  const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
  return freshNamespace(all, { prefix: "jobset", labels: { [DELEGATION_LABEL]: "annotated" } });
}

test("runs a JobSet in one member, whose controller makes its Jobs, and shows its status until it is complete", async () => {
  const namespace = await newNamespace();
  const west = memberCluster("west");
  await applyAll(hostCluster(), [jobSet({ "legation.dev/clusters": "west" })], ["-n", namespace]);
  await kubectl(
    hostCluster(),
    ["wait", "-n", namespace, "jobset/train", "--for=condition=Completed", "--timeout=100s"],
    {
      timeoutMs: 110_000,
    },
  );
  const read = async (
    cluster: typeof west,
  ): Promise<{ spec: object; status: object; metadata: { annotations: object } }> =>
    JSON.parse(await kubectl(cluster, ["get", "-n", namespace, "jobset/train", "-o", "json"]));
  const there = await read(west);
  await eventuallyPasses(async () => expect((await read(hostCluster())).status).toEqual(there.status), patient);
  const here = await read(hostCluster());
  expect(here.spec).toMatchObject({ managedBy: "legation.dev/whole" });
  expect(here.metadata.annotations).toMatchObject({ "legation.dev/cluster": "west" });
  expect(there.spec).not.toHaveProperty("managedBy");
  expect(await podsOf(clients().host, namespace)).toEqual([]);
  await kubectl(hostCluster(), ["delete", "-n", namespace, "jobset/train", "--timeout=60s"]);
  // The member's garbage collector deletes the Jobs.
  await eventuallyPasses(async () => {
    expect(await kubectl(west, ["get", "-n", namespace, "jobsets,jobs", "-o", "name"])).toBe("");
  }, patient);
}, 300_000);

test("stays in its one member, whatever the clusters' labels say later", async () => {
  const namespace = await newNamespace();
  await applyAll(hostCluster(), [jobSet({})], ["-n", namespace]);
  const member = await eventually(
    () =>
      kubectl(hostCluster(), [
        "get",
        "-n",
        namespace,
        "jobset/train",
        "-o",
        "jsonpath={.metadata.annotations.legation\\.dev/cluster}",
      ]),
    { what: "a member" },
  );
  const other = member === "west" ? "east" : "west";
  const named = (name: string): Promise<string> =>
    kubectl(memberCluster(name === "west" ? "west" : "east"), ["get", "-n", namespace, "jobsets", "-o", "name"]);
  await eventuallyPasses(async () => expect(await named(member)).toContain("train"));
  await kubectl(hostCluster(), ["annotate", "-n", namespace, "jobset/train", `legation.dev/clusters=${other}`]);
  const moved = kubectl(hostCluster(), [
    "annotate",
    "--overwrite",
    "-n",
    namespace,
    "jobset/train",
    `legation.dev/cluster=${other}`,
  ]);
  await expect(moved).rejects.toThrow("is changed by Legation's controller alone");
  const taken = kubectl(hostCluster(), ["annotate", "-n", namespace, "jobset/train", `${WHOLE_KEY}-`]);
  await expect(taken).rejects.toThrow("what runs it never changes");
  expect(await named(member)).toContain("train");
  expect(await named(other)).toBe("");
});
