import { expect, test } from "vitest";
import type { KubeEvent, KubeNode, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { type MemberFacts, memberDetail } from "../../../../src/cli/explain/member.ts";
import { memberText } from "../../../../src/cli/status/members-text.ts";
import { proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { recordedSession } from "../session.ts";

const SINCE = "2026-01-01T00:00:00Z";
const node: Stored<KubeNode> = {
  metadata: { name: "legation-west", uid: "n", resourceVersion: "1" },
  status: { conditions: [{ type: "Ready", status: "True" }] },
};
const pods = [
  proxyPod({ name: "a", spec: { nodeName: "legation-west", containers: [{ name: "main" }] }, status: runningStatus() }),
  proxyPod({
    name: "b",
    spec: { nodeName: "legation-west", containers: [{ name: "main" }] },
    status: { phase: "Pending" },
  }),
];
const event: KubeEvent = {
  metadata: {},
  involvedObject: {},
  type: "Warning",
  reason: "Unreachable",
  message: "no answer",
  lastTimestamp: "2026-01-01T00:10:00Z",
};

function facts(ready: "True" | "False", told: readonly KubeEvent[] = []): MemberFacts {
  return {
    cluster: {
      metadata: { name: "west", uid: "c", resourceVersion: "1", creationTimestamp: SINCE },
      spec: { credentialsSecret: { name: "west" } },
      status: {
        connection: "Direct",
        server: "https://west:6443",
        version: "v1.36.3",
        nodes: 3,
        allocatable: { cpu: "12", memory: "48Gi", pods: "330" },
        nodeKinds: [{ count: 3, labels: { zone: "a" }, allocatable: { cpu: "4", memory: "16Gi", pods: "110" } }],
        requestedByOthers: { cpu: "1500m", pods: "2" },
        conditions: [
          {
            type: "Ready",
            status: ready,
            reason: "R",
            message: "its API server does not answer",
            lastTransitionTime: SINCE,
          },
        ],
      },
    },
    node,
    told,
    credentials: { secret: "west", state: "renewed", expires: "2026-01-31T00:00:00Z", since: SINCE },
    now: Date.parse(SINCE),
  };
}

function text(of: MemberFacts, proxies: readonly Stored<Pod>[] = pods): string {
  return memberText(memberDetail(of, proxies), Date.parse("2026-01-01T01:00:00Z"), recordedSession().terminal);
}

test("a member's detail has its nodes by kind, this cluster's pods by status, and what others ask for", () => {
  const shown = text(facts("True"));
  expect(shown).toMatch(/^west +True +directly +v1\.36\.3 +3 /m);
  expect(shown).toContain("west is Node legation-west here; its API server is https://west:6443");
  expect(shown).toContain("pods of this cluster there: 1 Running, 1 Pending; 2 pods of others ask for cpu 1.5");
  expect(shown).toMatch(/^3 +4 +16Gi +110 +zone=a$/m);
  expect(shown).not.toContain("trouble:");
});

test("a member's detail has its agent's version, time and certificate, and when its token ends and is renewed", () => {
  const { cluster, ...rest } = facts("True");
  const certificateExpires = "2026-03-01T00:00:00Z";
  const agent = { version: "0.2.0", connectedSince: "2026-01-01T00:55:00Z", certificateExpires };
  const shown = text({ ...rest, cluster: { ...cluster, status: { ...cluster.status, connection: "Agent", agent } } });
  expect(shown).toMatch(/^west +True +agent 0\.2\.0, 5m /m);
  expect(shown).toContain(
    "its agent, of version 0.2.0, last connected at 2026-01-01T00:55:00Z, with a certificate that is valid until 2026-03-01T00:00:00Z\n",
  );
  expect(shown).toContain(
    `its token is in Secret legation-system/west, valid until 2026-01-31T00:00:00Z, made at ${SINCE}, and renewed at 2026-01-16T00:00:00Z\n`,
  );
  expect(text({ ...facts("True"), now: Date.parse("2026-02-01T00:00:00Z") })).toContain(
    "trouble: this cluster's token for west has ended (since 2026-01-31T00:00:00Z)\n",
  );
});

test.each([
  ["2026-01-01T00:30:00Z", true],
  ["2026-03-01T00:00:00Z", false],
])("an agent's certificate that is valid until %s is a trouble: %s", (certificateExpires, isOne) => {
  const { cluster, ...rest } = facts("True");
  const agent = { version: "0.2.0", connectedSince: "2025-10-01T00:00:00Z", certificateExpires };
  const status = { ...cluster.status, connection: "Agent" as const, agent };
  const of = { ...rest, now: Date.parse("2026-01-01T01:00:00Z"), cluster: { ...cluster, status } };
  const trouble =
    "trouble: the certificate of the agent of west has ended, so the agent cannot connect (since 2026-01-01T00:30:00Z)\n" +
    "  `legation join west --agent` lets it have another\n";
  expect(text({ ...of, cluster: { ...of.cluster, spec: { ...cluster.spec, agent: {} } } }).includes(trouble)).toBe(
    isOne,
  );
  // The member is reached directly now.
  expect(text(of)).not.toContain("trouble:");
});

test("a member that is not ready is a trouble, told once, with its time and the events of its objects", () => {
  const shown = text(facts("False", [event]));
  expect(shown.match(/does not answer/g)).toHaveLength(1);
  expect(shown).toContain(
    `trouble: west is not ready: its API server does not answer; 2 pods there may run on, and the status shown is old (since ${SINCE}, says legation controller)`,
  );
  expect(shown).toMatch(
    /^ {2}0 s after its node gets the taint .*, Kubernetes evicts them: .*; `legation doctor --members west` finds the cause$/m,
  );
  expect(shown).toMatch(/^2026-01-01T00:10:00Z +Warning +Unreachable +no answer$/m);
});

test("a member without pods that is not ready has the command that finds the cause", () => {
  expect(text(facts("False"), [])).toMatch(
    /^trouble: west is not ready: .*\n {2}`legation doctor --members west` finds the cause$/m,
  );
});
