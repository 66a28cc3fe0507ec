import { describe, expect, test, vi } from "vitest";
import { type Secret, secretText } from "../../../../src/api/kubernetes.ts";
import type { MemberCredentials } from "../../../../src/tunnel/messages.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { accountToken } from "../../../support/builders/token.ts";
import { clusterNamed, controllerOf, now } from "./agents-scene.ts";

/** Lets requests to the fake host finish. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function brought(account: string, certificateAuthority: string, id: string): MemberCredentials {
  const expiresAt = now + 3_600_000;
  return {
    server: "https://10.0.0.1:6443",
    token: accountToken(account, { issuedAt: now, expiresAt, id }),
    expires: new Date(expiresAt).toISOString(),
    certificateAuthority,
  };
}

describe("credentials from an agent", () => {
  test("are requested again when they could not be stored", async () => {
    let failures = 1;
    const { controller, clock, asked, patches } = await controllerOf([clusterNamed("west")], {
      patch: async ({ data }: Partial<Secret>) => {
        if (data !== undefined && failures-- > 0) throw kubeError("Conflict");
      },
    });
    await controller.start();
    expect(controller.wantsCredentials("west")).toBe(true);
    controller.onCredentials("west", "host", brought("legation-host", "", "1"));
    await clock.advance(30_000);
    expect(asked).toEqual(["west"]);
    controller.onCredentials("west", "host", brought("legation-host", "", "1"));
    await clock.advance(30_000);
    expect(patches.map(({ name }) => name)).toEqual(["member-west"]);
    expect(controller.wantsCredentials("west")).toBe(false);
    expect(asked).toEqual(["west"]);
  });
});

describe("credentials from an agent of a member whose users the host serves", () => {
  test("are requested for both accounts once they name another authority", async () => {
    const west = clusterNamed("west", { agent: {}, access: { prefix: "legation:" } });
    const { controller, clock, accounts, secrets, accessSecrets } = await controllerOf([west]);
    await controller.start();
    const stored = (): string | undefined => secretText(secrets.get("member-west"), "kubeconfig");
    // The member does not take the stored credentials, and the agent brings others.
    const renews = async (authority: string, id: string): Promise<void> => {
      await clock.advance(30_000);
      controller.connectionOf("west").onUselessCredentials();
      const before = stored();
      controller.onCredentials("west", "host", brought("legation-host", authority, id));
      await vi.waitUntil(() => stored() !== before, { timeout: 20_000 });
    };
    await renews("old", "1");
    controller.onCredentials("west", "access", brought("legation-access-host-id", "old", "2"));
    await vi.waitUntil(() => accessSecrets.has("member-west"), { timeout: 20_000 });
    await settled();
    accounts.length = 0;
    await renews("old", "3");
    await settled();
    expect(accounts).toEqual(["host"]);
    await renews("new", "4");
    await vi.waitUntil(() => accounts.includes("access"), { timeout: 20_000 });
  });
});
