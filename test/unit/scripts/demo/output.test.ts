import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { closingText, environmentLines, type KeptDemo } from "../../../../scripts/demo/closing.ts";
import { countPods, countsTable } from "../../../../scripts/demo/counts.ts";
import { ROOT } from "../../../support/legation/cli.ts";

const DEMO: KeptDemo = {
  directory: "/cache/demo",
  kubectl: "/cache/planes/kubectl",
  clusters: ["host", "west", "east", "north"].map((name) => ({ name, kubeconfig: `/cache/demo/${name}/kubeconfig` })),
  transcript: "/cache/demo.log",
  real: "north",
};

const podsOf = (...phases: (string | undefined)[]): string =>
  JSON.stringify({ items: phases.map((phase) => ({ status: phase === undefined ? {} : { phase } })) });

test("counts pods by phase, and those without one among the others", () => {
  const json = podsOf("Running", "Succeeded", "Running", "Pending", "Failed", undefined);
  expect(countPods("west", json)).toEqual({ cluster: "west", running: 2, completed: 1, others: 3 });
});

test("shows counts as a table, a line for each cluster", () => {
  const counts = [countPods("host", podsOf("Running")), countPods("west", podsOf())];
  expect(countsTable(counts)).toEqual([
    "PODS IN  RUNNING  COMPLETED  OTHERS",
    "host     1        0          0",
    "west     0        0          0",
  ]);
});

/** Returns the commands that the text says to try. */
function triesOf(demo: KeptDemo): string[] {
  const lines = closingText(demo);
  const from = lines.indexOf("Try next:") + 1;
  return lines.slice(from, lines.indexOf("", from)).map((line) => line.trim());
}

test("a kept demo ends with five commands, the log of a real container among them", () => {
  expect(triesOf(DEMO)).toHaveLength(5);
  for (const command of triesOf(DEMO)) expect(command).toMatch(/^(kubectl|legation) .*# ./);
  expect(triesOf(DEMO).join("\n")).toContain("kubectl -n shop logs talker ");
});

test("a kept demo without a real node suggests no log", () => {
  const tries = triesOf({ ...DEMO, real: undefined });
  expect(tries).toHaveLength(5);
  expect(tries.join("\n")).not.toContain("logs");
});

test("a kept demo names every kubeconfig and log, and the members whose pods have no logs", () => {
  const text = closingText(DEMO).join("\n");
  for (const name of ["webhook", "controller", "access", "agent"]) expect(text).toContain(` $DEMO/${name}.log`);
  for (const { name } of DEMO.clusters) expect(text).toContain(` $DEMO/${name}/kubeconfig`);
  expect(text).toContain("export DEMO=/cache/demo\n");
  expect(text).toContain("/cache/demo.log");
  expect(text).toMatch(/^Nodes of west, east are simulated: .*no logs/m);
  expect(closingText({ ...DEMO, real: undefined }).join("\n")).toContain("Nodes of west, east, north are simulated");
  expect(text).toContain("npm run demo -- --stop");
});

test("the lines for another terminal use the demo's own kubectl", () => {
  expect(environmentLines(DEMO)).toContain("alias kubectl=/cache/planes/kubectl");
});

test("only a pod that tolerates its taint goes to the node with one image", () => {
  const talker = parse(readFileSync(join(ROOT, "scripts/demo/talker.yaml"), "utf8"));
  expect(talker.spec.tolerations).toEqual([{ key: "demo", operator: "Exists" }]);
  const tour = readFileSync(join(ROOT, "scripts/demo/tour.ts"), "utf8");
  expect(tour).toContain('taints: [{ key: "demo", value: "one-image", effect: "NoSchedule" }]');
});
