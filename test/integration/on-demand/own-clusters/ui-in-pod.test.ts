import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import type { Cluster } from "../../../support/clusters/types.ts";
import { cleanUpFile } from "../../../support/harness/after-file.ts";
import { kubectl } from "../../../support/harness/kubectl.ts";
import { whereRealNodesRun } from "../../../support/harness/real-nodes.ts";
import { bindClusterRole } from "../../../support/legation/access.ts";
import { ROOT } from "../../../support/legation/cli.ts";
import { LEGATION_IMAGE } from "../../../support/legation/image.ts";
import { type ImageClusters, startImageHost } from "../../../support/legation/image-clusters.ts";
import { openTeamPage, resolveApi, type TeamPage } from "../../../support/ui/team-page.ts";

// The page for a team as docs/ui.md deploys it: a pod of a release's image, reached by `kubectl port-forward`.

const SYSTEM = "legation-ui";
const TEAM = "shop";
const account = (name: string): string => `system:serviceaccount:${TEAM}:${name}`;

whereRealNodesRun(() => {
  let started: Omit<ImageClusters, "west"> | undefined;
  let host: Cluster;
  let ui: TeamPage | undefined;
  const folder = mkdtempSync(join(tmpdir(), "legation-ui-"));
  const run = (...args: string[]): Promise<string> => kubectl(host, args, { timeoutMs: 200_000 });
  const apply = (...objects: object[]): Promise<string> =>
    kubectl(host, ["apply", "-f", "-"], { input: objects.map((object) => stringify(object)).join("---\n") });

  /** Returns the folder of manifests/ui with the image of this test, as the page asks its reader to write it. */
  async function manifests(): Promise<string> {
    cpSync(join(ROOT, "manifests", "ui"), folder, { recursive: true });
    const file = join(folder, "deployment.yaml");
    const text = readFileSync(file, "utf8");
    const edited = text.replace(/image: \S+/, `image: ${LEGATION_IMAGE}`);
    expect(edited).not.toBe(text);
    writeFileSync(file, edited);
    return folder;
  }

  beforeAll(async () => {
    started = await startImageHost();
    ({ host } = started);
    await resolveApi(host);
    await run("apply", "--server-side", "-f", join(ROOT, "manifests", "crds"));
    await run("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s");
    await run("apply", "-f", join(ROOT, "manifests", "rbac-viewer.yaml"));
    const labels = { "legation.dev/proxy": "true" };
    const containers = [{ name: "main", image: "registry.example/web:1" }];
    await apply(
      { apiVersion: "v1", kind: "Namespace", metadata: { name: TEAM } },
      {
        apiVersion: "legation.dev/v1alpha1",
        kind: "Cluster",
        metadata: { name: "west" },
        spec: { credentialsSecret: { name: "west" } },
      },
      {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "till", namespace: TEAM, labels },
        spec: { schedulerName: "legation", containers },
      },
    );
    for (const name of ["viewer", "stranger"]) await run("-n", TEAM, "create", "serviceaccount", name);
    await bindClusterRole(host, "legation-viewer", { kind: "User", name: account("viewer") });
  }, 600_000);
  afterAll(async () => {
    await ui?.close();
    if (host !== undefined) await cleanUpFile();
    await started?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test("becomes ready under the restricted Pod Security profile, without a token of its own", async () => {
    await run("apply", "-k", await manifests());
    await run("-n", SYSTEM, "rollout", "status", "deployment/legation-ui", "--timeout=180s");
    const pods = parse(await run("-n", SYSTEM, "get", "pods", "-o", "json"));
    const [pod] = pods.items;
    expect(pod.status.containerStatuses).toMatchObject([{ ready: true, restartCount: 0, image: LEGATION_IMAGE }]);
    expect(pod.spec.containers[0].volumeMounts).toMatchObject([{ mountPath: "/etc/legation" }]);
    expect(await run("-n", SYSTEM, "logs", "deployment/legation-ui")).toMatch(/fingerprint: ([0-9A-F]{2}:){31}/);
  }, 300_000);

  test("is reached through its Service, and closed without a token", async () => {
    ui = await openTeamPage(host);
    const statusOf = (path: string): Promise<unknown> | undefined =>
      ui?.page.evaluate(`fetch(${JSON.stringify(path)}).then(({ status }) => status)`);
    expect(await statusOf("/api/live")).toBe(401);
    expect(await statusOf(`/api/pods/${TEAM}/till`)).toBe(401);
  }, 60_000);

  test("shows members and pods to a service account by its token, with its rights alone", async () => {
    const { page, show, signIn } = opened();
    await signIn(TEAM, "viewer");
    await show("#/members");
    await page.getByRole("article", { name: "west" }).waitFor();
    await show("#/pods");
    await page.getByText("till").first().waitFor();
    await page.getByTitle(account("viewer")).waitFor();
    // The role has no right to events or logs.
    expect(await page.evaluate(`fetch("/api/pods/${TEAM}/till/log?container=main").then(({ status }) => status)`)).toBe(
      403,
    );
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
  }, 60_000);

  test("shows nothing to an account without rights", async () => {
    const { page, show, signIn } = opened();
    await signIn(TEAM, "stranger");
    await show("#/members");
    await page.getByText(/The host cannot be read.*is forbidden/).waitFor();
    expect(await page.evaluate(`fetch("/api/pods/${TEAM}/till").then(({ status }) => status)`)).toBe(403);
  }, 60_000);

  function opened(): TeamPage {
    if (ui === undefined) throw new Error("the page is not open");
    return ui;
  }
});
