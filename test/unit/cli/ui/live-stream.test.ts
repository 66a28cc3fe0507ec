import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { PassThrough } from "node:stream";
import { createGunzip } from "node:zlib";
import { expect, test } from "vitest";
import { LiveStream } from "../../../../src/cli/ui/live-stream.ts";
import type { LiveReader } from "../../../../src/cli/ui/live-view.ts";
import type { LiveMessage, PodRow } from "../../../../src/cli/ui/model.ts";
import { podRow } from "../../../../src/cli/ui/rows.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const row = (uid: string, status = "Pending"): PodRow => ({ ...podRow(proxyPod({ uid })), status });

/** A response that a test reads slowly: `isFull` keeps it from taking more. */
class SlowResponse extends EventEmitter {
  readonly messages: LiveMessage[] = [];
  destroyed = false;
  isFull = false;

  writeHead(): this {
    return this;
  }

  write(text: string): boolean {
    if (text.startsWith("data: ")) this.messages.push(JSON.parse(text.slice(6)));
    return !this.isFull;
  }

  destroy(): void {
    this.destroyed = true;
    this.emit("close");
  }
}

async function opened(rows: readonly PodRow[], silentMs?: number) {
  const clock = new FakeClock();
  const response = new SlowResponse();
  let reader: LiveReader | undefined;
  const view = {
    isComplete: true,
    silentMs,
    rows: () => [...rows],
    subscribe: (one: LiveReader) => {
      reader = one;
      return () => {
        reader = undefined;
      };
    },
  };
  const stream = new LiveStream(view, response as unknown as ServerResponse, { clock, isZipped: false });
  const running = stream.run("host");
  await settled();
  const close = async (): Promise<void> => {
    response.destroy();
    await running;
  };
  return { clock, response, reader: () => reader, close };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("sends the host's name, then all pods in parts", async () => {
  const { response, close } = await opened(Array.from({ length: 1_001 }, (_, index) => row(`uid-${index}`)));
  const parts = response.messages.map((message) =>
    message.type === "pods" ? [message.isFirst, message.rows.length] : message.type,
  );
  expect(parts).toEqual(["host", "heard", [true, 1_000], [false, 1], "complete"]);
  await close();
});

test("sends 5,000 pods compressed, in less than 300 kB", async () => {
  const sent = new PassThrough();
  const rows = Array.from({ length: 5_000 }, (_, index) => ({
    ...row(randomUUID()),
    name: `web-${index % 50}-7f9c6bd5b8-${index}`,
    created: new Date(index * 60_000).toISOString(),
  }));
  const view = { isComplete: true, silentMs: 0, rows: () => rows, subscribe: () => () => {} };
  const response = Object.assign(sent, { writeHead: () => sent });
  const stream = new LiveStream(view, response as unknown as ServerResponse, {
    clock: new FakeClock(),
    isZipped: true,
  });
  const running = stream.run("host");
  let bytes = 0;
  let text = "";
  for await (const chunk of sent.on("data", ({ length }: Buffer) => (bytes += length)).pipe(createGunzip())) {
    text += String(chunk);
    if (text.includes('"complete"')) break;
  }
  sent.destroy();
  await running;
  expect(text.match(/"uid"/g)).toHaveLength(5_000);
  expect(bytes).toBeLessThan(300_000);
});

test("clears an earlier list of the page when there are no pods", async () => {
  const { response, close } = await opened([]);
  expect(response.messages).toContainEqual({ type: "pods", isFirst: true, rows: [], gone: [] });
  await close();
});

test("sends only the latest row of each pod to a page that reads slowly", async () => {
  const { clock, response, reader, close } = await opened([]);
  response.isFull = true;
  reader()?.onPod("a", row("a", "Pending"));
  await clock.advance(200);
  await settled();
  for (const status of ["ContainerCreating", "Running"]) reader()?.onPod("a", row("a", status));
  reader()?.onPod("b", undefined);
  await clock.advance(5_000);
  await settled();
  const before = response.messages.length;
  response.isFull = false;
  response.emit("drain");
  await settled();
  await clock.advance(200);
  await settled();
  const [message] = response.messages.slice(before);
  expect(message).toMatchObject({ type: "pods", rows: [{ uid: "a", status: "Running" }], gone: ["b"] });
  await close();
});

test("says every two seconds when the host was last heard, also while nothing changes", async () => {
  const { clock, response, close } = await opened([], 1_200);
  await clock.advance(4_000);
  const beats = response.messages.filter(({ type }) => type === "heard");
  expect(beats).toEqual(Array.from({ length: 3 }, () => ({ type: "heard", silentMs: 1_200 })));
  await close();
  expect(clock.pending).toBe(0);
});

test("stops following when the page closes the connection", async () => {
  const { reader, close } = await opened([]);
  expect(reader()).toBeDefined();
  await close();
  expect(reader()).toBeUndefined();
});
