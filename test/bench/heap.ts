import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";

interface Heap {
  /** Live heap after a full collection, in megabytes (10^6 bytes). */
  liveMb(): Promise<number>;
  close(): void;
}

const targets = z.array(z.object({ webSocketDebuggerUrl: z.string() })).min(1);
const usage = z.object({ usedSize: z.number() });

/** Speaks the inspector's protocol (https://chromedevtools.github.io/devtools-protocol). */
export async function connectToHeap(port: number): Promise<Heap> {
  const list = targets.parse(await (await fetch(`http://127.0.0.1:${port}/json/list`)).json());
  const socket = new WebSocket(list[0]?.webSocketDebuggerUrl ?? "");
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", () => reject(new Error("the controller's inspector does not answer")));
  });
  let last = 0;
  const call = (method: string): Promise<unknown> => {
    last += 1;
    const id = last;
    return new Promise((resolve) => {
      const onMessage = ({ data }: MessageEvent): void => {
        const answer = z.object({ id: z.number().optional(), result: z.unknown() }).parse(JSON.parse(String(data)));
        if (answer.id !== id) return;
        socket.removeEventListener("message", onMessage);
        resolve(answer.result);
      };
      socket.addEventListener("message", onMessage);
      socket.send(JSON.stringify({ id, method }));
    });
  };
  await call("HeapProfiler.enable");
  return {
    liveMb: async () => {
      // Gives the last deletions time to be swept.
      await sleep(5_000);
      await call("HeapProfiler.collectGarbage");
      return usage.parse(await call("Runtime.getHeapUsage")).usedSize / 1e6;
    },
    close: () => socket.close(),
  };
}
