import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OTHER_PAGES } from "../../../../scripts/documents/tested-pages.ts";
import { type Laptop, startLaptop } from "../../../support/documents/laptop.ts";
import { PREPARATIONS } from "../../../support/documents/preparations.ts";
import { runPage } from "../../../support/documents/run-page.ts";
import { kubectl } from "../../../support/harness/kubectl.ts";
import { whereRealNodesRun } from "../../../support/harness/real-nodes.ts";
import { waitLongForWebhooks } from "../../../support/legation/image-clusters.ts";
import { DEFINITION } from "../../../support/profiles/definition.ts";

// From three clusters of kind, played by a stand-in, to their removal; in between, pages for authors and operators.
const KIND = "docs/tasks/kind.md";
const AGENT = "docs/tasks/agent.md";
const WAIT = 500_000;

whereRealNodesRun(() => {
  let laptop: Laptop;
  beforeAll(async () => {
    laptop = await startLaptop();
  }, WAIT);
  afterAll(async () => {
    await laptop?.stop();
  });

  test(
    "runs the page on kind up to a Deployment whose pods members have",
    async () => {
      const { directory, env } = laptop;
      expect(await runPage({ page: KIND, directory, env, only: ({ text }) => !text.includes("down.sh") })).toBe(2);
      await kubectl(laptop.host, ["delete", "namespace", "shop", "--timeout=180s"], { timeoutMs: 200_000 });
      await waitLongForWebhooks(laptop.host);
      copyFileSync(DEFINITION, join(directory, "definition.yaml"));
    },
    WAIT,
  );

  test.each(OTHER_PAGES)(
    "runs the commands of %s",
    async (page) => {
      const { directory, env } = laptop;
      const KUBECONFIG = join(directory, "host.kubeconfig");
      const preparation = PREPARATIONS[page];
      const PATH = `${join(directory, "bin")}:${env.PATH}`;
      expect(await runPage({ page, directory, env: { ...env, KUBECONFIG, PATH }, preparation })).toBeGreaterThan(0);
    },
    WAIT,
  );

  test(
    "runs the page on agents, with the agent in a pod of the member",
    async () => {
      const { directory, env, host } = laptop;
      const PATH = `${join(directory, "bin")}:${env.PATH}`;
      const preparation = {
        first: `export KUBECONFIG=$PWD/host.kubeconfig
legation unjoin east --member-kubeconfig east.kubeconfig`,
        last: `export KUBECONFIG=$PWD/host.kubeconfig
kubectl -n legation-system delete service legation-hub`,
      };
      const after = async ({ text }: { readonly text: string }): Promise<void> => {
        if (text.includes("NodePort")) await laptop.openNodePorts("legation-hub");
      };
      expect(await runPage({ page: AGENT, directory, env: { ...env, PATH }, preparation, after })).toBe(7);
      expect(laptop.calls().at(-1)).toBe("kind load docker-image legation:kind --name demo-east");
      expect(await kubectl(host, ["get", "nodes", "-o", "name"])).not.toContain("legation-east");
    },
    WAIT,
  );

  test("runs the end of the page on kind, which removes clusters and kubeconfigs", async () => {
    const { directory, env } = laptop;
    expect(await runPage({ page: KIND, directory, env, only: ({ text }) => text.includes("down.sh") })).toBe(1);
    expect(laptop.calls().slice(-3)).toEqual(
      ["host", "west", "east"].map((name) => `kind delete cluster --name demo-${name}`),
    );
    expect(existsSync(join(directory, "west.kubeconfig"))).toBe(false);
  });
});
