import { expect, test } from "vitest";
import { Relay } from "../../../src/access/relay.ts";
import { RELAY_SECRET } from "../../../src/api/access.ts";

test("a member with an agent is not dialled before the controller has said how, in full", async () => {
  const relay = new Relay();
  const signal = AbortSignal.timeout(10_000);
  const missing = `Secret legation-access/${RELAY_SECRET} is missing: does the controller take agents?`;
  await expect(relay.dial("west")(signal)).rejects.toThrow(missing);
  relay.update({ metadata: {}, data: { address: btoa("127.0.0.1:1") } });
  await expect(relay.dial("west")(signal)).rejects.toThrow(missing);
  await relay.close();
});
