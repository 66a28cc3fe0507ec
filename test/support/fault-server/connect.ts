import type { ClusterClient } from "../../../src/kube/client.ts";
import type { ClusterCredentials } from "../../../src/kube/credentials.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import { type ConnectOptions, createClusterClient } from "../../../src/kube/http-client.ts";
import type { FaultServer } from "./fault-server.ts";

/** Credentials that prove nothing, for a server that asks nothing. */
export function anonymous(server: string): ClusterCredentials {
  return { server, source: "test", insecureSkipTlsVerify: false, identity: () => ({}), refresh: () => {} };
}

/** A client of a fault server. */
export function connect(server: FaultServer, options: Partial<ConnectOptions> = {}): ClusterClient {
  return createClusterClient({ cluster: "west", credentials: anonymous(server.url), ...options });
}

/** Returns the KubeError that a promise rejects with. */
export async function kubeErrorOf(promise: Promise<unknown>): Promise<KubeError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof KubeError)) throw new Error(`expected a KubeError, got ${error}`);
  return error;
}
