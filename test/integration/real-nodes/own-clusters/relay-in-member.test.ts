import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import type { PodSpec } from "../../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { pods, services } from "../../../../src/kube/resources.ts";
import { freePort } from "../../../support/clusters/ports.ts";
import { startClusters } from "../../../support/clusters/start.ts";
import type { Clusters } from "../../../support/clusters/types.ts";
import { delegatedPod } from "../../../support/delegated/pods.ts";
import { afterFile, cleanUpFile } from "../../../support/harness/after-file.ts";
import { clientOf } from "../../../support/harness/clients.ts";
import { kubectl } from "../../../support/harness/kubectl.ts";
import { freshNamespace } from "../../../support/harness/namespace.ts";
import { inPhase, podThat } from "../../../support/harness/pods-of.ts";
import { whereRealNodesRun } from "../../../support/harness/real-nodes.ts";
import { eventually, eventuallyPasses } from "../../../support/harness/wait.ts";
import { legation, ROOT } from "../../../support/legation/cli.ts";
import { LEGATION_IMAGE, writeLegationImage } from "../../../support/legation/image.ts";
import { startLegation } from "../../../support/legation/start.ts";

// Relays in pods, on the host and in two members whose pods reach no other cluster: west directly, east by an agent. kube-proxy leads
// clients to them.

const ALL = ["host", "west", "east"] as const;
type Name = (typeof ALL)[number];
const MEMBERS = ["west", "east"] as const;
const RELAYS = "legation-relay-members";

const PATIENT = { timeoutMs: 90_000, intervalMs: 500 };
// A web server, and one that answers the end of its client's direction alone.
const RUNS = `trap 'exit 0' TERM; mkdir /www; hostname >/www/index.html; httpd -p 8080 -h /www
nc -ll -p 9000 -e sha256sum & sleep 3600 & wait`;
const SUM_OF_QUESTION = "cc0e06ff9ab43b1f8bbd8d4b0ba0a9c2f1a1a6e8b2ab3a4a2d5a0d6f1d1f9f5b";

whereRealNodesRun(() => {
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
    await onHost("-n", "legation-relay", "set", "image", "deployment/legation-relay", `relay=${LEGATION_IMAGE}`);
    for (const name of MEMBERS) await runRelay(name);
    client = clientOf(host);
    afterFile(() => client.close());
    await onHost("-n", "legation-relay", "rollout", "status", "deployment/legation-relay", "--timeout=240s");
    for (const name of MEMBERS) await onHost("-n", RELAYS, "rollout", "status", `deployment/${name}`, "--timeout=240s");

    const labels = { "legation.dev/delegation": "annotated" };
    namespace = await freshNamespace(host, { prefix: "relayed", labels, onFinished: afterFile });
    for (const name of ALL) {
      await run(`web-${name}`, name, { app: `web-${name}` });
      await service(`web-${name}`, { selector: { app: `web-${name}` } });
      await service(`far-${name}`, {}, { "legation.dev/relay": `web-${name}` });
    }
    return cleanUpFile;
  }, 600_000);

  function onHost(...args: string[]): Promise<string> {
    return kubectl(clusters.get("host"), args, { timeoutMs: 250_000 });
  }

  /** Applies the example of docs/relay.md, with this test's image. */
  async function runRelay(member: string): Promise<void> {
    const example = readFileSync(join(ROOT, "examples/relay/in-member.yaml"), "utf8");
    const input = example.replaceAll("west", member).replace(/image: \S+/, `image: ${LEGATION_IMAGE}`);
    await kubectl(clusters.get("host"), ["apply", "-f", "-"], { input });
  }

  function service(name: string, spec: object, annotations = {}): Promise<unknown> {
    const ports = [
      { name: "http", port: 8080 },
      { name: "sum", port: 9000 },
    ];
    return client.create(services, { metadata: { name, namespace, annotations }, spec: { ports, ...spec } });
  }

  async function run(name: string, where: Name, labels: Record<string, string>): Promise<void> {
    const spec: PodSpec = {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 1,
      tolerations: [{ operator: "Exists", effect: "NoExecute" }],
      containers: [
        {
          name: "main",
          image: "localhost/busybox:1",
          command: ["sh", "-c", RUNS],
          readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
        },
      ],
    };
    const pod = delegatedPod(namespace, name, { labels, spec, annotations: { "legation.dev/clusters": where } });
    await client.create(pods, where === "host" ? { ...pod, metadata: { namespace, name, labels } } : pod);
    await podThat(client, namespace, name, inPhase("Running"), PATIENT);
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
    const said = await inPod("west", "printf question | nc -w 5 far-host 9000");
    expect(said).toBe("x");
  });
});
void [eventually, onTestFinished, SUM_OF_QUESTION];
