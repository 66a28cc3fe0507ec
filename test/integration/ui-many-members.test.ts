import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { kubeconfigOf } from "../bench/scale/fleet.ts";
import { startViewedHost, type ViewedHost } from "../bench/views/host.ts";
import { accessibilityProblems, type OpenPage, openPage } from "../support/ui/browser.ts";

const MEMBERS = 300;
// Rows of the window of a table, and the spare ones around it.
const MOST_ROWS = 60;
const directory = mkdtempSync(join(tmpdir(), "legation-many-"));
let host: ViewedHost;
let ui: OpenPage;

beforeAll(async () => {
  host = await startViewedHost({ members: MEMBERS, proxies: 3_000 });
  const kubeconfig = join(directory, "host.yaml");
  writeFileSync(kubeconfig, kubeconfigOf("host", host.cluster.url), { mode: 0o600 });
  ui = await openPage(kubeconfig);
}, 60_000);
afterAll(async () => {
  await ui?.close();
  await host?.cluster.close();
  rmSync(directory, { recursive: true });
});

test("many members are a table, those with trouble first, of which the visible rows alone are in the page", async () => {
  const { page, show } = ui;
  await show("#/members");
  await page.getByText("300 members, 3 not ready, 3 cordoned").waitFor();
  await page.getByRole("row", { name: /^member-1 Not ready connect ETIMEDOUT .* 10 of 10/ }).waitFor();
  expect(await page.getByRole("row").count()).toBeLessThan(MOST_ROWS);
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByLabel("State").selectOption("cordoned");
  await page.getByText("3 of 300 members").waitFor();
  await page.getByLabel("State").selectOption("every state");
  await page.getByLabel("Label").selectOption("tier=gpu");
  await page.getByText("30 of 300 members").waitFor();
  await page.getByRole("searchbox", { name: "Search", exact: true }).fill("member-120");
  await page.getByText("1 of 300 members").waitFor();
  expect(page.url()).toContain("label=tier%3Dgpu");
});

test("workloads in many members have one column for these, and can be filtered by one", async () => {
  const { page, show } = ui;
  await show("#/workloads");
  await page.getByText("150 workloads").waitFor();
  await page.getByRole("row", { name: /^Deployment\/web-0 team-0 20 1 .* 19 members: member-0 \(1\)/ }).waitFor();
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.getByLabel("Member").selectOption("member-7");
  await page.getByText("10 workloads").waitFor();
});

test("the overview leads from the members with trouble to all of them", async () => {
  const { page, show } = ui;
  await show("#/");
  await page.getByText("300 members, 3,000 pods, 2,970 running").waitFor();
  await page.getByRole("row", { name: /^member-1 ?lost Not ready/ }).waitFor();
});
