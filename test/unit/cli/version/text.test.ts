import { expect, test } from "vitest";
import type { HostVersions } from "../../../../src/cli/version/installed.ts";
import { versionText } from "../../../../src/cli/version/text.ts";

const CLIENT = { version: "0.2.0", node: "v24.21.0" };
const HOST: HostVersions = {
  server: "https://10.0.0.1:6443",
  kubernetes: "v1.36.3",
  legation: {
    hostName: "berlin",
    installer: "Helm",
    version: "0.2.0",
    processes: [
      {
        component: "controller",
        namespace: "legation-system",
        version: "0.2.0",
        image: "legation:0.2.0",
        replicas: 2,
        pods: [
          { name: "a", version: "0.2.0", image: "legation:0.2.0", ready: true },
          { name: "b", version: "0.1.0", image: "legation:0.1.0", ready: false },
        ],
      },
      { component: "webhook", namespace: "legation-system", version: "0.2.0", image: "i", replicas: 2, pods: [] },
    ],
    members: [
      { name: "east", kubernetes: "v1.35.1", connection: "Direct" },
      { name: "west", kubernetes: "v1.34.0", connection: "Agent", agent: "0.1.0" },
    ],
  },
};

test("shows both sides, with a row for each version that runs", () => {
  expect(
    versionText(CLIENT, HOST)
      .split("\n")
      .map((line) => line.split(/ {2,}/)),
  ).toEqual([
    ["WHAT", "VERSION", "DETAILS"],
    ["command line", "0.2.0", "Node.js v24.21.0"],
    ["host", "v1.36.3", "Kubernetes at https://10.0.0.1:6443"],
    ["installation", "0.2.0", 'by Helm, called "berlin"'],
    ["controller", "0.2.0", "1 of 1 pod ready, legation:0.2.0"],
    ["controller", "0.1.0", "0 of 1 pod ready, legation:0.1.0"],
    ["webhook", "-", "no pods of 2, i"],
    ["member east", "v1.35.1", "directly"],
    ["member west", "v1.34.0", "through its agent"],
    ["agent of west", "0.1.0"],
  ]);
});

test("says that the command line does not fit", () => {
  expect(versionText({ ...CLIENT, version: "0.1.0" }, HOST)).toContain(
    "\nthe command line should have the version that is installed, 0.2.0",
  );
});

test("says that an upgrade was not finished", () => {
  const { version: _, ...legation } = HOST.legation ?? {};
  expect(versionText(CLIENT, { ...HOST, legation })).toContain("the Deployments have several versions");
});

test("says where Legation is not installed", () => {
  const { legation: _, ...bare } = HOST;
  expect(versionText(CLIENT, bare)).toMatch(/\nLegation is not installed on the host$/);
});

test("says of which parts the versions cannot be known, and why", () => {
  const outside = versionText(CLIENT, { ...HOST, legation: { ...HOST.legation, processes: [] } });
  expect(outside).toContain("webhook and controller run outside the cluster: see their own version");
  const hidden = versionText(CLIENT, { ...HOST, legation: { hostName: "berlin" } });
  expect(hidden).toContain("you may not read its Deployments and pods");
});
