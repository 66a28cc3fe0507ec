import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { HUB_ADDRESSES_ANNOTATION } from "../../../../src/api/keys.ts";
import { type Secret, secretData } from "../../../../src/api/kubernetes.ts";
import { FirstHub } from "../../../../src/controllers/agents/first-hub.ts";
import { type KubeError, WayPending } from "../../../../src/kube/errors.ts";
import { listenOn } from "../../../../src/runtime/listening.ts";
import { answerOf } from "../../../support/builders/answers.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { hubAuthority, startHub } from "../../../support/tunnel/rig.ts";

const never = new AbortController().signal;

test("a hub that is not reached may have a new leader for 30 s, in which it says nothing of a member", async () => {
  const server = createServer();
  const port = await listenOn(server, { host: "127.0.0.1", port: 0, onError: () => {} });
  server.close();
  const { cert, key } = await hubAuthority;
  const secret = answerOf<Secret>({
    metadata: { annotations: { [HUB_ADDRESSES_ANNOTATION]: `127.0.0.1:${port}` } },
    data: secretData({ "ca.crt": cert, "ca.key": key }),
  });
  const clock = new FakeClock(Date.now());
  const first = new FirstHub({ registry: { systemSecret: () => secret }, clock });
  onTestFinished(() => first.stop());
  const failure = (): Promise<unknown> => first.dial("west", never).catch((error: KubeError) => error);

  expect(await failure()).toBeInstanceOf(WayPending);
  await clock.advance(29_000);
  expect(await failure()).toBeInstanceOf(WayPending);
  await clock.advance(1_000);
  expect(await failure()).toMatchObject({ code: "NotSent", detail: expect.stringContaining("ECONNREFUSED") });

  const hubClock = new FakeClock();
  const { hub } = await startHub({ port, clock: hubClock });
  await hubClock.advance(20_000);
  expect(await failure()).toEqual(new Error("no agent of west has connected to this controller"));
  await hub.close();
  expect(await failure()).toBeInstanceOf(WayPending);
});
