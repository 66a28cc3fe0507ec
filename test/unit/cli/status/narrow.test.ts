import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import type { HostStatus } from "../../../../src/cli/explain/host.ts";
import type { NamespaceStatus } from "../../../../src/cli/explain/namespace.ts";
import { printOutcome } from "../../../../src/cli/shared/output.ts";
import type { Terminal } from "../../../../src/cli/shared/terminal.ts";
import { textWidth } from "../../../../src/cli/shared/text-width.ts";
import { membersText } from "../../../../src/cli/status/members-text.ts";
import { namespaceText } from "../../../../src/cli/status/namespace-text.ts";
import { recordedSession } from "../session.ts";

const NOW = Date.parse("2026-01-02T00:00:00Z");

const MEMBER = {
  name: "west",
  ready: "True",
  connection: "Direct",
  agent: undefined,
  access: { prefix: "legation:" },
  version: "v1.36.1",
  nodes: 3,
  cpu: { free: 180.5, allocatable: 192 },
  memory: { free: 2 ** 38, allocatable: 2 ** 39 },
  pods: { running: 12, unfinished: 14 },
  held: undefined,
  created: "2026-01-01T00:00:00Z",
} as const;

const MEMBERS: HostStatus = {
  clusters: [
    MEMBER,
    { ...MEMBER, name: "東京-a-member", ready: "False", reason: "connect ECONNREFUSED 10.0.0.1:6443" },
  ],
  waiting: { unplaced: 2, gated: 0 },
};

const POD = {
  namespace: "shop",
  name: "checkout-service-6d4cf56db6",
  status: "Running",
  containers: { ready: 1, all: 1 },
  cluster: "west",
  memberNode: "node-1.example",
  created: "2026-01-01T00:00:00Z",
  waits: undefined,
} as const;

const NAMESPACE: NamespaceStatus = {
  namespace: "shop",
  pods: [
    POD,
    { ...POD, cluster: undefined, waits: { reason: "NotPlaced", message: "east: has 1 of them, its maxReplicas" } },
  ],
  objects: [],
  onHost: 2,
  hidden: [],
};

/** Prints a status as `legation status` does. Returns the lines. */
function shown(width: number | "piped", text: (terminal: Terminal) => string, isWide = false): string[] {
  const session = recordedSession(width === "piped" ? {} : { isTTY: true, env: { COLUMNS: String(width) } });
  if (isWide) session.terminal.widen();
  printOutcome(session.terminal, isWide ? "wide" : "text", { text: text(session.terminal), document: {} });
  return session.out.join("").trimEnd().split("\n");
}

const members = (terminal: Terminal): string => membersText(MEMBERS, NOW, terminal);
const namespace = (terminal: Terminal): string => namespaceText(NAMESPACE, NOW, terminal);

const MEMBER_TITLES = "NAME READY REACHED VERSION NODES CPU FREE/ALL MEMORY FREE/ALL PODS RUN/ALL AGE REASON";

describe("status", () => {
  test.each([40, 60, 80, 200])("is nowhere wider than a terminal of %d columns", (width) => {
    for (const line of [...shown(width, members), ...shown(width, namespace)]) {
      expect(textWidth(line)).toBeLessThanOrEqual(width);
    }
  });

  test.each<[number | "piped", string]>([
    [40, "NAME READY PODS RUN/ALL"],
    [60, "NAME READY CPU FREE/ALL PODS RUN/ALL"],
    [80, "NAME READY REACHED CPU FREE/ALL MEMORY FREE/ALL PODS RUN/ALL"],
    [200, MEMBER_TITLES],
    ["piped", MEMBER_TITLES],
  ])("has of members at %s columns the titles %s, none of them cut", (width, titles) => {
    expect(shown(width, members)[0]?.replaceAll(/ +/g, " ")).toBe(titles);
  });

  test("shows the reason of a member beneath it, and says how to see the other columns", () => {
    expect(shown(40, members).map(stripVTControlCharacters)).toEqual([
      "NAME           READY  PODS RUN/ALL",
      "    REASON",
      "west           True   12/14",
      "東京-a-member  False  12/14",
      "    connect ECONNREFUSED 10.0.0.1:6443",
      "(-o wide shows 6 more columns)",
      "pods without a member: 2 not placed yet",
      "(see `legation status pod NAME`)",
      "open to users by",
      "`legation kubeconfig NAME`: west (as",
      "legation:USER), 東京-a-member (as",
      "legation:USER)",
    ]);
  });

  test("keeps the name, the status and the member of a pod, and shortens them where nothing else is left", () => {
    const lines = (width: number): string[] => shown(width, namespace).filter((line) => /^(POD|checkout)/.test(line));
    expect(lines(60).slice(0, 2)).toEqual([
      "POD                          READY  STATUS   CLUSTER",
      "checkout-service-6d4cf56db6  1/1    Running  west",
    ]);
    expect(lines(50).slice(0, 2)).toEqual([
      "POD                          STATUS   CLUSTER",
      "checkout-service-6d4cf56db6  Running  west",
    ]);
    expect(lines(40).slice(0, 2)).toEqual([
      "POD                      STATUS  CLUSTER",
      "checkout-service-6d4cf…  Runni…  west",
    ]);
  });

  test("is with -o wide on a narrow terminal what it is in a pipe", () => {
    const plain = (lines: string[]): string[] => lines.map(stripVTControlCharacters);
    expect(plain(shown(40, members, true))).toEqual(shown("piped", members));
    expect(shown(40, namespace, true)).toEqual(shown("piped", namespace));
  });
});
