import { once } from "node:events";
import { connect as connectTls, type TLSSocket } from "node:tls";
import type { ClusterClient, Dial } from "../../../src/kube/client.ts";
import { createClusterClient } from "../../../src/kube/http-client.ts";
import { loadKubeConfig } from "../../../src/kube/kubeconfig.ts";
import type { ClusterInfo } from "../../support/clusters/types.ts";
import { dialThrough } from "../../support/tunnel/dial-socket.ts";
import { startHubAndAgent } from "../../support/tunnel/hub-and-agent.ts";
import { startKonnectivity } from "./konnectivity.ts";

/** The ways that are compared, in the order of a round. */
export const WAYS = ["direct", "agent", "konnectivity"] as const;

export type WayName = (typeof WAYS)[number];

/** A way to the member's API server. */
export interface Way {
  /** A client in this process, which has the hub, as the controller has. */
  readonly client: ClusterClient;
  /** Opens a connection for one request. */
  readonly open: () => Promise<TLSSocket>;
  /** Unix socket by which other processes use the tunnel with HTTP CONNECT. Undefined: they connect directly. */
  readonly proxy: string | undefined;
}

export interface Ways extends AsyncDisposable, Readonly<Record<WayName, Way>> {}

const CLUSTER = "west";
const DIAL_MS = 30_000;

/** Opens all ways to a member's API server: directly, by a hub here with an agent process, and by konnectivity's two processes. */
export async function openWays(member: ClusterInfo, onProgress: (line: string) => void): Promise<Ways> {
  const credentials = loadKubeConfig({ kubeconfig: member.kubeconfig, env: {} });
  await using stack = new AsyncDisposableStack();
  const { host, hostname, port } = new URL(member.server);
  const hub = stack.use(await startHubAndAgent({ host: hostname, port: Number(port) }));
  const konnectivity = stack.use(await startKonnectivity(onProgress));
  const way = (dial: Dial | undefined, proxy: string | undefined): Way => {
    const limits = { perSecond: 1e6, burst: 1e6 };
    const client = createClusterClient({ cluster: CLUSTER, credentials, limits, dial });
    stack.defer(() => client.close());
    return { client, open: () => openTls(member, dial), proxy };
  };
  const ways = {
    direct: way(undefined, undefined),
    agent: way(hub.dial, hub.socket),
    konnectivity: way(dialThrough(konnectivity.socket, host), konnectivity.socket),
  };
  const opened = stack.move();
  return { ...ways, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

async function openTls({ server, caData }: ClusterInfo, dial: Dial | undefined): Promise<TLSSocket> {
  const { hostname: host, port } = new URL(server);
  const reached =
    dial === undefined ? { host, port: Number(port) } : { host, socket: await dial(AbortSignal.timeout(DIAL_MS)) };
  const tls = connectTls({ ...reached, ca: caData });
  await once(tls, "secureConnect");
  return tls;
}
