import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import { clusters } from "../../src/api/resources.ts";
import { pods } from "../../src/kube/resources.ts";
import { freePort } from "../support/clusters/ports.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podGone, podThat } from "../support/harness/pods-of.ts";
import { pristine } from "../support/harness/pristine.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";
import { agentOf, type RunningAgent } from "../support/legation/agent.ts";
import { legationOn } from "../support/legation/process.ts";
import { type Legation, startLegation } from "../support/legation/start.ts";

const clients = useClients();
let legation: Legation;
let agent: RunningAgent;
let hubPort: number;

const isReady = async (): Promise<string | undefined> => {
  const { status } = await clients().host.get(clusters, { name: "north" });
  return status?.conditions?.find(({ type }) => type === "Ready")?.status;
};

beforeAll(async () => {
  await pristine(hostCluster(), memberCluster("west"));
  hubPort = await freePort();
  legation = await startLegation({
    host: hostCluster(),
    members: {},
    controllerFlags: [`--hub-listen=127.0.0.1:${hubPort}`],
    restart: true,
  });
});

afterAll(async () => {
  await agent?.stop();
  await legation?.stop();
});

describe("a member that connects through an agent", () => {
  test("joins by the manifest that join prints", async () => {
    const join = await legationOn(hostCluster(), "join", "north", "--agent", "--hub-address", `127.0.0.1:${hubPort}`);
    expect(join.stderr).toContain("waits for its agent");
    expect(join.code).toBe(0);
    await kubectl(memberCluster("west"), ["apply", "-f", "-"], { input: join.stdout });
    const [, name = ""] = /^ {2}name: (legation-agent-\w+)$/m.exec(join.stdout) ?? [];
    agent = await agentOf(memberCluster("west"), name);
    await agent.start();
    await eventuallyPasses(async () => expect(await isReady(), agent.log()).toBe("True"), { timeoutMs: 20_000 });
  });

  test("runs pods of the host", async ({ onTestFinished }) => {
    const namespace = await freshNamespace(hostCluster(), {
      prefix: "agent",
      labels: { "legation.dev/delegation": "annotated" },
      onFinished: onTestFinished,
    });
    const pod: Pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { namespace, name: "web", annotations: { "legation.dev/clusters": "north" } },
      spec: { containers: [{ name: "main", image: "main:1" }] },
    };
    await clients().host.create(pods, pod);
    const proxy = await podThat(clients().host, namespace, "web", inPhase("Running"));
    expect(proxy.spec?.nodeName).toBe("legation-north");
    await podThat(clients().west, namespace, "web", inPhase("Running"));
    await kubectl(hostCluster(), ["-n", namespace, "delete", "pod", "web", "--now"]);
    await podGone(clients().west, namespace, "web");
  });
});
