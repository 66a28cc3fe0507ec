import { connect, createServer, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { secretText } from "../../src/api/kubernetes.ts";
import { clusters } from "../../src/api/resources.ts";
import { credentialsFromKubeconfigText } from "../../src/kube/kubeconfig.ts";
import { pods, secrets } from "../../src/kube/resources.ts";
import { Authority } from "../support/clusters/pki.ts";
import { freePort } from "../support/clusters/ports.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { MANIFESTS } from "../support/harness/installed.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podThat } from "../support/harness/pods-of.ts";
import { pristine } from "../support/harness/pristine.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";
import { agentOf, type RunningAgent } from "../support/legation/agent.ts";
import { legationOn } from "../support/legation/process.ts";
import { type Legation, startLegation } from "../support/legation/start.ts";

/** An API server's address with certificates of authorities that change. */
interface Front {
  readonly url: string;
  /** Takes a certificate of another authority, and cuts all connections, as an API server that is restarted with it. */
  serve(authority: Authority): Promise<void>;
  close(): void;
}

async function frontOf({ server, caData }: Cluster, first: Authority): Promise<Front> {
  const { hostname: host, port } = new URL(server);
  const open = new Set<TLSSocket>();
  const front = createServer((client) => {
    const api = connect({ host, port: Number(port), ca: caData });
    for (const [from, to] of [
      [client, api],
      [api, client],
    ] as const) {
      open.add(from);
      from.on("error", () => {});
      from.once("close", () => {
        open.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  });
  front.on("tlsClientError", () => {});
  const serve = async (authority: Authority): Promise<void> => {
    const subject = { commonName: "api", usage: "serverAuth", addresses: ["127.0.0.1"] } as const;
    const { key, certificate } = await authority.issue(subject);
    front.setSecureContext({ key, cert: certificate });
    for (const socket of open) socket.destroy();
  };
  await serve(first);
  const own = await freePort();
  await new Promise<void>((listening) => front.listen(own, "127.0.0.1", listening));
  return { url: `https://127.0.0.1:${own}`, serve, close: () => front.close() };
}

const ACCESS = ["namespace", "rbac"].flatMap((name) => ["-f", `${MANIFESTS}/access/${name}.yaml`]);

const clients = useClients();
let legation: Legation;
let front: Front;
let agent: RunningAgent;
let authorities: { readonly old: Authority; readonly next: Authority };

/** Returns the authority by which one of the host's accounts knows the member. */
async function storedIn(namespace: string): Promise<string | undefined> {
  const secret = await clients().host.find(secrets, { namespace, name: "member-north" });
  const kubeconfig = secretText(secret, "kubeconfig");
  if (kubeconfig === undefined) return undefined;
  return (await credentialsFromKubeconfigText(kubeconfig, { allowExec: false, env: {} }).identity()).ca;
}

const isReady = async (): Promise<boolean> => {
  const { status } = await clients().host.get(clusters, { name: "north" });
  return status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";
};

async function runs(namespace: string, name: string): Promise<void> {
  await clients().host.create(
    pods,
    delegatedPod(namespace, name, { annotations: { "legation.dev/clusters": "north" } }),
  );
  await podThat(clients().host, namespace, name, inPhase("Running"));
}

beforeAll(async () => {
  const [host, west] = [hostCluster(), memberCluster("west")];
  await pristine(host, west);
  const hubPort = await freePort();
  legation = await startLegation({ host, members: {}, controllerFlags: [`--hub-listen=127.0.0.1:${hubPort}`] });
  authorities = { old: await Authority.create("old"), next: await Authority.create("next") };
  front = await frontOf(west, authorities.old);
  await kubectl(host, ["apply", ...ACCESS]);
  const hub = `--hub-address=127.0.0.1:${hubPort}`;
  const { code, stdout, stderr } = await legationOn(host, "join", "north", "--agent", "--access", hub);
  expect(code, stderr).toBe(0);
  await kubectl(west, ["apply", "-f", "-"], { input: stdout });
  const [, name = ""] = /^ {2}name: (legation-agent-\w+)$/m.exec(stdout) ?? [];
  agent = await agentOf(west, name, { server: front.url, caData: authorities.old.pem });
  await agent.start();
});

afterAll(async () => {
  await agent?.stop();
  await legation?.stop();
  front?.close();
  await kubectl(hostCluster(), ["delete", "--wait=false", "--ignore-not-found", ...ACCESS]);
});

test("a member behind an agent keeps working when its API server's authority is replaced", async ({
  onTestFinished,
}) => {
  const { old, next } = authorities;
  const labels = { "legation.dev/delegation": "annotated" };
  const namespace = await freshNamespace(hostCluster(), { prefix: "authority", labels, onFinished: onTestFinished });
  await runs(namespace, "before");
  const accounts = ["legation-system", "legation-access"];
  for (const account of accounts) {
    await eventuallyPasses(async () => expect(await storedIn(account)).toBe(old.pem.trim()), { timeoutMs: 30_000 });
  }
  const both = `${old.pem}${next.pem}`.trim();
  agent.trust(both);
  await front.serve(next);
  await runs(namespace, "after");
  expect(await isReady()).toBe(true);
  for (const account of accounts) {
    await eventuallyPasses(async () => expect(await storedIn(account)).toBe(both), { timeoutMs: 60_000 });
  }
});
