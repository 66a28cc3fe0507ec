import { readFileSync, statSync } from "node:fs";
import { KubeError } from "./errors.ts";

/** What proves who Legation is to an API server, and the API server to Legation, at one moment. */
export interface Identity {
  /** Value of the Authorization header. */
  readonly authorization?: string;
  /** PEM bundle to trust instead of the system's authorities. */
  readonly ca?: string;
  /** PEM client certificate and its key. */
  readonly cert?: string;
  readonly key?: string;
  /** Impersonation headers. */
  readonly headers?: Readonly<Record<string, string | string[]>>;
}

/** Where one API server is and how to authenticate to it. Values that come from files or plugins change over time. */
export interface ClusterCredentials {
  /** URL of the API server, without a trailing slash. */
  readonly server: string;
  /** Where the credentials come from, for messages: a file and context, or the service account's folder. */
  readonly source: string;
  /** The context's namespace, or the pod's own inside a cluster. */
  readonly namespace?: string;
  /** Name of the cluster entry in the kubeconfig; absent inside a cluster. */
  readonly clusterName?: string;
  readonly insecureSkipTlsVerify: boolean;
  readonly tlsServerName?: string;
  readonly proxyUrl?: string;
  /** The proxy of this machine's environment, where there is no `proxyUrl`: who is given these credentials has another one. */
  readonly environmentProxyUrl?: string;
  /** The identity to use now: at once unless a plugin must run. Throws or rejects with KubeError `BadCredentials`. */
  identity(): Identity | Promise<Identity>;
  /** Forgets what was cached: called when the API server answered 401. */
  refresh(): void;
}

/** The error for credentials that cannot be used; `detail` names the file, the field and what to write instead. */
export function badCredentials(detail: string, source: string, cause?: unknown): KubeError {
  return new KubeError(detail, { code: "BadCredentials", cluster: "config", verb: "load", resource: source, cause });
}

/** A value that may change while Legation runs. */
export interface Changing {
  read(): string;
  refresh(): void;
}

/** A value written in the kubeconfig itself. */
export function fixed(value: string): Changing {
  return { read: () => value, refresh: () => {} };
}

// Kubelet replaces projected tokens and certificates well before they expire; a stat this often is free.
const STAT_INTERVAL_MS = 5_000;

/** The content of a file, read again when the file changed. A file that is missing for a moment keeps its last value. */
export class FileValue implements Changing {
  readonly #path: string;
  readonly #field: string;
  readonly #source: string;
  #value: string | undefined;
  #stamp = "";
  #checkedAt = 0;

  /** `field` and `source` name the file in errors. */
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
