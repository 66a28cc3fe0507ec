import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import { hostStatus } from "../../../../src/cli/explain/host.ts";
import { membersText } from "../../../../src/cli/status/members-text.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { cluster, ready } from "../explain/reported-clusters.ts";
import { recordedSession } from "../session.ts";

const NOW = Date.parse("2026-01-01T01:00:00Z");
const AGENT_SINCE = "2026-01-01T00:55:00Z";

describe("the table of members", () => {
  test("sorts and aligns the table, and shows reasons only where there are some", () => {
    const { terminal } = recordedSession();
    const clusters = [cluster("west"), cluster("east-with-a-name")];
    const text = membersText(hostStatus({ clusters, nodes: [], proxies: [] }), NOW, terminal);
    expect(text).toBe(
      [
        "NAME              READY  REACHED  VERSION  NODES  CPU FREE/ALL  MEMORY FREE/ALL  PODS RUN/ALL  AGE",
        "east-with-a-name  True   -        v1.36.3  3      8/8           16Gi/16Gi        0/0           60m",
        "west              True   -        v1.36.3  3      8/8           16Gi/16Gi        0/0           60m",
      ].join("\n"),
    );
  });

  test.each([
    ["directly", { connection: "Direct" }, "True"],
    ["agent 0.2.0, 5m", { connection: "Agent", agent: { version: "0.2.0", connectedSince: AGENT_SINCE } }, "True"],
    ["agent 0.2.0", { connection: "Agent", agent: { version: "0.2.0", connectedSince: AGENT_SINCE } }, "False"],
    ["agent", { connection: "Agent" }, "False"],
  ] as const)("says that a member is reached so: %s", (words, reported, isReady) => {
    const clusters = [cluster("west", { status: { ...ready(isReady), ...reported } })];
    const text = membersText(hostStatus({ clusters, nodes: [], proxies: [] }), NOW, recordedSession().terminal);
    expect(text.split("\n")[1]?.split(/ {2,}/)[2]).toBe(words);
  });

  test("names the members that users reach, and by which names", () => {
    const west = cluster("west");
    const open = { ...west, spec: { ...west.spec, access: { prefix: "legation:" } } };
    const state = hostStatus({ clusters: [open, cluster("east")], nodes: [], proxies: [] });
    expect(membersText(state, NOW, recordedSession().terminal).split("\n").at(-1)).toBe(
      "open to users by `legation kubeconfig NAME`: west (as legation:USER)",
    );
    expect(state.clusters.map(({ access }) => access)).toEqual([undefined, { prefix: "legation:" }]);
  });

  test("aligns coloured columns, and uses no colours with NO_COLOR", () => {
    const one = hostStatus({ clusters: [cluster("west")], nodes: [], proxies: [] });
    const plain = membersText(one, NOW, recordedSession().terminal);
    const coloured = membersText(one, NOW, recordedSession({ isTTY: true }).terminal);
    expect(coloured).not.toBe(plain);
    expect(coloured.replaceAll("\u001B[32m", "").replaceAll("\u001B[39m", "")).toBe(plain);
    expect(membersText(one, NOW, recordedSession({ isTTY: true, env: { NO_COLOR: "1" } }).terminal)).toBe(plain);
  });

  test("says how to join a member where there is none", () => {
    const text = membersText(
      hostStatus({ clusters: [], nodes: [], proxies: [proxyPod()] }),
      NOW,
      recordedSession().terminal,
    );
    expect(text).toContain("legation join");
    expect(text).toContain("1 not placed yet");
  });
});

test("counts delegates that the host does not know by member, with what to do about them", () => {
  const session = recordedSession();
  const held = (heldDelegates: number): NonNullable<Cluster["status"]> => ({ ...ready("True"), heldDelegates });
  const clusters = [
    cluster("west", { status: held(2) }),
    cluster("east", { status: held(0) }),
    cluster("north", { status: held(1) }),
  ];
  const status = hostStatus({ clusters, nodes: [], proxies: [] });
  expect(status.clusters.map((one) => one.held)).toEqual([undefined, 1, 2]);
  const text = membersText(status, NOW, session.terminal);
  expect(text).toContain("does not know them: 1 in north, 2 in west");
  expect(text).toContain("kubectl -n legation-system annotate lease legation-controller legation.dev/unled-");
  const none = membersText(hostStatus({ clusters: [cluster("west")], nodes: [], proxies: [] }), NOW, session.terminal);
  expect(none).not.toContain("does not know");
});
