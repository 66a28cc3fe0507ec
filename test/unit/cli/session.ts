import { Readable } from "node:stream";
import type { Connection, Session } from "../../../src/cli/shared/session.ts";
import { Terminal } from "../../../src/cli/shared/terminal.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";

/** A session without clusters that keeps what is written to it. */
export interface RecordedSession extends Session {
  readonly out: string[];
  readonly err: string[];
}

/** A connection to a cluster, by default one that is never asked. */
export function connection(client: ClusterClient = fakeClient({}), parts: Partial<Connection> = {}): Connection {
  return { client, server: "https://it", skipsTlsVerify: false, namespace: "default", ...parts };
}

/** A session for tests: nothing can be reached through it. */
export function recordedSession(options: Partial<Session> & { readonly isTTY?: boolean } = {}): RecordedSession {
  const out: string[] = [];
  const err: string[] = [];
  const { isTTY = false, env = {}, ...rest } = options;
  const stream = (lines: string[]): ConstructorParameters<typeof Terminal>[0] => ({
    isTTY,
    write: (text) => lines.push(String(text)),
  });
  const unreachable = (): never => {
    throw new Error("this test has no clusters");
  };
  return {
    out,
    err,
    env,
    stdin: Readable.from([]),
    terminal: new Terminal(stream(out), stream(err), env),
    signal: new AbortController().signal,
    connect: unreachable,
    connectText: unreachable,
    openReading: unreachable,
    ...rest,
  };
}
