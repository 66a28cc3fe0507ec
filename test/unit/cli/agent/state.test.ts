import { describe, expect, test } from "vitest";
import { type Secret, type Stored, secretData } from "../../../../src/api/kubernetes.ts";
import { AgentState } from "../../../../src/cli/agent/state.ts";
import { AGENT_KEYS } from "../../../../src/cli/member/agent-keys.ts";
import type { Patch } from "../../../../src/kube/client.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const log = createLogger({ level: "silent" as "error" });

/** An agent's Secret in an API server that fails `failures` writes first. */
async function stateOn({ failures }: { readonly failures: number }) {
  let secret: Stored<Secret> = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "agent", namespace: "legation-system", uid: "1", resourceVersion: "1" },
    data: secretData({
      [AGENT_KEYS.hub]: "hub:8132",
      [AGENT_KEYS.cluster]: "west",
      [AGENT_KEYS.account]: "legation",
      [AGENT_KEYS.authorities]: "old",
    }),
  };
  let left = failures;
  const patch = async (_resource: unknown, _ref: unknown, { body }: Patch) => {
    left -= 1;
    if (left >= 0) throw new Error("etcdserver: request timed out");
    secret = { ...secret, data: { ...secret.data, ...(body as Secret).data } };
    return secret;
  };
  const client = fakeClient({ find: async () => secret, patch });
  const clock = new FakeClock();
  const never = new AbortController().signal;
  const state = await AgentState.read(client, "agent", never);
  return { state, clock, stored: () => secret.data?.[AGENT_KEYS.authorities], options: { clock, log, signal: never } };
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");

describe("the state of an agent", () => {
  test("trusts authorities that cannot be stored at once, and stores them later", async () => {
    const { state, clock, stored, options } = await stateOn({ failures: 2 });
    const trusting = state.trust("new", options);
    expect(state.current.authorities).toBe("new");
    await clock.advance(2_000);
    expect(stored()).toBe(base64("old"));
    await clock.advance(4_000);
    await trusting;
    expect(stored()).toBe(base64("new"));
    expect(clock.pending).toBe(0);
  });

  test("keeps trusting authorities that are not stored yet when something else is stored", async () => {
    const { state, clock, options } = await stateOn({ failures: 1 });
    const trusting = state.trust("new", options);
    await clock.advance(0);
    await state.store({ request: "r" }, options.signal);
    expect(state.current).toMatchObject({ authorities: "new", request: "r" });
    await clock.advance(2_000);
    await trusting;
  });

  test("stores the newest of two bundles that follow each other", async () => {
    const { state, clock, stored, options } = await stateOn({ failures: 2 });
    const both = [state.trust("new", options), state.trust("newer", options)];
    await clock.advance(120_000);
    await Promise.all(both);
    expect([state.current.authorities, stored()]).toEqual(["newer", base64("newer")]);
  });
});
