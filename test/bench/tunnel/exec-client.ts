import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { Agent, WebSocket } from "undici";
import { dialThrough } from "../../support/tunnel/dial-socket.ts";

/** The only argument of exec-client.ts, as JSON. */
export interface ExecClientSettings {
  /** URL of the API server. */
  readonly server: string;
  readonly ca: string;
  readonly token: string;
  /** Path and query of the exec request. */
  readonly path: string;
  /** Unix socket of a tunnel that takes HTTP CONNECT. Undefined: connects directly. */
  readonly proxy: string | undefined;
  readonly streams: number;
  readonly atOnce: number;
  /** The time between the beginnings of the first `atOnce` streams, in ms. Each later one begins when another has ended. */
  readonly apartMs: number;
  /** Bytes that each command writes. */
  readonly bytes: number;
}

/** A message of the client: first `begun`, when the first `atOnce` streams have begun, then `ended`. */
export type ExecClientMessage =
  | { readonly type: "begun" }
  | { readonly type: "ended"; readonly seconds: number; readonly failures: readonly string[] };

const CONNECT_MS = 60_000;
const STDOUT = 1;
const STATUS = 3;

/** Opens exec streams by WebSocket (v5.channel.k8s.io) on connections of their own, and reads each to its end. */
async function run(settings: ExecClientSettings): Promise<void> {
  const { server, ca, proxy, streams, atOnce, apartMs } = settings;
  const { hostname: host, port } = new URL(server);
  const dispatcher = new Agent({
    connect: (_options, callback) => {
      const reached =
        proxy === undefined
          ? Promise.resolve(connect({ host, port: Number(port), noDelay: true }))
          : dialThrough(proxy, `${host}:${port}`)(AbortSignal.timeout(CONNECT_MS));
      reached.then(
        (socket) => {
          const tls = connectTls({ socket, ca, host, ALPNProtocols: ["http/1.1"] }, () => {
            tls.removeListener("error", onError);
            callback(null, tls);
          });
          const onError = (error: Error): void => callback(error, null);
          tls.once("error", onError);
        },
        (error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), null),
      );
    },
  });
  const failures: string[] = [];
  let left = streams;
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const failure = await execStream(settings, dispatcher);
      if (failure !== undefined) failures.push(failure);
    }
  };
  const begin = performance.now();
  const workers: Promise<void>[] = [];
  while (workers.length < atOnce) {
    workers.push(worker());
    if (apartMs > 0) await sleep(apartMs);
  }
  tell({ type: "begun" });
  await Promise.all(workers);
  tell({ type: "ended", seconds: (performance.now() - begin) / 1000, failures });
  await dispatcher.destroy();
  if (process.connected) process.disconnect();
}

/** Runs one command to its end. Resolves to the reason when it did not succeed, or not all bytes came. */
function execStream(settings: ExecClientSettings, dispatcher: Agent): Promise<string | undefined> {
  const { server, token, path, bytes } = settings;
  const socket = new WebSocket(`${server.replace(/^http/, "ws")}${path}`, {
    protocols: ["v5.channel.k8s.io"],
    headers: { authorization: `Bearer ${token}` },
    dispatcher,
  });
  socket.binaryType = "arraybuffer";
  let received = 0;
  let status = "";
  let problem = "";
  socket.addEventListener("message", ({ data }) => {
    if (!(data instanceof ArrayBuffer)) return;
    const frame = Buffer.from(data);
    if (frame[0] === STDOUT) received += frame.length - 1;
    else if (frame[0] === STATUS) status += frame.subarray(1).toString();
  });
  socket.addEventListener("error", ({ message, error }) => {
    problem = `${message} ${error?.cause ?? error ?? ""}`;
  });
  return new Promise((resolve) => {
    socket.addEventListener("close", ({ code }) => {
      const whole = received === bytes && status.includes('"status":"Success"');
      resolve(whole ? undefined : `close code ${code} after ${received} bytes, status ${status || "none"} ${problem}`);
    });
  });
}

function tell(message: ExecClientMessage): void {
  process.send?.(message);
}

process.once("disconnect", () => process.exit());
await run(JSON.parse(process.argv[2] ?? "{}"));
