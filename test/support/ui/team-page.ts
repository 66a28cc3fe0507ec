import type { Cluster } from "../clusters/types.ts";
import { aliasHosts, apiAddress } from "../harness/host-aliases.ts";
import { kubectl } from "../harness/kubectl.ts";
import { StreamingKubectl } from "../streams/kubectl.ts";
import { type BrowserPage, openAddress } from "./browser.ts";

const SYSTEM = "legation-ui";

/** The page for a team in a browser, by `kubectl port-forward`. */
export interface TeamPage extends BrowserPage {
  /** Signs in with a new token of a service account. */
  signIn(namespace: string, account: string): Promise<void>;
}

/** Has the page's future pod find the host's API server. */
export async function resolveApi(host: Cluster): Promise<void> {
  await aliasHosts(host, "api-server-name", [SYSTEM], new Map([["kubernetes.default.svc", await apiAddress(host)]]));
}

/** Opens the page that runs in the host's pod. */
export async function openTeamPage(host: Cluster): Promise<TeamPage> {
  const forward = new StreamingKubectl(["-n", SYSTEM, "port-forward", "service/legation-ui", ":443"], {
    kubeconfig: host.kubeconfig,
    transport: "WebSocket",
    timeoutMs: 300_000,
  });
  try {
    const [, port] = await forward.says(/127\.0\.0\.1:(\d+) -> 8443/);
    const opened = await openAddress(`https://localhost:${port}`);
    const { page } = opened;
    return {
      ...opened,
      signIn: async (namespace, account) => {
        const token = await kubectl(host, ["create", "token", account, "-n", namespace, "--duration", "1h"]);
        await page.getByLabel("Token").fill(token.trim());
        await page.getByRole("button", { name: "Sign in" }).click();
        await page.getByRole("button", { name: "Sign out" }).waitFor();
      },
      close: async () => {
        await opened.close();
        forward[Symbol.dispose]();
      },
    };
  } catch (error) {
    forward[Symbol.dispose]();
    throw error;
  }
}
