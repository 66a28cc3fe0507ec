import { readFileSync, statSync } from "node:fs";
import { KubeError } from "./errors.ts";

/** Credentials for one request: the client's identity, and the CA that the server must present. */
export interface RequestIdentity {
  readonly authorization?: string | undefined;
  /** PEM bundle to trust instead of the system's authorities. */
  readonly ca?: string | undefined;
  /** PEM client certificate and its key. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly headers?: Readonly<Record<string, string | string[]>> | undefined;
}

/** The address of an API server and a source of identities for it. Values from files or plugins change over time. */
export interface ClusterCredentials {
  /** URL of the API server, without a trailing slash. */
  readonly server: string;
  /** The origin of the credentials, for messages: file and context, or the service account's folder. */
  readonly source: string;
  /** The context's namespace, or the pod's own inside a cluster. */
  readonly namespace?: string | undefined;
  /** Name of the cluster entry in the kubeconfig; absent inside a cluster. */
  readonly clusterName?: string | undefined;
  readonly insecureSkipTlsVerify: boolean;
  readonly tlsServerName?: string | undefined;
  readonly proxyUrl?: string | undefined;
  /** The proxy from this process's environment, used without a `proxyUrl`. Not part of credentials handed to others. */
  readonly environmentProxyUrl?: string | undefined;
  /** Returns the current identity; a promise only when a plugin must run. Throws or rejects with KubeError `BadCredentials`. */
  identity(): RequestIdentity | Promise<RequestIdentity>;
  /** Drops cached values. Called when the API server answers 401, and when one that is dialled presents an untrusted certificate. */
  refresh(): void;
}

/** Returns the error for unusable credentials. `detail` names the file, the field and what to write instead. */
export function badCredentials(detail: string, source: string, cause?: unknown): KubeError {
  return new KubeError(detail, { code: "BadCredentials", cluster: "config", verb: "load", resource: source, cause });
}

/** A value that may change while the process runs. */
export interface Changing {
  read(): string;
  refresh(): void;
}

/** Returns a constant value, written in the kubeconfig itself. */
export function fixed(value: string): Changing {
  return { read: () => value, refresh: () => {} };
}

// The kubelet replaces projected tokens and certificates well before they expire, so a stat this often suffices.
const STAT_INTERVAL_MS = 5_000;

/** The content of a file, read again when it changes. Keeps the last value while the file is missing. */
export class FileValue implements Changing {
  readonly #path: string;
  readonly #field: string;
  readonly #source: string;
  #value: string | undefined;
  #stamp = "";
  #checkedAt = 0;

  /** Takes `field` and `source` to name the file in errors. */
  constructor(path: string, field: string, source: string) {
    this.#path = path;
    this.#field = field;
    this.#source = source;
  }

  read(): string {
    const now = performance.now();
    if (this.#value !== undefined && now - this.#checkedAt < STAT_INTERVAL_MS) return this.#value;
    this.#checkedAt = now;
    try {
      const { mtimeMs, ino, size } = statSync(this.#path);
      const stamp = `${mtimeMs}/${ino}/${size}`;
      if (this.#value === undefined || stamp !== this.#stamp) {
        this.#value = readFileSync(this.#path, "utf8").trim();
        this.#stamp = stamp;
      }
    } catch (cause) {
      if (this.#value === undefined) {
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw badCredentials(`${this.#field}: cannot read ${this.#path}: ${reason}`, this.#source, cause);
      }
    }
    return this.#value;
  }

  refresh(): void {
    this.#checkedAt = Number.NEGATIVE_INFINITY;
    this.#stamp = "";
  }
}

/** Credentials that can be replaced without interrupting connections and watches. */
export interface RenewableCredentials {
  readonly credentials: ClusterCredentials;
  /** Switches to `next`. Returns false, and changes nothing, when `next` is for another server or proxy. */
  renew(next: ClusterCredentials): boolean;
}

/** Wraps credentials to make them renewable. */
export function renewable(first: ClusterCredentials): RenewableCredentials {
  let current = first;
  return {
    credentials: { ...first, identity: () => current.identity(), refresh: () => current.refresh() },
    renew: (next) => {
      const same =
        next.server === first.server &&
        next.insecureSkipTlsVerify === first.insecureSkipTlsVerify &&
        next.tlsServerName === first.tlsServerName &&
        next.proxyUrl === first.proxyUrl;
      if (same) current = next;
      return same;
    },
  };
}
