import { readFileSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FaultProxy } from "../../support/clusters/fault-proxy.ts";
import { kubeconfigText } from "../../support/clusters/kubeconfig.ts";
import { freePort } from "../../support/clusters/ports.ts";
import { removeKueueDefinitions } from "../../support/engines/kueue-definitions.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { hostCluster, memberCluster } from "../../support/harness/clusters.ts";
import { kubectl } from "../../support/harness/kubectl.ts";
import { onRealNodes, type Place } from "../../support/harness/real-nodes.ts";
import { bindClusterRole, openMember } from "../../support/legation/access.ts";
import { podManifest } from "../../support/streams/pods.ts";
import { accessibilityProblems, type OpenPage, openPage } from "../../support/ui/browser.ts";
import { queueWithWaiting } from "../../support/ui/queue-with-waiting.ts";

const TYPES = ["configmaps", "rbac"].flatMap((name) => ["-f", `manifests/delegated-types/${name}.yaml`]);
const SETTINGS = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "settings", annotations: { "legation.dev/whole": "true" } },
  data: { colour: "blue" },
};
const JOB = {
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: { name: "sums", annotations: { "legation.dev/whole": "true", "legation.dev/clusters": "west" } },
  spec: {
    completions: 4,
    template: { spec: JSON.parse(podManifest("sums", [{ name: "main", script: "sleep 3600" }])).spec },
  },
};

onRealNodes((realNodes) => {
  let here: Place;
  let ui: OpenPage;

  beforeAll(async () => {
    here = (await realNodes().places({ onFinished: afterFile })).delegating;
    const count = "i=0; while true; do echo tick $i; i=$((i+1)); sleep 0.2; done";
    const setup = { name: "setup", image: "localhost/busybox:1", command: ["sh", "-c", "echo prepared"] };
    const pods = [
      podManifest(
        "clock",
        [
          { name: "main", script: count },
          { name: "other", script: "echo second; sleep 3600" },
        ],
        { initContainers: [setup] },
      ),
      podManifest("nowhere", [{ name: "main", script: "true" }], { nodeSelector: { disk: "tape" } }),
    ];
    await kubectl(here.cluster, ["apply", ...TYPES]);
    const objects = [...pods, JSON.stringify(SETTINGS), JSON.stringify(JOB)];
    for (const input of objects) await kubectl(here.cluster, ["-n", here.namespace, "apply", "-f", "-"], { input });
    const wait = ["-n", here.namespace, "wait", "pod/clock", "--for=condition=Ready", "--timeout=110s"];
    await kubectl(here.cluster, wait, { timeoutMs: 120_000 });
    ui = await openPage(hostCluster().kubeconfig, {
      args: [`--member-kubeconfig=${memberCluster("west").kubeconfig}`],
    });
  }, 300_000);
  afterAll(async () => {
    await ui?.close();
    if (here === undefined) return;
    // Later files share the clusters.
    await kubectl(here.cluster, [
      "-n",
      here.namespace,
      "delete",
      "configmap/settings",
      "job/sums",
      "--ignore-not-found",
    ]);
    await kubectl(here.cluster, ["delete", "--ignore-not-found", ...TYPES]);
  });

  test("begins with an overview of what is wrong, what waits and what moves", async () => {
    const { page, show } = ui;
    await show("#/");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.getByRole("heading", { name: "Recent warnings" }).waitFor();
    await page
      .getByRole("row", { name: /nowhere .*/ })
      .first()
      .waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test("shows the members with their room", async () => {
    const { page, show } = ui;
    await show("#/members");
    const member = page.getByRole("article", { name: "west" });
    await member.getByText("Ready", { exact: true }).waitFor();
    await member.getByRole("img", { name: /^cpu: .* of this host, .* free$/ }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test("leads from each name to its view: member, node, workload, namespace", async () => {
    const { page, show } = ui;
    await show("#/members");
    await page.getByRole("article", { name: "west" }).getByRole("link", { name: "west", exact: true }).click();
    await page.getByRole("heading", { name: "Nodes" }).waitFor();
    await page
      .getByText(/cpu: .* free of/)
      .first()
      .waitFor();
    await page.getByText(/^Its (token is|credentials are) in Secret legation-system\//).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await show(`#/pods?q=${here.namespace} clock`);
    const row = page.getByRole("row", { name: /clock 2\/2 Running/ });
    await row.getByRole("link", { name: here.namespace }).click();
    await page.getByRole("heading", { name: "Whole objects" }).waitFor();
    await page.getByRole("link", { name: "ConfigMap/settings" }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page
      .getByRole("row", { name: /^clock/ })
      .getByRole("link")
      .nth(2)
      .click();
    await page.getByText(/^node in/).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test("shows, filters and opens pods as they change", async () => {
    const { page, show } = ui;
    await show(`#/pods?q=${here.namespace}`);
    await page.getByRole("row", { name: /clock 2\/2 Running/ }).waitFor();
    await kubectl(here.cluster, ["-n", here.namespace, "apply", "-f", "-"], {
      input: podManifest("brief", [{ name: "main", script: "sleep 3600" }]),
    });
    await page.getByRole("row", { name: /brief/ }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByLabel("State").selectOption("waiting");
    await page.getByRole("row", { name: /brief/ }).waitFor({ state: "detached" });
    expect(page.url()).toContain("state=waiting");
    await page.getByRole("link", { name: "nowhere" }).click();
    await page.getByText(/^waits for a member cluster/).waitFor();
    await page.getByRole("row", { name: /west .*node/ }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await kubectl(here.cluster, ["-n", here.namespace, "delete", "pod", "brief", "--wait=false"]);
    await show(`#/pods?q=brief`);
    await page.getByRole("row", { name: /brief/ }).waitFor({ state: "detached" });
  });

  test("shows one pod's way, its containers' logs, its events and its object", async () => {
    const { page, show } = ui;
    await show(`#/pods/${here.namespace}/clock`);
    await page.getByText(/^scheduled in west/).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole("tab", { name: "Log" }).click();
    const log = page.getByRole("region", { name: /^Log of/ });
    await log.getByText(/tick \d+/).waitFor();
    // Lines of a log that is followed go on.
    const ticks = [...((await log.textContent()) ?? "").matchAll(/tick (\d+)/g)].map(([, count]) => Number(count));
    await log.getByText(`tick ${Math.max(...ticks) + 5}`).waitFor();
    await page.getByLabel("Container").selectOption("other");
    await log.getByText("second").waitFor();
    await page.getByLabel("Container").selectOption({ label: "setup (init, ended)" });
    await log.getByText("prepared").waitFor();
    await page.getByText("the log is complete").waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test("shows a pod beside its delegate with what differs, and the events of both", async () => {
    const { page, show } = ui;
    await show(`#/pods/${here.namespace}/clock?tab=events`);
    for (const where of ["host", "west"]) {
      await page
        .getByRole("row", { name: new RegExp(`${where} Normal Started`) })
        .first()
        .waitFor();
    }
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole("tab", { name: "YAML" }).click();
    await page.getByRole("columnheader", { name: "delegate in west" }).waitFor();
    await page.getByRole("row", { name: /nodeName: legation-west nodeName: .*west/ }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page
      .getByRole("row", { name: /image: localhost.busybox:1 image: localhost.busybox:1/ })
      .first()
      .waitFor();
    await page.getByLabel("only what differs").check();
    await page
      .getByRole("row", { name: /image: localhost/ })
      .first()
      .waitFor({ state: "detached" });
    await page.getByRole("row", { name: /spec\.nodeName: legation-west/ }).waitFor();
  });

  test("shows a whole object beside workloads of pods, and its copy", async () => {
    const { page, show } = ui;
    await show(`#/workloads?q=${here.namespace} settings`);
    await page.getByRole("row", { name: /ConfigMap\/settings ?whole .*InStep/ }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole("link", { name: "ConfigMap/settings" }).click();
    await page.getByRole("columnheader", { name: "copy in west" }).waitFor();
    await page.getByRole("row", { name: /colour: blue colour: blue/ }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test("shows a whole Job as any whole object: its member's share, and its copy", async () => {
    const { page, show } = ui;
    await show(`#/workloads?q=${here.namespace} sums`);
    await page.getByRole("row", { name: /Job\/sums ?whole .*0\/4/ }).waitFor();
    await page.getByRole("link", { name: "Job/sums" }).click();
    await page.getByRole("row", { name: /^west Running 0 of 4 0 1 of 1 / }).waitFor();
    await page.getByRole("columnheader", { name: "copy in west" }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await show(`#/workloads/Job/${here.namespace}/sums`);
    await page.getByRole("row", { name: /^west Running 0 of 4 / }).waitFor();
  });

  test("plans a manifest that is pasted, without storing it", async () => {
    const { page, show } = ui;
    await show("#/plan");
    await page.getByRole("textbox", { name: "Manifest" }).fill(
      JSON.stringify({
        apiVersion: "v1",
        kind: "List",
        items: [
          podManifest("planned", [{ name: "main", script: "true" }]),
          podManifest("too-picky", [{ name: "main", script: "true" }], { nodeSelector: { disk: "tape" } }),
          JSON.stringify({ ...JOB, metadata: { ...JOB.metadata, name: "more-sums" } }),
        ].map((pod) => {
          const { metadata, ...rest } = JSON.parse(pod);
          return { ...rest, metadata: { ...metadata, namespace: here.namespace } };
        }),
      }),
    );
    await page.getByRole("button", { name: "Plan" }).click();
    await page.getByRole("article", { name: "Pod planned" }).getByText("Fits", { exact: true }).waitFor();
    await page.getByRole("article", { name: "Pod too-picky" }).getByText("Would wait", { exact: true }).waitFor();
    await page.getByRole("article", { name: "Job more-sums" }).getByText("Goes to west.", { exact: true }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    const names = await kubectl(here.cluster, ["-n", here.namespace, "get", "pods", "-o", "name"]);
    expect(names).not.toContain("planned");
    await page.getByRole("textbox", { name: "Manifest" }).fill("kind: Nothing");
    await page.getByRole("button", { name: "Plan" }).click();
    await page.getByText(/^the manifest/).waitFor();
  });

  test("uses the keyboard and works in a narrow window", async () => {
    const { page, show } = ui;
    await show("#/members");
    await page.keyboard.press("p");
    await page.getByRole("heading", { name: "Pods" }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("clock");
    await page.getByRole("row", { name: /clock/ }).first().waitFor();
    await page.keyboard.press("ArrowDown");
    expect(await page.evaluate("document.activeElement.closest('tbody tr') !== null")).toBe(true);
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.keyboard.press("f");
    await page.keyboard.type("clock");
    await page.getByRole("heading", { name: "Found" }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.keyboard.type("-and-nothing-else");
    await page.getByRole("heading", { name: /^Nothing is named like/ }).waitFor();
    await show("#/pods?q=nothing-is-named-so");
    await page.getByText("No pod is like this.").waitFor();
    await page.getByRole("link", { name: "Show all" }).click();
    await page.getByRole("row", { name: /clock/ }).first().waitFor();
    await page.setViewportSize({ width: 400, height: 800 });
    // Hidden words and code that scrolls by itself apart, nothing leaves the screen.
    const outside = `[...document.querySelectorAll("main *")].filter((one) =>
      one.getBoundingClientRect().right > innerWidth + 1 && one.closest(".hidden, .code") === null).map((one) => one.outerHTML)`;
    for (const view of ["", "members", "members/west", "workloads", "pods", `pods/${here.namespace}/clock`, "plan"]) {
      await show(`#/${view}`);
      await page.locator("main h1").waitFor();
      expect(await page.evaluate(outside), view).toEqual([]);
      expect(await page.evaluate("document.documentElement.scrollWidth > innerWidth"), view).toBe(false);
    }
    await show(`#/pods?q=${here.namespace} clock`);
    const card = page.getByRole("row", { name: /clock/ });
    const [status, member, name] = await Promise.all(
      ["Status", "Member", "Name"].map(
        async (label) => (await card.locator(`[data-label=${label}]`).boundingBox())?.y ?? 0,
      ),
    );
    expect([status, member, name]).toEqual([status, member, name].sort((a = 0, b = 0) => a - b));
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  test("says how old it is while the host is frozen, greys what it shows, and is live again after it", async () => {
    const host = hostCluster();
    const { hostname, port } = new URL(host.server);
    const door = new FaultProxy(await freePort(), Number(port));
    await door.listen();
    const file = join(host.directory, "door.kubeconfig");
    const behindDoor = `https://${hostname}:${door.port}`;
    writeFileSync(file, readFileSync(host.kubeconfig, "utf8").replaceAll(host.server, behindDoor));
    const frozen = await openPage(file);
    try {
      const { page, show } = frozen;
      await show(`#/pods?q=${here.namespace} clock`);
      await page.getByText("live", { exact: true }).waitFor();
      await page.getByRole("row", { name: /clock 2\/2 Running/ }).waitFor();
      expect(await page.locator(".view.old").count()).toBe(0);
      await door.set({ kind: "blackhole" });
      await page.getByText(/^last heard \d+s ago/).waitFor();
      await page.getByText(/^The host's API server was last heard \d+s ago; what is shown is from then/).waitFor();
      expect(await page.getByText("live", { exact: true }).count()).toBe(0);
      await page
        .locator(".view.old")
        .getByRole("row", { name: /clock 2\/2 Running/ })
        .waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      // A pod that was not read before says that it is awaited, and then why it is not shown.
      await show(`#/pods/${here.namespace}/clock`);
      await page.getByText("Loading the pod…").waitFor();
      await page.getByRole("heading", { name: "The pod cannot be shown" }).waitFor();
      await door.set({ kind: "forward" });
      await page.getByText("live", { exact: true }).waitFor();
      await page.getByText(/^scheduled in west/).waitFor();
    } finally {
      await frozen.close();
      await door.close();
    }
  }, 180_000);

  describe("for a team, which signs in with tokens", () => {
    let team: OpenPage;
    let nobody: string;
    const account = (name: string): string => `system:serviceaccount:${here.namespace}:${name}`;
    const token = async (name: string): Promise<string> =>
      (await kubectl(here.cluster, ["-n", here.namespace, "create", "token", name])).trim();
    const signIn = async (name: string): Promise<void> => {
      await team.page.getByLabel("Token").fill(await token(name));
      await team.page.getByRole("button", { name: "Sign in" }).click();
    };

    beforeAll(async () => {
      const [host, west] = [hostCluster(), memberCluster("west")];
      await realNodes().legation.access();
      await openMember(host, west, "west");
      for (const name of ["reader", "stranger"]) {
        await kubectl(host, ["-n", here.namespace, "create", "serviceaccount", name]);
      }
      const reader = { kind: "User", name: account("reader") } as const;
      for (const role of ["legation-viewer", "view", "legation-access"]) await bindClusterRole(host, role, reader);
      await bindClusterRole(west, "view", { kind: "User", name: `legation:${reader.name}` });
      const { server, caData } = host;
      // An API server, and nobody to be there.
      nobody = join(host.directory, "nobody.kubeconfig");
      writeFileSync(nobody, kubeconfigText({ name: "host", server, caData, user: "nobody", token: "" }));
      team = await openPage(nobody, { args: ["--sign-in=token", "--listen=127.0.0.1:0", "-n=kube-public"] });
    });
    afterAll(async () => {
      await team?.close();
    });

    test("refuses what has no session, another origin or another name", async () => {
      const ask = (path: string, headers = {}): Promise<number> => statusOf(`${team.origin}${path}`, headers);
      expect(await ask("/")).toBe(200);
      for (const path of ["/api/live", `/api/pods/${here.namespace}/clock`]) expect(await ask(path)).toBe(401);
      expect(await ask("/", { origin: "https://evil.example.org" })).toBe(403);
      expect(await ask("/", { host: "evil.example.org" })).toBe(403);
    });

    test("takes no token that the API server refuses", async () => {
      const { page } = team;
      await page.getByRole("heading", { name: "Legation" }).waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.getByLabel("Token").fill("not-a-token");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByText("the API server does not accept this token").waitFor();
    });

    test("shows what the token's user may read, also in members, until the user signs out", async () => {
      const { page, show } = team;
      await signIn("reader");
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      await show("#/members");
      await page.getByRole("article", { name: "west" }).waitFor();
      for (const [view, title] of [
        ["pods", "No pod is delegated"],
        ["workloads", "No workload has delegated pods"],
      ] as const) {
        await show(`#/${view}`);
        await page.getByRole("heading", { name: title }).waitFor();
        expect(await accessibilityProblems(page)).toEqual([]);
      }
      await show(`#/pods/${here.namespace}/clock?tab=yaml`);
      await page.getByRole("row", { name: /nodeName: legation-west nodeName: .*west/ }).waitFor();
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByLabel("Token").waitFor();
      expect(await page.evaluate("fetch('/api/session').then(({ status }) => status)")).toBe(401);
    });

    test("shows a user with rights in one namespace alone that namespace, with one line on what is hidden", async () => {
      await kubectl(here.cluster, ["-n", here.namespace, "create", "serviceaccount", "tenant"]);
      const bind = ["create", "rolebinding", "tenant", "--clusterrole=view"];
      await kubectl(here.cluster, ["-n", here.namespace, ...bind, `--serviceaccount=${here.namespace}:tenant`]);
      const all = await openPage(nobody, { args: ["--sign-in=token", "--listen=127.0.0.1:0"] });
      try {
        const { page, show } = all;
        await page.getByLabel("Token").fill(await token("tenant"));
        await page.getByRole("button", { name: "Sign in" }).click();
        await page.getByRole("heading", { name: "Overview" }).waitFor();
        const line = new RegExp(
          `^Not shown: pods outside namespace ${here.namespace}, the members, .* legation-viewer`,
        );
        await page.getByText(line).waitFor();
        expect(await page.getByText(/The host cannot be read/).count()).toBe(0);
        await show("#/pods");
        await page.getByRole("row", { name: /clock 2\/2 Running/ }).waitFor();
        expect(await accessibilityProblems(page)).toEqual([]);
        await show(`#/pods/${here.namespace}/clock`);
        await page.getByText(/^scheduled in west/).waitFor();
      } finally {
        await all.close();
      }
    });

    test("shows nothing to a user without rights, and says what is missing", async () => {
      const { page, show } = team;
      await show("#/members");
      await signIn("stranger");
      await page.getByText(/The host cannot be read.*is forbidden/).waitFor();
      await show(`#/pods/${here.namespace}/clock`);
      await page.getByText(/cannot get resource "pods"/).waitFor();
    });
  });

  test("has a view of Kueue's queues once the host has some, and links to it from the overview and the members", async () => {
    const { page, show } = ui;
    const { cluster } = here;
    await show("#/");
    const tab = page.getByRole("link", { name: /^Queues/ });
    await page.getByRole("link", { name: /^Plan/ }).waitFor();
    expect(await tab.count()).toBe(0);
    try {
      await queueWithWaiting(here);
      await tab.waitFor();
      await page.getByRole("row", { name: /team 1 .* Job\/sweep waits for 4 cpu of flavor west/ }).waitFor();
      await show("#/members");
      await page.getByRole("article", { name: "west" }).getByRole("link", { name: "team", exact: true }).click();
      await page.getByRole("heading", { name: "team", level: 1 }).waitFor();
      await page.getByRole("row", { name: "west cpu 126 128 west" }).waitFor();
      await page.getByRole("row", { name: /Job\/sweep .* insufficient quota/ }).waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
    } finally {
      await removeKueueDefinitions(cluster);
    }
  });

  test("is closed to browsers without the address, and logs no error", async () => {
    expect((await fetch(ui.origin)).status).toBe(401);
    // Chromium logs the answer to the manifest that cannot be planned.
    expect(ui.errors.filter((error) => !error.includes("/api/plan") && !error.includes("404"))).toEqual([]);
  });
});

/** Returns the status with which a server answers, whatever its certificate. */
function statusOf(url: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { headers, rejectUnauthorized: false }, (response) => {
      response.destroy();
      resolve(response.statusCode ?? 0);
    }).once("error", reject);
  });
}
