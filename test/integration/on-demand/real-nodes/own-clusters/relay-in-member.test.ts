import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import type { Pod, PodSpec } from "../../../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../../../src/kube/client.ts";
import { endpointSlices, pods, services } from "../../../../../src/kube/resources.ts";
import { conditionOf } from "../../../../../src/pods/pod-state.ts";
import { freePort } from "../../../../support/clusters/ports.ts";
import { startClusters } from "../../../../support/clusters/start.ts";
import type { Clusters } from "../../../../support/clusters/types.ts";
import { delegatedPod } from "../../../../support/delegated/pods.ts";
import { giveFiles } from "../../../../support/engines/given-files.ts";
import { afterFile, cleanUpFile } from "../../../../support/harness/after-file.ts";
import { clientOf } from "../../../../support/harness/clients.ts";
import { kubectl } from "../../../../support/harness/kubectl.ts";
import { freshNamespace } from "../../../../support/harness/namespace.ts";
import { podThat } from "../../../../support/harness/pods-of.ts";
import { eventuallyPasses } from "../../../../support/harness/wait.ts";
import { legation, ROOT } from "../../../../support/legation/cli.ts";
import { LEGATION_IMAGE, writeLegationImage } from "../../../../support/legation/image.ts";
import { startLegation } from "../../../../support/legation/start.ts";

// Relays in pods, on the host and in two members whose pods reach no other cluster: west directly, east by an agent. kube-proxy leads
// clients to them.

const ALL = ["host", "west", "east"] as const;
type Name = (typeof ALL)[number];
const MEMBERS = ["west", "east"] as const;
const IMAGE = "localhost/busybox:1";
const POSTGRES = "/usr/lib/postgresql/15/bin";
const RELAYS = "legation-relay-members";

const PATIENT = { timeoutMs: 90_000, intervalMs: 500 };
// A web server, and one that answers the end of its client's direction alone.
const RUNS = `trap 'exit 0' TERM; mkdir /www; hostname >/www/index.html; httpd -p 8080 -h /www
nc -ll -p 9000 -e sha256sum & sleep 3600 & wait`;
const SUM_OF_QUESTION = "1f5087db919ced5c123c7f507d3fcce818cb0cf6e77c2f95a8a35e951e03fdb9";
const isReady = (pod: Pod): boolean => conditionOf(pod, "Ready")?.status === "True";
const PRINT_IPS = "jsonpath={.items[*].status.podIP}";

let clusters: Clusters;
let client: ClusterClient;
let namespace: string;

beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), "legation-image-"));
  afterFile(async () => rmSync(folder, { recursive: true, force: true }));
  const image = join(folder, "legation.tar");
  await writeLegationImage(image);
  const each = { realNode: true, serviceNetwork: "alone", images: [image] } as const;
  clusters = await startClusters({
    names: ALL,
    clusters: Object.fromEntries(ALL.map((name) => [name, each])),
    onProgress: (line) => process.stderr.write(`clusters: ${line}\n`),
  });
  afterFile(() => clusters.stop());
  const host = clusters.get("host");
  const hubPort = await freePort();
  const running = await startLegation({
    host,
    members: { west: clusters.get("west"), east: clusters.get("east") },
    agents: new Map([["east", hubPort]]),
    controllerFlags: [`--hub-listen=127.0.0.1:${hubPort}`],
    restart: true,
  });
  afterFile(() => running.stop());
  await legation(["install", "--relay", `--kubeconfig=${host.kubeconfig}`]);
  // Webhook and controller run outside, so the relay is not deployed by itself.
  for (const file of ["deployment", "members"]) await apply(`manifests/relay/${file}.yaml`);
  // As docs/relay.md says.
  for (const name of MEMBERS) await apply("examples/relay/in-member.yaml", name);
  client = clientOf(host);
  afterFile(() => client.close());
  await onHost("-n", "legation-relay", "rollout", "status", "deployment/legation-relay", "--timeout=240s");
  for (const name of MEMBERS) await onHost("-n", RELAYS, "rollout", "status", `deployment/${name}`, "--timeout=240s");

  const labels = { "legation.dev/delegation": "annotated" };
  namespace = await freshNamespace(host, { prefix: "relayed", labels, onFinished: afterFile });
  for (const name of ALL) {
    await run(name, namespace, `web-${name}`);
    await relayed(namespace, `web-${name}`, `far-${name}`, [8080, 9000]);
  }
  return cleanUpFile;
}, 600_000);

function onHost(...args: string[]): Promise<string> {
  return kubectl(clusters.get("host"), args, { timeoutMs: 250_000 });
}

/** Applies a manifest with this test's image, for a member in place of west. */
async function apply(file: string, member = "west"): Promise<void> {
  const manifest = readFileSync(join(ROOT, file), "utf8");
  const input = manifest.replaceAll("west", member).replace(/image: \S+/, `image: ${LEGATION_IMAGE}`);
  await kubectl(clusters.get("host"), ["apply", "-f", "-"], { input });
}

/** Makes a Service of a pod, and one that is relayed to it. */
async function relayed(namespace: string, name: string, far: string, numbers: readonly number[]): Promise<void> {
  const ports = numbers.map((port) => ({ name: `port-${port}`, port }));
  await client.create(services, { metadata: { name, namespace }, spec: { ports, selector: { app: name } } });
  const annotations = { "legation.dev/relay": name };
  await client.create(services, { metadata: { name: far, namespace, annotations }, spec: { ports } });
}

const SPEC: PodSpec = {
  automountServiceAccountToken: false,
  terminationGracePeriodSeconds: 1,
  containers: [
    {
      name: "main",
      image: IMAGE,
      command: ["sh", "-c", RUNS],
      readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
    },
  ],
};

/** Runs a pod with its own name as its label. */
async function run(where: Name, namespace: string, name: string, spec: PodSpec = SPEC): Promise<void> {
  const labels = { app: name };
  const pod = delegatedPod(namespace, name, { labels, spec, annotations: { "legation.dev/clusters": where } });
  await client.create(pods, where === "host" ? { ...pod, metadata: { namespace, name, labels } } : pod);
  await podThat(client, namespace, name, isReady, PATIENT);
}

/** Runs a command in the pod of a member. */
function inPod(member: Name, command: string): Promise<string> {
  return kubectl(clusters.get(member), ["exec", "-n", namespace, `web-${member}`, "--", "sh", "-c", command]);
}

/** Returns what a pod of a member is answered by a Service's name: the name of the pod that serves. */
function ask(from: Name, name: string): Promise<string> {
  return inPod(from, `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 5 ${name} 8080 | tail -n 1`);
}

async function leads(from: Name, name: string, to: string): Promise<void> {
  await eventuallyPasses(async () => expect(await ask(from, name), `${name} from ${from}`).toBe(`${to}\n`), PATIENT);
}

test.each([
  ["west", "host"],
  ["east", "host"],
  ["west", "east"],
  ["east", "west"],
  ["west", "west"],
] as const)("leads a pod of %s by the name of a Service to a pod of %s", async (from, to) => {
  await leads(from, `far-${to}`, `web-${to}`);
});

test("carries the end of the client's direction to a server of the host, which answers it alone", async () => {
  expect(await inPod("west", "printf question | nc -w 5 far-host 9000")).toBe(`${SUM_OF_QUESTION}  -\n`);
});

test("carries large bodies both ways without a change", async () => {
  const said = await inPod(
    "west",
    "head -c 33554432 /dev/urandom >/tmp/large; sha256sum </tmp/large; nc far-host 9000 </tmp/large",
  );
  const [sent, received] = said.trim().split("\n");
  expect(received).toBe(sent);
});

test("leads to a Service while it has the annotation, and to no other", async () => {
  await leads("west", "far-host", "web-host");
  const ref = { namespace, name: "far-host" };
  const [endpoint] = (await client.get(endpointSlices, { namespace, name: "far-host-relay-ipv4" })).ports ?? [];
  const relays = await onHost("-n", RELAYS, "get", "pods", "-l", "app.kubernetes.io/instance=west", "-o", PRINT_IPS);
  const [address = ""] = relays.split(" ");
  const direct = `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 5 ${address} ${endpoint?.port} | tail -n 1`;
  expect(await inPod("west", direct)).toBe("web-host\n");
  const annotate = (value: string | null): Promise<unknown> =>
    client.patch(services, ref, {
      type: "merge",
      body: { metadata: { annotations: { "legation.dev/relay": value } } },
    });
  await annotate(null);
  await eventuallyPasses(async () => {
    expect(await ask("west", "far-host")).toBe("");
    expect(await inPod("west", direct)).toBe("");
  }, PATIENT);
  await annotate("web-host");
  await leads("west", "far-host", "web-host");
});

test("lets an open connection go on while all relays are replaced", async () => {
  const asked = inPod("west", "(printf ques; sleep 45; printf tion) | nc far-host 9000");
  const restarted = async (where: string, name: string): Promise<void> => {
    await onHost("-n", where, "rollout", "restart", `deployment/${name}`);
    await onHost("-n", where, "rollout", "status", `deployment/${name}`, "--timeout=240s");
  };
  await eventuallyPasses(async () => expect(await ask("west", "far-host")).toBe("web-host\n"), PATIENT);
  await Promise.all([restarted("legation-relay", "legation-relay"), restarted(RELAYS, "west")]);
  expect(await asked).toBe(`${SUM_OF_QUESTION}  -\n`);
});

test.each([
  ["the member", RELAYS, "app.kubernetes.io/instance=west"],
  ["the host", "legation-relay", "app.kubernetes.io/component=relay"],
])("leads on after all relays of %s were killed", async (_, where, selector) => {
  await leads("west", "far-east", "web-east");
  await onHost("-n", where, "delete", "pods", "-l", selector, "--grace-period=0", "--force");
  await leads("west", "far-east", "web-east");
});

test("refuses a member's connections while that is cut off, and leads on once it is back", async () => {
  const west = clusters.get("west");
  onTestFinished(() => west.mend());
  await west.proxy.cut();
  await eventuallyPasses(async () => expect(await ask("west", "far-host")).toBe(""), PATIENT);
  await leads("east", "far-host", "web-host");
  await west.proxy.heal();
  await leads("west", "far-host", "web-host");
});

test("carries PostgreSQL, from a client in a member to the server on the host", async () => {
  const labels = { "legation.dev/delegation": "annotated" };
  const [host, west] = [clusters.get("host"), clusters.get("west")];
  const team = await freshNamespace([host, west], { prefix: "database", labels, onFinished: onTestFinished });
  // Debian's package, as this machine has it.
  const files = ["/usr", "/lib", "/lib64"].map((path) => ({ from: path, to: path }));
  for (const cluster of [host, west]) await giveFiles(cluster, team, files);
  const program = (name: string): string => join(POSTGRES, name);
  const start = `mkdir -m 700 /tmp/db && ${program("initdb")} -D /tmp/db -U team --auth=trust -E UTF8 --locale=C >/dev/null &&
echo 'host all all all trust' >>/tmp/db/pg_hba.conf && exec ${program("postgres")} -D /tmp/db -k /tmp -h 0.0.0.0`;
  const readinessProbe = { exec: { command: [program("pg_isready"), "-h", "127.0.0.1"] }, periodSeconds: 1 };
  const server = { name: "main", image: IMAGE, command: ["sh", "-c", start], readinessProbe };
  await run("host", team, "db", { ...SPEC, securityContext: { runAsUser: 65_534 }, containers: [server] });
  await relayed(team, "db", "far-db", [5432]);
  await run("west", team, "client");
  const inClient = (command: string): Promise<string> =>
    kubectl(west, ["exec", "-n", team, "client", "--", "sh", "-c", command], { timeoutMs: 200_000 });
  const psql = `${program("psql")} -h far-db -U team -d postgres -v ON_ERROR_STOP=1 -At`;
  await eventuallyPasses(async () => expect(await inClient(`${psql} -c 'select 1'`)).toBe("1\n"), PATIENT);

  // A million rows there and back, some 10 MB each way.
  const rows = `seq 1000000 >/tmp/rows; ${psql} -c 'create table rows (n int)' -c '\\copy rows from /tmp/rows' &&
${psql} -c '\\copy (select n from rows order by n) to /tmp/back' && cmp /tmp/rows /tmp/back && echo same`;
  expect(await inClient(rows)).toContain("same\n");
  // Eight clients at once, each on a connection that stays, then each transaction on its own.
  const bench = `${program("pgbench")} -h far-db -U team`;
  await inClient(`${bench} -i -q postgres 2>&1`);
  for (const more of ["-T 5", "-T 5 -C"]) {
    const said = await inClient(`${bench} -c 8 ${more} postgres 2>&1`);
    expect(said).toContain("number of failed transactions: 0 (0.000%)");
  }
  // A query that says nothing for longer than the idle timeouts of proxies and load balancers.
  expect(await inClient(`${psql} -c 'select pg_sleep(75)' -c 'select 2'`)).toBe("\n2\n");
});
